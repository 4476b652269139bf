"""What a terminal is shown of texts that strangers chose."""

from __future__ import annotations

import unicodedata
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.visible import visible
from tests.support.examples import examples

ANYTHING: Final = st.text(st.characters(), max_size=40)  # lone surrogates included
_NOT_SHOWN: Final = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("a b", "a b"),
        ("größe-注文-é", "größe-注文-é"),
        ("e\N{COMBINING ACUTE ACCENT}", "e\N{COMBINING ACUTE ACCENT}"),
        ("a\\x1b", "a\\x1b"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("a\r\n\tb\x00\x7f", r"a\r\n\tb\x00\x7f"),
        ("\x85\x9b31m", r"\x85\x9b31m"),
        ("a\u2028b\u2029c", r"a\u2028b\u2029c"),
        ("\u202egnp.exe\u2066\u2069\u200f", r"\u202egnp.exe\u2066\u2069\u200f"),
        ("a\u200b\u200d\u2060\ufeff\u00adb", r"a\u200b\u200d\u2060\ufeff\xadb"),
        ("a\u00a0b\u3000c", r"a\xa0b\u3000c"),
        ("a\u3164\u115f\u2800\u034f\ufe0f", r"a\u3164\u115f\u2800\u034f\ufe0f"),
        ("\udc80\ud800", r"\udc80\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("\N{COMBINING ENCLOSING CIRCLE}a -\N{COMBINING LOW LINE}", r"\u20dda -\u0332"),
    ],
)
def test_what_is_not_seen_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


@settings(max_examples=examples(500))
@given(ANYTHING)
def test_what_is_shown_is_seen_and_is_one_line(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert not {unicodedata.category(each) for each in shown} & set(_NOT_SHOWN)
    assert len(shown.splitlines()) <= 1
    shown.encode()  # no lone surrogate
    assert visible(shown) == shown


@settings(max_examples=examples(200))
@given(st.text(st.characters(exclude_characters="\\"), max_size=20))
def test_different_texts_look_different(text: str) -> None:
    shown = visible(text)
    assert shown.encode("latin-1", "backslashreplace").decode("unicode_escape") == text


def test_what_is_kept_is_kept() -> None:
    assert visible("a\tb\n", keep="\t") == "a\tb\\n"
