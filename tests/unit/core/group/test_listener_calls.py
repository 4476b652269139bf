"""When the listener is called, with what, and what becomes of the assignment around it."""

from __future__ import annotations

import pytest

from kip848_client.core.group import (
    AssignPartitions,
    AwaitApplication,
    CallListener,
    Detached,
    ForgetPartitions,
    ListenerMethod,
    ListenerReplaced,
    PollWanted,
    StartFetching,
)
from kip848_client.core.member import LeaveCompleted, Polled, SendHeartbeat, Subscribed
from tests.unit.core.group._harness import GroupHarness, part, tps

ASSIGNED, REVOKED, LOST = ListenerMethod.ASSIGNED, ListenerMethod.REVOKED, ListenerMethod.LOST


def calls(harness: GroupHarness) -> list[tuple[ListenerMethod, tuple[int, ...]]]:
    return [
        (each.method, tuple(p.partition for p in each.partitions))
        for each in harness.out(CallListener)
    ]


def test_what_is_new_is_assigned_then_named_then_fetched() -> None:
    harness = GroupHarness()
    harness.feed(Subscribed(frozenset({"t"})), Polled())
    harness.accept(1, 0, 1)
    assert harness.out(AssignPartitions) == [AssignPartitions(part(0, 1), part(0, 1))]
    assert calls(harness) == [(ASSIGNED, (0, 1))]
    assert harness.core.fetchable == ()
    harness.returned()
    assert harness.out(StartFetching) == [StartFetching(part(0, 1))]
    assert harness.core.fetchable == part(0, 1)


def test_a_rebalance_names_only_what_is_new() -> None:
    """What is retained keeps its position, its buffer and whether it is paused."""
    harness = GroupHarness(auto_commit=False).joined(0, 1)
    harness.target(2, 0, 1, 2)
    assert harness.out(AssignPartitions) == [AssignPartitions(part(0, 1, 2), part(2))]
    assert calls(harness) == [(ASSIGNED, (2,))]


def test_a_call_that_failed_is_repeated_with_the_same_partitions() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.target(2, 0, 1)
    harness.returned(failed=True)
    assert harness.out(PollWanted) == [PollWanted()]
    assert harness.core.fetchable == part(0)
    assert not harness.out(StartFetching)
    harness.feed(Polled())
    assert calls(harness) == [(ASSIGNED, (1,))]
    harness.returned()
    assert harness.core.fetchable == part(0, 1)


def test_nothing_is_taken_while_the_application_works_on_it() -> None:
    harness = GroupHarness(auto_commit=False).joined(0, 1)
    harness.target(2, 0)
    assert [each.partitions for each in harness.out(AwaitApplication)] == [tps(1)]
    assert calls(harness) == []
    assert harness.core.fetchable == part(0)
    harness.came_back()
    assert calls(harness) == [(REVOKED, (1,))]
    assert not harness.out(ForgetPartitions)
    harness.returned()
    assert harness.out(ForgetPartitions) == [ForgetPartitions(tps(1))]
    assert calls(harness) == [(ASSIGNED, ())]


def test_a_revoked_call_that_failed_keeps_the_partitions_and_is_repeated() -> None:
    harness = GroupHarness(auto_commit=False).joined(0, 1)
    harness.target(2, 0)
    harness.came_back()
    harness.returned(failed=True)
    assert not harness.out(ForgetPartitions)
    harness.feed(Polled())
    harness.came_back()
    assert calls(harness) == [(REVOKED, (1,))]


def test_a_loss_overtakes_a_revocation_that_waits_for_the_application() -> None:
    """The partitions may be another member's already: the listener must not commit them."""
    harness = GroupHarness(auto_commit=False).joined(0, 1)
    harness.target(2, 0)
    harness.fence()
    assert calls(harness) == [(LOST, (1,))]
    harness.returned()
    assert harness.out(ForgetPartitions) == [ForgetPartitions(tps(1))]
    assert calls(harness) == [(LOST, (0,))]
    harness.returned()
    assert harness.out(ForgetPartitions) == [ForgetPartitions(tps(0))]
    assert harness.newest_of(SendHeartbeat).intent.member_epoch == 0


def test_a_loss_is_named_once_though_the_revoked_call_runs() -> None:
    harness = GroupHarness(auto_commit=False).joined(0, 1)
    harness.target(2, 0)
    harness.came_back()
    harness.fence()
    assert calls(harness) == [], "one call at a time"
    harness.returned()
    assert calls(harness) == [(LOST, (0,))]


def test_a_loss_does_not_wait_for_the_application() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.hand_out(0, 5, done=False)
    harness.fence()
    assert not harness.out(AwaitApplication)
    assert calls(harness) == [(LOST, (0,))]


def test_an_assigned_call_that_a_loss_overtook_starts_nothing() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.target(2, 0, 1)
    harness.fence()
    harness.returned()
    assert not harness.out(StartFetching)
    assert calls(harness) == [(LOST, (0, 1))]


def test_a_leave_that_is_over_takes_what_a_slow_call_still_has() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.target(2, 0, 1)  # its assigned call runs
    harness.leave(final=True, within_ms=1_000)
    harness.advance(1_000)
    assert harness.out(LeaveCompleted)
    assert harness.core.assigned_ids == {}
    assert ForgetPartitions(tps(0, 1)) in harness.last


@pytest.mark.parametrize("within_ms", [0, 1_000])
def test_a_leave_whose_time_is_over_is_told_though_records_are_held(within_ms: int) -> None:
    """Java's client calls the listener when it is closed, whatever time is left."""
    harness = GroupHarness(auto_commit=False).joined(0, 1)
    harness.hand_out(0, 5, done=False)
    before = len(harness.all(CallListener))
    harness.leave(final=True, within_ms=within_ms)
    harness.advance(within_ms)
    told = harness.all(CallListener)[before:]
    assert [(each.method, len(each.partitions)) for each in told] == [(REVOKED, 2)]
    assert harness.core.assigned_ids == {}
    assert not harness.core.listener_is_idle
    harness.returned()
    assert harness.core.listener_is_idle
    assert len(harness.all(CallListener)) == before + 1


def test_what_waits_behind_a_slow_call_is_told_after_the_leave() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.target(2, 0, 1)  # its assigned call runs
    harness.leave(final=True, within_ms=1_000)
    harness.advance(1_000)
    assert not harness.out(CallListener)
    harness.returned()
    assert calls(harness) == [(REVOKED, (0, 1))]
    harness.returned()
    assert harness.core.listener_is_idle


def test_a_release_and_the_leave_behind_it_are_told_one_after_the_other() -> None:
    harness = GroupHarness(auto_commit=False).joined(0, 1)
    harness.hand_out(0, 5, done=False)
    harness.hand_out(1, 5, done=False)
    harness.target(2, 0)  # waits for the application
    before = len(harness.all(CallListener))
    harness.leave(final=True, within_ms=1_000)
    harness.advance(1_000)
    harness.returned()
    harness.returned()
    told = harness.all(CallListener)[before:]
    assert [tuple(p.partition for p in each.partitions) for each in told] == [(1,), (0,)]


def test_after_a_leave_that_ran_out_of_time_a_new_subscription_is_waited_for_again() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.hand_out(0, 5, done=False)
    harness.leave(final=False, within_ms=1_000)
    harness.advance(1_000)
    assert calls(harness) == [(REVOKED, (0,))]
    harness.returned()
    harness.joined(0, epoch=5)
    harness.hand_out(0, 7, done=False)
    harness.target(6)
    assert harness.out(AwaitApplication)


def test_who_assigns_by_hand_hears_of_the_end_and_keeps_what_is_assigned() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.leave(final=False)
    harness.feed(Detached())
    harness.came_back()
    assert calls(harness) == [(REVOKED, (0,))]
    harness.returned()
    assert not harness.all(ForgetPartitions), "partition 0 may be assigned by hand by now"


def test_what_was_never_announced_is_not_named_when_it_goes() -> None:
    harness = GroupHarness(auto_commit=False)
    harness.feed(Subscribed(frozenset({"t"})), Polled())
    harness.accept(1)
    assert calls(harness) == [(ASSIGNED, ())]
    harness.returned()
    harness.leave(final=True)
    assert calls(harness) == []


def test_a_new_subscription_attaches_again() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.leave(final=False)
    harness.feed(Detached())
    harness.came_back()
    harness.returned()
    harness.accept(-1)
    harness.joined(1, epoch=5)
    assert list(harness.core.assigned_ids) == list(tps(1))


def test_another_listener_is_told_that_nothing_is_new() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.feed(ListenerReplaced())
    assert calls(harness) == [(ASSIGNED, ())]
    assert harness.core.fetchable == part(0)
    harness.returned()
    harness.target(2, 0, 1)
    assert calls(harness) == [(ASSIGNED, (1,))]


def test_another_listener_that_fails_is_told_with_the_next_poll() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.feed(ListenerReplaced())
    harness.returned(failed=True)
    assert harness.out(PollWanted) == [PollWanted()]
    assert harness.core.wants_poll
    harness.feed(Polled())
    assert calls(harness) == [(ASSIGNED, ())]
    assert not harness.core.wants_poll
    harness.returned()
    harness.feed(Polled())
    assert calls(harness) == []


def test_another_listener_waits_for_its_turn() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.target(2, 0, 1)
    harness.feed(ListenerReplaced())
    assert calls(harness) == [], "one call at a time"
    harness.returned()
    assert calls(harness) == [(ASSIGNED, ())]


def test_another_listener_hears_of_the_first_assignment_when_it_comes() -> None:
    harness = GroupHarness(auto_commit=False)
    harness.feed(Subscribed(frozenset({"t"})), ListenerReplaced(), Polled())
    assert calls(harness) == []
    harness.accept(1, 0)
    assert calls(harness) == [(ASSIGNED, (0,))]


def test_another_listener_hears_nothing_after_the_end() -> None:
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.leave(final=False)
    harness.came_back()
    harness.returned()
    harness.feed(ListenerReplaced())
    assert calls(harness) == []
    harness = GroupHarness(auto_commit=False).joined(0)
    harness.feed(Detached(), ListenerReplaced())
    assert calls(harness) == []
