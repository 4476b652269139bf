"""The demo's books: losses, second deliveries, pauses."""

from __future__ import annotations

from kip848_client.cli.demo._ledger import Ledger


def test_what_was_acknowledged_and_never_handed_out_is_lost() -> None:
    ledger = Ledger(2)
    for offset in range(3):
        ledger.produced(0, offset)
    ledger.produced(1, 0)
    ledger.consumed(0, 0, 10)
    ledger.consumed(0, 2, 20)
    assert ledger.outstanding == 2
    verdict = ledger.verdict()
    assert (verdict.produced, verdict.consumed, verdict.lost) == (4, 2, 2)
    assert not verdict.good


def test_a_second_delivery_is_a_duplicate_not_a_gain() -> None:
    ledger = Ledger(1)
    ledger.produced(0, 0)
    ledger.produced(0, 1)
    for offset in (0, 0, 0):
        ledger.consumed(0, offset, 1)
    verdict = ledger.verdict()
    assert (verdict.duplicated, verdict.lost) == (2, 1)


def test_a_record_may_be_consumed_before_its_acknowledgement_arrives() -> None:
    ledger = Ledger(1)
    ledger.consumed(0, 0, 1)
    assert ledger.outstanding == 0
    ledger.produced(0, 0)
    assert ledger.verdict().good


def test_the_pause_is_the_longest_time_between_two_deliveries() -> None:
    ledger = Ledger(2)
    for now_ms in (1000, 1010, 1500, 1505):
        ledger.consumed(1, now_ms, now_ms)
    assert ledger.verdict().pause_ms == {0: 0, 1: 490}
