"""What is said of waits that take longer than a second."""

from __future__ import annotations

import logging

from kip848_client.core.types import Wait
from kip848_client.runtime._waits import Waits

TOPIC = "the partitions of topic t"


def lines(waits: Waits, now_ms: int, **found: tuple[str, int]) -> list[str]:
    still = {what: Wait(*each) for what, each in found.items()}
    return [text for _, text in waits.look(now_ms, still, again=False)]


def test_a_short_wait_is_not_told() -> None:
    waits = Waits()
    assert lines(waits, 0, t=("why", 0)) == []
    assert waits.due_ms == 1_000
    assert lines(waits, 999) == []
    assert waits.problems(999) == ()
    assert waits.due_ms is None


def test_a_long_wait_is_told_once_and_when_it_ends() -> None:
    waits = Waits()
    lines(waits, 0, t=("why", 0))
    assert lines(waits, 1_000, t=("why", 0)) == ["waiting for t for 1 s: why"]
    assert lines(waits, 2_000, t=("why", 0)) == []
    assert waits.problems(3_000) == ("waiting for t for 3 s: why",)
    assert lines(waits, 4_000) == ["done waiting for t after 4 s"]
    assert waits.problems(4_000) == ()
    assert waits.due_ms is None


def test_a_wait_counts_from_its_start_not_from_the_first_look() -> None:
    waits = Waits()
    assert lines(waits, 5_000, t=("why", 3_400)) == ["waiting for t for 2 s: why"]
    assert waits.problems(10_400) == ("waiting for t for 7 s: why",)
    assert lines(waits, 12_400) == ["done waiting for t after 9 s"]


def test_another_reason_is_told() -> None:
    waits = Waits()
    lines(waits, 1_000, t=("no broker has answered yet", 0))
    assert lines(waits, 2_000, t=("unknown", 0)) == ["waiting for t for 2 s: unknown"]


def test_each_wait_has_its_own_time() -> None:
    waits = Waits()
    assert lines(waits, 1_000, t=("why", 0), u=("why", 1_000)) == ["waiting for t for 1 s: why"]
    assert lines(waits, 2_000, u=("why", 1_000)) == [
        "done waiting for t after 2 s",
        "waiting for u for 1 s: why",
    ]


def test_a_wait_is_a_warning_and_its_end_is_none() -> None:
    waits = Waits()
    found = {TOPIC: Wait("why", 0)}
    assert [each[0] for each in waits.look(1_000, found, again=False)] == [logging.WARNING]
    assert [each[0] for each in waits.look(2_000, {}, again=False)] == [logging.INFO]


def test_a_busy_client_is_looked_at_again() -> None:
    waits = Waits()
    waits.look(500, {}, again=True)
    assert waits.due_ms == 1_500


def test_another_wait_for_the_same_is_not_a_long_one() -> None:
    waits = Waits()
    for now_ms in (1_000, 2_000, 3_000):
        assert lines(waits, now_ms, t=("why", now_ms - 10)) == []
    assert lines(waits, 4_000, t=("why", 2_990)) == ["waiting for t for 1 s: why"]
