"""The demo's accounting: losses, second deliveries, pauses."""

from __future__ import annotations

from kip848_client.cli.demo.core._accounting import Accounting


def test_what_was_acknowledged_and_never_handed_out_is_lost() -> None:
    accounting = Accounting(2)
    for offset in range(3):
        accounting.produced[0, offset] = 0
    accounting.produced[1, 0] = 0
    accounting.consumed(0, 0, 10)
    accounting.consumed(0, 2, 20)
    assert accounting.missing == 2
    verdict = accounting.verdict()
    assert (verdict.produced, verdict.consumed, verdict.lost) == (4, 2, 2)
    assert not verdict.good


def test_a_second_delivery_is_a_duplicate_not_a_gain() -> None:
    accounting = Accounting(1)
    accounting.produced[0, 0] = 0
    accounting.produced[0, 1] = 0
    for offset in (0, 0, 0):
        accounting.consumed(0, offset, 1)
    verdict = accounting.verdict()
    assert (verdict.duplicated, verdict.lost) == (2, 1)


def test_a_record_may_be_consumed_before_its_acknowledgement_arrives() -> None:
    accounting = Accounting(1)
    accounting.consumed(0, 0, 1)
    assert accounting.missing == 0
    accounting.produced[0, 0] = 0
    assert accounting.verdict().good


def test_the_pause_is_the_longest_time_between_two_deliveries() -> None:
    accounting = Accounting(2)
    for now_ms in (1000, 1010, 1500, 1505):
        accounting.consumed(1, now_ms, now_ms)
    assert accounting.verdict().pause_ms == {0: 0, 1: 490}
