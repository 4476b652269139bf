"""What the next batch reads, for a query that is a member of a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kip848_client.core.types import TopicPartition
from kip848_client.spark.source.core._begin import CommitNote, GroupOffset, Lineage
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import Planning, Seen
from kip848_client.spark.source.core._shared_plan import SharedPlan

_TPS = [TopicPartition("a", number) for number in range(3)]
_A0, _A1, _A2 = _TPS
_IDS = {"a": "id-a"}
_SEEN = Seen(dict.fromkeys(_TPS, (0, 100)), _IDS)


_ME = Lineage("token", 2, "g")
_FIRST = Manifest(
    0, {}, _IDS, "shared", dict.fromkeys(_TPS, 0), frozenset(_TPS), token="token", run=1, group="g"
)


def _group(offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, GroupOffset]:
    return {tp: GroupOffset(at) for tp, at in offsets.items()}


def _member(kept: Manifest = _FIRST, **positions: int) -> SharedPlan:
    """A member that owns these partitions, for which its group has committed these offsets."""
    plan = SharedPlan(Planning(), _ME, kept)
    names = {"a0": _A0, "a1": _A1, "a2": _A2}
    offsets = {names[name]: at for name, at in positions.items()}
    plan.assigned(offsets, _group(offsets), _SEEN)
    return plan


def test_only_what_is_ours_is_read_from_where_the_group_is() -> None:
    batch = _member(a0=40, a1=100).next(_SEEN, None, 0)
    assert (batch.number, batch.ranges) == (1, {_A0: (40, 100)})
    assert batch.positions == {_A1: 100, _A2: 0}
    assert batch.unread == {_A2}
    assert batch.committed == {_A0: 40, _A1: 100}


def test_without_partitions_there_is_nothing_to_read() -> None:
    assert _member().next(_SEEN, None, 0) is _FIRST


def test_what_spark_has_is_committed_and_nothing_before() -> None:
    plan = _member(a0=0)
    batch = plan.next(_SEEN, 10, 0)
    plan.is_done(_FIRST)
    assert plan.to_commit == {}
    plan.is_done(batch)
    assert plan.to_commit == {_A0: 10}
    plan.is_committed({_A0: 10})
    assert plan.to_commit == {}


def test_a_commit_that_ends_late_does_not_stand_for_the_next_batch() -> None:
    plan = _member(a0=0)
    plan.is_done(plan.next(_SEEN, 10, 0))
    plan.is_done(plan.next(_SEEN, 10, 0))
    plan.is_committed({_A0: 10})
    assert plan.to_commit == {_A0: 20}


def test_a_partition_that_is_asked_back_is_free_when_its_batch_is_done() -> None:
    plan = _member(a0=0, a1=0, a2=100)
    batch = plan.next(_SEEN, None, 0)
    plan.asked_back([_A1, _A2])
    assert plan.is_free([_A2])
    assert not plan.is_free([_A1])
    plan.is_done(batch)
    assert plan.is_free([_A1])
    plan.gone([_A1, _A2])
    assert plan.owned == {_A0: 100}


def test_nothing_more_is_planned_of_what_is_asked_back() -> None:
    plan = _member(a0=0, a1=0)
    plan.asked_back([_A1])
    assert plan.next(_SEEN, None, 0).ranges == {_A0: (0, 100)}


def test_a_partition_that_was_lost_is_not_committed() -> None:
    plan = _member(a0=0, a1=0)
    batch = plan.next(_SEEN, None, 0)
    plan.gone([_A1])
    plan.is_done(batch)
    assert plan.to_commit == {_A0: 100}


@pytest.mark.parametrize(
    ("group_is_at", "committed", "continues_at"),
    [(0, {_A0: 10}, 10), (4, {_A0: 10}, 10), (25, {}, 25)],
)
def test_a_partition_that_is_lost_and_given_again_while_its_batch_runs(
    group_is_at: int, committed: dict[TopicPartition, int], continues_at: int
) -> None:
    """The group does not hear of the batch before Spark's log of commits has it."""
    plan = _member(a0=0)
    batch = plan.next(_SEEN, 10, 0)
    plan.gone([_A0])
    plan.assigned([_A0], _group({_A0: group_is_at}), _SEEN)
    assert plan.to_commit == {}
    plan.is_done(batch)
    assert plan.to_commit == committed
    assert plan.next(_SEEN, 5, 0).ranges == {_A0: (continues_at, continues_at + 5)}


def test_what_comes_back_continues_at_the_later_of_checkpoint_and_group() -> None:
    for at, begins in ((60, 60), (3, 10)):
        plan = _member(a0=0)
        plan.is_done(plan.next(_SEEN, 10, 0))
        plan.gone([_A0])
        plan.assigned([_A0], _group({_A0: at}), _SEEN)
        assert plan.next(_SEEN, 5, 0).ranges == {_A0: (begins, begins + 5)}
        assert plan.to_commit == ({} if at == begins else {_A0: begins})


_PLANNED = Manifest(
    3, {_A0: (10, 50), _A1: (20, 60), _A2: (0, 30)}, _IDS, "shared", token="token", run=1, group="g"
)


def test_a_repeated_batch_has_all_that_no_other_member_has_committed() -> None:
    """No matter which member owns the partitions now."""
    plan = SharedPlan(Planning(), _ME, _PLANNED)
    ours = CommitNote("token", 1, 3, "id-a")
    group = {_A0: GroupOffset(50, ours), _A1: GroupOffset(40), _A2: GroupOffset(30)}
    assert plan.again(group, _SEEN) == {_A0: (10, 50), _A1: (40, 60)}
    plan.assigned([_A0, _A1], group, _SEEN)
    assert plan.to_commit == {}
    plan.is_done(_PLANNED)
    assert plan.to_commit == {_A0: 50, _A1: 60}


def test_a_repeated_batch_leaves_a_topic_that_was_created_again() -> None:
    plan = SharedPlan(Planning(fails_on_data_loss=False), _ME, _PLANNED)
    assert plan.again({}, Seen(_SEEN.bounds, {"a": "another-id"})) == {}


def test_positions_of_a_topic_that_was_created_again_do_not_outlive_it() -> None:
    kept = replace(_PLANNED, ranges={}, positions={_A0: 50, _A1: 60})
    plan = SharedPlan(Planning(fails_on_data_loss=False), _ME, kept)
    seen = Seen(_SEEN.bounds, {"a": "another-id"})
    plan.assigned([_A0], {}, seen)
    batch = plan.next(seen, 10, 0)
    assert (batch.ranges, batch.positions) == ({_A0: (0, 10)}, {})
    assert batch.topic_ids == {"a": "another-id"}


def test_what_is_pending_for_a_topic_that_is_gone_is_not_committed() -> None:
    plan = _member(a0=0)
    plan.is_done(plan.next(_SEEN, 10, 0))
    assert plan.created_again(Seen(_SEEN.bounds, {"a": "another-id"})) == {"a"}
    assert plan.to_commit == {}
