"""The judge of the situations finds what is wrong, and nothing else."""

from __future__ import annotations

from typing import Final

import pytest

from kip848_client import TopicPartition
from tests.situations.diary import Entry, What, judged

TP: Final = TopicPartition("t", 0)
WRITTEN: Final = {b"0", b"1", b"2"}


def story(text: str) -> list[Entry]:
    """``a+`` is assigned, ``a0`` reads, ``a?`` is asked, ``a-`` gives back, ``a!`` has lost, and
    ``ax`` crashes where 1 was committed."""
    words = {"+": What.ASSIGNED, "?": What.REVOKING, "-": What.REVOKED, "!": What.LOST}
    entries: list[Entry] = []
    for at, word in enumerate(text.split()):
        who, what = word[0], word[1:]
        if what.isdigit():
            entries.append(Entry(at, who, What.READ, TP, int(what), what.encode()))
        elif what == "x":
            entries.append(Entry(at, who, What.CRASHED, TP, 1))
        else:
            entries.append(Entry(at, who, words[what], TP))
    return entries


@pytest.mark.parametrize(
    "text",
    [
        "a+ a0 a1 a2",
        "a+ a0 a? a- b+ b1 b2",
        "a+ a0 a! b+ b0 b1 b2",
        "a+ a0 b+ b0 b1 b2 a!",
        "a+ a0 a? b+ b0 b1 b2 a!",
        "a+ a0 b+ b0 b1 a1 a! b2",
        "a+ a0 b+ b0 b1 a1 b? b- a! c+ c2",
        "a+ a0 a1 ax b+ b1 b2",
        "a+ a0 a? a- a+ a1 a2",
    ],
)
def test_what_the_protocol_allows_is_clean(text: str) -> None:
    verdict = judged(story(text), WRITTEN)
    assert verdict.is_clean, verdict


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("a+ a0 a1", "1 lost [b'2']"),
        ("a+ a0 a1 a? a- b+ b1 b2", "1 twice [\"b'1' by a at 1 of 0 (given back), b at 1"),
        ("a+ a0 a1 a? a- b+ b1 b! c+ c1 c2", "1 twice [\"b'1' by a at 1 of 0 (given back)"),
        ("a+ a0 a1 ax b+ b0 b1 b2", "1 twice [\"b'0' by a at 0 of 0 (crashed), b at 0"),
        ("a+ a0 b+ b1 b2 a-", "1 overlaps ['b got t-0 while a had it']"),
        ("a+ a0 b+ b1 b2", "1 overlaps ['b got t-0 while a had it']"),
        ("a+ a0 a? a1 a2", "2 wrong ['a: t-0 read at 1, that it has not, or is giving up'"),
        ("a0 a1 a2", "3 wrong"),
        ("a+ a0 a2 a1", "2 wrong ['a: t-0 read at 2, after 0'"),
        ("a+ a+ a0 a1 a2", "1 wrong ['a: t-0 assigned, that it has']"),
        ("a+ a0 a1 a2 a- a-", "1 wrong ['a: t-0 given back, that it has not']"),
        ("a? a+ a0 a1 a2", "1 wrong ['a: t-0 asked back"),
    ],
)
def test_what_it_rules_out_is_told(text: str, wrong: str) -> None:
    verdict = judged(story(text), WRITTEN)
    assert not verdict.is_clean
    assert wrong in str(verdict)


def test_what_is_allowed_is_counted() -> None:
    verdict = judged(story("a+ a0 a1 a! b+ b0 b1 b2"), WRITTEN)
    assert (verdict.read, verdict.again, verdict.losers) == (3, 2, ("a",))
    assert verdict.silence_ms == 3_000
