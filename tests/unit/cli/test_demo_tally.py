"""The demo's books: losses, second deliveries, pauses."""

from __future__ import annotations

from kip848_client.cli.demo.core._tally import Tally


def test_what_was_acknowledged_and_never_handed_out_is_lost() -> None:
    tally = Tally(2)
    for offset in range(3):
        tally.produced(0, offset)
    tally.produced(1, 0)
    tally.consumed(0, 0, 10)
    tally.consumed(0, 2, 20)
    assert tally.outstanding == 2
    verdict = tally.verdict()
    assert (verdict.produced, verdict.consumed, verdict.lost) == (4, 2, 2)
    assert not verdict.good


def test_a_second_delivery_is_a_duplicate_not_a_gain() -> None:
    tally = Tally(1)
    tally.produced(0, 0)
    tally.produced(0, 1)
    for offset in (0, 0, 0):
        tally.consumed(0, offset, 1)
    verdict = tally.verdict()
    assert (verdict.duplicated, verdict.lost) == (2, 1)


def test_a_record_may_be_consumed_before_its_acknowledgement_arrives() -> None:
    tally = Tally(1)
    tally.consumed(0, 0, 1)
    assert tally.outstanding == 0
    tally.produced(0, 0)
    assert tally.verdict().good


def test_the_pause_is_the_longest_time_between_two_deliveries() -> None:
    tally = Tally(2)
    for now_ms in (1000, 1010, 1500, 1505):
        tally.consumed(1, now_ms, now_ms)
    assert tally.verdict().pause_ms == {0: 0, 1: 490}
