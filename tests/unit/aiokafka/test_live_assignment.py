"""The assignment that changes in place: what is live when."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from aiokafka.structs import TopicPartition as TheirTopicPartition

from kip848_client import TopicPartition
from kip848_client._aiokafka._assignment import LiveAssignment

pytestmark = pytest.mark.asyncio


def theirs(tp: TopicPartition) -> TheirTopicPartition:
    return TheirTopicPartition(*tp)


A, B, C = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("c", 0)


class AssignmentHarness:
    def __init__(self) -> None:
        self.ceased: list[list[tuple[str, int]]] = []
        self.live = LiveAssignment(self._changed)

    def _changed(self, ceased: Collection[tuple[str, int]]) -> None:
        if ceased:
            self.ceased.append(sorted(ceased))

    def make_live(self, *partitions: TopicPartition, offset: int = 10) -> None:
        self.live.assign(partitions, partitions)
        self.live.make_ready(partitions)
        for tp in partitions:
            self.live.set_position(tp, offset)


async def test_a_partition_is_live_once_it_is_ready_and_positioned() -> None:
    harness = AssignmentHarness()
    live = harness.live
    live.assign([A], [A])
    assert live.assigned == frozenset({A})
    assert live.tps == frozenset()
    live.set_position(A, 5)
    assert live.tps == frozenset()
    live.make_ready([A])
    assert live.tps == {A}
    assert live.state_value(theirs(A)).position == 5


async def test_retained_partitions_keep_their_state() -> None:
    harness = AssignmentHarness()
    harness.make_live(A, B)
    before = harness.live.state_of(A)
    harness.live.assign([A, C], [C])
    assert harness.live.state_of(A) is before
    assert harness.live.tps == {A}
    assert harness.ceased == [[B]]


async def test_what_is_paused_stays_paused_while_others_come_and_go() -> None:
    """And a partition that was given back and comes again is not paused any more."""
    harness = AssignmentHarness()
    harness.make_live(A, B)
    for tp in (A, B):
        state = harness.live.state_of(tp)
        assert state is not None
        state.pause()
    harness.live.assign([A, C], [C])
    harness.live.make_ready([A, C])
    harness.live.hold_all_but([A, C], {A, C})
    harness.live.assign([A, B, C], [B])
    harness.live.make_ready([A, B, C])
    paused = [tp for tp in (A, B, C) if (state := harness.live.state_of(tp)) and state.paused]
    assert paused == [A]


async def test_what_is_not_live_is_answered_by_a_state_that_nothing_matches() -> None:
    harness = AssignmentHarness()
    harness.make_live(A)
    harness.live.hold_all_but([A], [])
    gone = harness.live.state_value(theirs(A))
    assert gone.has_valid_position
    assert gone.position < 0
    assert not gone.paused
    gone.consumed_to(99)
    gone.reset_to(99)
    gone.await_reset(-2)
    assert gone.position < 0
    assert not gone.awaiting_reset
    state = harness.live.state_of(A)
    assert state is not None
    assert state.position == 10  # the real one is untouched
    assert harness.live.state_value(theirs(B)) is gone


async def test_held_partitions_come_back_as_they_were() -> None:
    harness = AssignmentHarness()
    harness.make_live(A, B)
    harness.live.hold_all_but([A, B], [B])
    assert harness.live.tps == {B}
    harness.live.hold_all_but([A, B], [A, B])
    assert harness.live.tps == {A, B}
    assert harness.live.state_value(theirs(A)).position == 10


async def test_a_resting_partition_is_left_out() -> None:
    harness = AssignmentHarness()
    harness.make_live(A, B)
    harness.live.rest(A, resting=True)
    assert harness.live.tps == {B}
    harness.live.rest(A, resting=False)
    assert harness.live.tps == {A, B}
    harness.live.release([A])
    harness.live.rest(A, resting=False)  # its timer may come late
    assert harness.live.tps == {B}


async def test_topics_outside_of_the_subscription_are_not_fetched() -> None:
    harness = AssignmentHarness()
    harness.make_live(A, B)
    harness.live.limit_to(frozenset({"a"}))
    assert harness.live.tps == {A}
    assert harness.live.assigned == frozenset({A, B})
    harness.live.limit_to(None)
    assert harness.live.tps == {A, B}


async def test_a_topic_created_again_starts_anew() -> None:
    harness = AssignmentHarness()
    harness.make_live(A)
    before = harness.live.state_of(A)
    harness.live.assign([A], [A])
    assert harness.live.state_of(A) is not before
    assert harness.live.tps == frozenset()
    assert harness.ceased == [[A]]


async def test_a_cleared_position_stops_the_fetch() -> None:
    harness = AssignmentHarness()
    harness.make_live(A)
    harness.live.clear_position(A)
    assert harness.live.tps == frozenset()
    harness.live.set_position(A, 3)
    assert harness.live.tps == {A}


async def test_changes_of_what_is_not_assigned_are_ignored() -> None:
    harness = AssignmentHarness()
    harness.live.make_ready([A])
    harness.live.set_position(A, 3)
    harness.live.clear_position(A)
    harness.live.release([A])
    assert harness.live.state_of(A) is None
    assert not harness.live.is_live(A)
