"""Patterns of subscriptions, on their way to the broker."""

from __future__ import annotations

import re

import pytest

from kip848_client.consumer._patterns import checked_pattern
from kip848_client.errors import ConfigError


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (None, None),
        ("", None),
        (re.compile(""), None),
        ("orders-.*", "orders-.*"),
        (re.compile("ABC"), "ABC"),
        (re.compile("ABC", re.IGNORECASE), "(?i)ABC"),
        (re.compile("ABC", re.DOTALL | re.MULTILINE | re.IGNORECASE), "(?ims)ABC"),
        (re.compile("ABC", re.ASCII), "ABC"),
        (re.compile("ABC", re.UNICODE), "ABC"),
        (re.compile("(?i)ABC"), "(?i)(?i)ABC"),
        ("x" * 32_767, "x" * 32_767),
    ],
)
def test_what_the_broker_gets(pattern: object, expected: str | None) -> None:
    assert checked_pattern(pattern) == expected


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (5, "not 5"),
        (b"t", "not b't'"),
        (re.compile(b"t"), "a str or a compiled pattern of str"),
        (("t",), "a str or a compiled pattern of str"),
        (re.compile("A B", re.VERBOSE), r"nothing like re\.VERBOSE"),
        (re.compile("(?x)A B"), r"nothing like re\.VERBOSE"),
        ("x" * 40_000, "40000 bytes; Kafka's strings have 32767 at most"),
        (re.compile("x" * 32_765, re.IGNORECASE), "bytes"),
        ("\ud800", "UTF-8"),
        ("a(", r"'a\(' is not a regular expression of RE2.*missing \)"),
        ("(?=a)", "RE2"),
        (r"(a)\1", "RE2"),
        ("a{2000}", "RE2"),
    ],
)
def test_what_cannot_be_a_pattern_is_refused_at_the_call(pattern: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        checked_pattern(pattern)


def test_a_large_pattern_is_for_the_broker_to_judge() -> None:
    pattern = "(?:[a-z]{900}){1}" * 40
    assert checked_pattern(pattern) == pattern
