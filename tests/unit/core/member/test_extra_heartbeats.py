"""Heartbeats sooner than the interval, while the assignment changes.

Others give up for us what they hear of by their next heartbeat only (KIP-1263, too).
"""

from __future__ import annotations

from typing import Final

import pytest

from kip848_client.core.member import LossReason
from kip848_client.error_codes import ErrorCode
from tests.unit.core.member._harness import MemberHarness

LONG_MS: Final = 3_600_000


def times_of(
    harness: MemberHarness, epoch: int, *, interval: int = 5_000, during: int = 30_000
) -> list[int]:
    """When heartbeats go from now on, each answered at once."""
    start, times = harness.now, list[int]()
    while True:
        harness.next_heartbeat()
        if harness.now > start + during:
            return times
        harness.accept(epoch, interval=interval)
        times.append(harness.now - start)


def extra_of(times: list[int], interval: int = 5_000) -> list[int]:
    """Those that the interval alone would not have sent."""
    return [time for time in times if time % interval]


def test_a_member_that_joined_and_got_nothing_asks_again_soon() -> None:
    harness = MemberHarness().stable(t=[])
    expected = [time for time in range(500, 10_000, 500) if time != 5_000]
    assert extra_of(times_of(harness, 1)) == expected


def test_their_pauses_grow() -> None:
    """With long intervals up to a tenth of them."""
    harness = MemberHarness().join()
    harness.accept(1, (), interval=30_000)
    harness.started()
    harness.accept(1, interval=30_000)
    times = times_of(harness, 1, interval=30_000, during=10_000)
    assert times == [500, 1_500, 3_500, 6_500, 9_500]


def test_they_begin_anew_with_each_change_of_the_assignment() -> None:
    harness = MemberHarness(auto_commit=False).stable(t=[0]).calm()
    assert extra_of(times_of(harness, 1)) == []
    harness.accept(1)
    harness.target(2, t=[0, 1])
    harness.started()
    harness.accept(2)
    assert extra_of(times_of(harness, 2))[:3] == [500, 1_000, 1_500]


def test_they_begin_anew_when_partitions_were_given_up() -> None:
    harness = MemberHarness(auto_commit=False).stable(t=[0, 1]).calm()
    harness.target(2, t=[0])
    times_of(harness, 2, during=3_000)
    harness.accept(2)
    harness.released()
    harness.started()
    harness.accept(3)
    assert extra_of(times_of(harness, 3))[:3] == [500, 1_000, 1_500]


def test_they_never_postpone_what_the_interval_asks_for() -> None:
    """A member that asks more often must not hear of anything later than one that does not."""
    harness = MemberHarness().stable(t=[])
    times = times_of(harness, 1)
    assert [time for time in times if time % 5_000 == 0] == [
        *(5_000, 10_000, 15_000, 20_000, 25_000, 30_000)
    ]


def test_they_leave_the_interval_where_it_was() -> None:
    """Else the members of a group would beat in step after a change that concerned them all."""
    harness = MemberHarness(auto_commit=False).stable(t=[0]).calm()
    harness.target(2, t=[0, 1])
    changed_at = harness.now
    times_of(harness, 2, during=2_500)
    harness.accept(2)
    harness.advance(changed_at + 3_000 - harness.now)
    harness.started()
    harness.accept(2)
    assert harness.now == changed_at + 3_000
    assert times_of(harness, 2)[-4:] == [12_000, 17_000, 22_000, 27_000]


@pytest.mark.parametrize("interval", [100, 500, 5_000, 15_000, 60_000, 600_000])
def test_one_change_brings_at_most_twenty_and_they_outlast_an_interval(
    interval: int,
) -> None:
    """By then everybody else has heard of the change."""
    harness = MemberHarness(max_poll_interval_ms=LONG_MS).join()
    harness.accept(1, (), interval=interval)
    harness.started()
    harness.accept(1, interval=interval)
    extra = extra_of(times_of(harness, 1, interval=interval, during=4 * interval), interval)
    assert len(extra) <= 20
    assert interval < 5_000 or interval < extra[-1] <= 2 * interval


def test_a_listener_that_takes_its_time_does_not_bring_more_of_them() -> None:
    harness = MemberHarness(auto_commit=False).stable(t=[0]).calm()
    harness.target(2, t=[0, 1])
    times = times_of(harness, 2)
    harness.accept(2)
    harness.started()
    harness.accept(2)
    assert 18 < len(extra_of(times) + extra_of(times_of(harness, 2))) <= 20


def test_they_can_be_switched_off() -> None:
    harness = MemberHarness(auto_commit=False, extra_heartbeats=False).stable(t=[])
    assert extra_of(times_of(harness, 1)) == []
    harness.accept(1)
    harness.target(2, t=[0])
    harness.started()
    assert len(harness.heartbeats) == 1, "an acknowledgement is none of them"
    harness.accept(2)
    assert extra_of(times_of(harness, 2)) == []


def test_they_go_on_while_the_listener_works() -> None:
    """What is taken from others for us waits for our acknowledgement, and they for ours."""
    harness = MemberHarness(auto_commit=False).stable(t=[0]).calm()
    harness.target(2, t=[0, 1])
    before = harness.now
    harness.next_heartbeat()
    assert harness.now == before + 250


def test_an_error_is_followed_by_the_backoff_alone() -> None:
    harness = MemberHarness().stable(t=[])
    harness.next_heartbeat()
    before = harness.now
    harness.lose(LossReason.TIMED_OUT)
    harness.next_heartbeat()
    assert harness.now == before + 100


def test_a_member_that_was_put_out_begins_again() -> None:
    harness = MemberHarness().stable(t=[]).calm()
    harness.next_heartbeat()
    harness.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
    harness.accept(1, ())
    harness.started()
    harness.accept(1)
    assert extra_of(times_of(harness, 1))[:3] == [500, 1_000, 1_500]
