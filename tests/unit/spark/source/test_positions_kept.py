"""What a member keeps of its positions: between two batches, and for partitions of others."""

from __future__ import annotations

import pytest

from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._begin import (
    Begin,
    CommitNote,
    GroupOffset,
    Lineage,
    Log,
    Position,
    shared_begin,
)
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import Planning, Seen
from kip848_client.spark.source.core._shared_plan import SharedPlan

_A0, _A1 = TopicPartition("a", 0), TopicPartition("a", 1)
_ME = Lineage("t", 2, "g")
_IDS = {"a": "id-1"}


def _ours(offset: int, topic_id: str = "id-1") -> GroupOffset:
    return GroupOffset(offset, CommitNote("t", 1, 1, topic_id))


def _plan(kept: Manifest, *, fails: bool = False) -> SharedPlan:
    return SharedPlan(Planning(fails), _ME, kept)


def _read(committed: dict[TopicPartition, int], **positions: int) -> Manifest:
    return Manifest(
        3,
        topic_ids=_IDS,
        ownership="shared",
        positions={_A0: positions["a0"], _A1: positions["a1"]},
        committed=committed,
        epochs={_A0: 0, _A1: 0},
        token="t",
        group="g",
    )


@pytest.mark.parametrize("is_running", [True, False])
def test_where_a_query_continued_after_a_loss_is_not_another_querys_work(
    is_running: bool,
) -> None:
    """It has committed its new begin, and no batch since: the checkpoint has the old position."""
    position, log = Position(10, "id-1", committed=10), Log(50, 80, "id-1")
    found = shared_begin(_A0, position, _ours(50), log, _ME, is_running=is_running)
    assert found.at == 50


@pytest.mark.parametrize("theirs", [_ours(120), GroupOffset(120)])
def test_where_members_continued_after_a_truncation_is_not_a_reset(theirs: GroupOffset) -> None:
    position, log = Position(200, "id-1", committed=200), Log(0, 400, "id-1", epoch_end=120)
    found = shared_begin(_A0, position, theirs, log, _ME)
    assert (found.at, "log truncation" in str(found.loss)) == (120, True)


def test_an_offset_below_the_end_of_a_truncated_log_is_a_reset() -> None:
    position, log = Position(200, "id-1", committed=200), Log(0, 400, "id-1", epoch_end=120)
    with pytest.raises(ConfigError, match="offset was reset"):
        shared_begin(_A0, position, GroupOffset(50), log, _ME)


@pytest.mark.parametrize(
    "position",
    [Position(20, "id-1", is_read=False), None, Position(20, "id-0")],
    ids=["not read yet", "added later", "of the topic before"],
)
def test_a_checkpoint_from_before_the_first_batch_of_a_partition_was_set_back(
    position: Position | None,
) -> None:
    """A later run with this checkpoint has read up to 47: the sink may not have that any more."""
    with pytest.raises(ConfigError, match="was set back, or is a copy"):
        shared_begin(_A0, position, _ours(47), Log(0, 60, "id-1"), _ME)


@pytest.mark.parametrize("first", [0, 30])
def test_where_a_partition_begins_is_told_before_a_batch_has_it(first: int) -> None:
    """That is in the group only, until there is a batch."""
    log = Log(first, 60, "id-1")
    unread = Position(20, "id-1", is_read=False)
    assert shared_begin(_A0, unread, _ours(max(20, first)), log, _ME).at == max(20, first)
    assert shared_begin(_A0, None, _ours(first), log, _ME) == Begin(first)


def test_a_truncated_partition_that_a_batch_leaves_out_is_in_its_manifest() -> None:
    """The manifest has the new leader epoch: with the old position, nothing would find it later."""
    plan = _plan(_read({}, a0=200, a1=0))
    plan.assigned([_A0, _A1], {}, Seen({_A0: (0, 200), _A1: (0, 90)}, _IDS, {_A0: 0, _A1: 0}))
    cut = Seen({_A0: (0, 121), _A1: (0, 900)}, _IDS, {_A0: 1, _A1: 0}, {_A0: 120})
    batch = plan.next(cut, 1, 0)
    assert batch.ranges == {_A1: (0, 1)}
    assert (batch.ends[_A0], batch.epochs[_A0]) == (120, 1)


def test_a_partition_that_is_being_revoked_keeps_the_epoch_of_its_position() -> None:
    plan = _plan(_read({}, a0=200, a1=0))
    plan.assigned([_A0, _A1], {}, Seen({_A0: (0, 200), _A1: (0, 90)}, _IDS, {_A0: 0, _A1: 0}))
    plan.asked_back([_A0])
    batch = plan.next(Seen({_A0: (0, 400), _A1: (0, 90)}, _IDS, {_A0: 1, _A1: 0}), None, 0)
    assert (batch.ends[_A0], batch.epochs[_A0]) == (200, 0)


def test_a_partition_of_another_member_keeps_the_epoch_of_its_position() -> None:
    plan = _plan(_read({}, a0=200, a1=0))
    seen = Seen({_A0: (0, 400), _A1: (0, 90)}, _IDS, {_A0: 1, _A1: 0}, {_A0: 120})
    plan.assigned([_A0, _A1], {}, seen)
    plan.gone([_A0])
    batch = plan.next(seen, None, 0)
    assert (batch.ends[_A0], batch.epochs[_A0]) == (200, 0)


def test_what_the_group_had_of_a_partition_of_others_stays_known() -> None:
    """Else a reset of it would not be noticed after a restart that did not get the partition."""
    plan = _plan(_read({_A0: 40, _A1: 0}, a0=50, a1=0))
    seen = Seen({_A0: (0, 90), _A1: (0, 90)}, _IDS, {_A0: 0, _A1: 0})
    plan.assigned([_A1], {_A0: GroupOffset(60), _A1: _ours(0)}, seen)
    assert plan.next(seen, None, 0).committed == {_A0: 40, _A1: 0}


def test_what_a_group_had_before_it_was_deleted_is_forgotten_with_the_assignment() -> None:
    plan = _plan(_read({_A0: 40}, a0=50, a1=0))
    seen = Seen({_A0: (0, 90)}, _IDS, {_A0: 0})
    plan.assigned([_A0], {}, seen)
    assert plan.next(seen, None, 0).committed == {}
