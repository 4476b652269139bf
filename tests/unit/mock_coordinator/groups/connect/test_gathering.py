"""Before the first target of a Connect group the coordinator waits for more workers to come, as it
does for classic groups (``group.initial.rebalance.delay.ms``, KIP-134)."""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.state.reconciled_group import GroupState
from tests.unit.mock_coordinator.groups._group_harness import GroupHarness
from tests.unit.mock_coordinator.groups.connect._connect_harness import ConnectGroupHarness, Worker

DELAY_MS = 3_000


def waiting(delay_ms: int = DELAY_MS) -> ConnectGroupHarness:
    """A group that waits for so long, with rebalance timeouts of 10 s."""
    harness = ConnectGroupHarness()
    harness.base = GroupHarness("4.4", group_initial_rebalance_delay_ms=delay_ms)
    return harness


def joined(harness: ConnectGroupHarness, name: str) -> Worker:
    worker = harness.worker(name)
    harness.beat(worker)
    return worker


def asked_after(harness: ConnectGroupHarness, worker: Worker, most_ms: int = 20_000) -> int:
    """How long it takes until the worker is asked to compute; it asks every 100 ms."""
    begun = harness.base.now
    while not worker.computes and harness.base.now - begun < most_ms:
        harness.base.pass_ms(100)
        for each in harness.workers.values():
            if each.epoch:
                harness.beat(each)
    return harness.base.now - begun


def everything_to(first: str) -> dict[str, set[tuple[str, int, int]]]:
    return {first: {("A", 0, 0), ("A", 0, 1)}}


def test_the_first_worker_is_not_asked_before_the_delay_is_over() -> None:
    harness = waiting()
    one = joined(harness, "W1")
    assert not one.computes
    assert harness.group.state is GroupState.ASSIGNING
    assert harness.prepare(one).error_code == ErrorCode.UNKNOWN_MEMBER_ID, "nobody is chosen"
    harness.base.pass_ms(DELAY_MS - 1)
    harness.beat(one)
    assert not one.computes
    harness.base.pass_ms(1)
    harness.beat(one)
    assert one.computes


def test_each_that_comes_prolongs_it() -> None:
    harness = waiting()
    one = joined(harness, "W1")
    harness.base.pass_ms(2_000)
    joined(harness, "W2")
    assert asked_after(harness, one) == DELAY_MS
    assert [each.member_id for each in harness.prepare(one).members] == ["W1", "W2"]


def test_one_that_joins_again_or_leaves_does_not() -> None:
    harness = waiting()
    one = joined(harness, "W1")
    joined(harness, "W2")
    harness.base.pass_ms(1_000)
    one.drop()
    harness.beat(one)
    harness.base.pass_ms(1_000)
    harness.leave(harness.worker("W2"))
    assert asked_after(harness, one) == 1_000


def test_it_ends_with_the_rebalance_timeout_however_many_come() -> None:
    harness = waiting()
    begun = harness.base.now
    for number in range(8):
        joined(harness, f"W{number}")
        harness.base.pass_ms(1_500)
    assert harness.base.now - begun == 12_000
    harness.beat(harness.worker("W0"))
    assert harness.worker("W0").computes

    harness = waiting(15_000)  # a delay that is longer is waited for all the same
    assert asked_after(harness, joined(harness, "W1")) == 15_000


def test_a_group_with_a_target_does_not_wait() -> None:
    harness = waiting()
    one = joined(harness, "W1")
    asked_after(harness, one)
    harness.compute(one, lambda _: everything_to("W1"))
    joined(harness, "W2")
    harness.beat(one)
    assert one.computes


def test_a_group_that_all_have_left_waits_anew() -> None:
    harness = waiting()
    one = joined(harness, "W1")
    asked_after(harness, one)
    harness.compute(one, lambda _: everything_to("W1"))
    harness.leave(one)
    assert asked_after(harness, joined(harness, "W2")) == DELAY_MS

    harness.leave(harness.worker("W2"))  # while it was asked: nothing was installed
    joined(harness, "W3")
    harness.base.pass_ms(2_900)
    harness.leave(harness.worker("W3"))  # while the group waits
    assert asked_after(harness, joined(harness, "W4")) == DELAY_MS


def test_it_waits_once_whoever_computes_then() -> None:
    harness = waiting()
    one, two = joined(harness, "W1"), joined(harness, "W2")
    asked_after(harness, one)
    harness.leave(one)
    harness.beat(two)
    assert two.computes
    joined(harness, "W3")
    harness.beat(two)
    assert two.computes, "who comes after that changes nothing"


def test_a_coordinator_that_takes_over_waits_anew_if_there_is_no_target() -> None:
    harness = waiting()
    one = joined(harness, "W1")
    harness.base.pass_ms(2_000)
    harness.base.groups = harness.replayed(harness.base.groups.records)
    harness.beat(one)
    assert asked_after(harness, one) == DELAY_MS

    harness.compute(one, lambda _: everything_to("W1"))
    joined(harness, "W2")
    harness.base.groups = harness.replayed(harness.base.groups.records)
    harness.beat(one)
    assert one.computes


def test_without_a_delay_it_is_asked_at_once() -> None:
    harness = waiting(0)
    assert joined(harness, "W1").computes
