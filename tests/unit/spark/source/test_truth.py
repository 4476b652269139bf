"""The truth table: where a partition begins, what is read again, and what the group is told.

Each case is a row of the table, by its name; pure functions only. The sequences that led to the
rows are in ``test_truth_sequences.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._begin import (
    CommitNote,
    GroupOffset,
    Lineage,
    Log,
    OnGroupReset,
    Position,
    exclusive_begin,
    left_by_others,
    position_in,
    shared_begin,
)
from kip848_client.spark.source.core._exclusive_plan import ExclusivePlan
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._options import SourceOptions
from kip848_client.spark.source.core._ownership import (
    GroupState,
    check_unused,
    first_manifest,
    is_new_to_the_group,
    lineage_of,
    upgraded,
)
from kip848_client.spark.source.core._planning import Planning, Seen
from tests.unit.spark.source._by_hand import options_of

_A0, _A1 = TopicPartition("a", 0), TopicPartition("a", 1)
_ME = Lineage("t", 3, "g")
_LOG = Log(0, 1_000, "id-1")
_M = Position(200, "id-1", committed=100)
"""M = 200, T = 100."""


def _ours(offset: int, topic_id: str = "id-1") -> GroupOffset:
    return GroupOffset(offset, CommitNote("t", 2, 7, topic_id))


def _of_another_query(offset: int, topic_id: str = "id-1") -> GroupOffset:
    return GroupOffset(offset, CommitNote("x", 1, 1, topic_id))


_LOSSES = {
    "other topic id": (Log(3, 1_000, "id-2"), 3, "deleted and created again"),
    "M below the first record": (Log(300, 1_000, "id-1"), 300, "retention"),
    "M above the end": (Log(0, 120, "id-1"), 120, "log truncation"),
    "M above the end of its epoch": (Log(0, 1_000, "id-1", 120), 120, "log truncation"),
    "M above the end of its epoch, which retention has passed": (
        Log(150, 1_000, "id-1", 120),
        150,
        "log truncation",
    ),
}


@pytest.mark.parametrize("name", _LOSSES)
@pytest.mark.parametrize("group", [None, GroupOffset(150), _ours(150)])
def test_a_loss_is_announced(name: str, group: GroupOffset | None) -> None:
    """Any ownership; what the group has does not hide it."""
    log, at, loss = _LOSSES[name]
    alone = exclusive_begin(_A0, _M, log)
    assert (alone.at, loss in str(alone.loss)) == (at, True)
    stale = None if name == "other topic id" else group
    member = shared_begin(_A0, _M, stale, log, _ME)
    assert (member.at, loss in str(member.loss)) == (at, True)


_OTHER_TOPIC = {
    "C with the new id, of another query": (_of_another_query(40, "id-2"), 40),
    "C with the old id": (_of_another_query(40), 3),
    "our C with the old id": (_ours(40), 3),
    "foreign C, not beyond the end": (GroupOffset(40), 40),
    "foreign C beyond the end": (GroupOffset(70), 3),
    "no C": (None, 3),
}


@pytest.mark.parametrize("name", _OTHER_TOPIC)
def test_shared_other_topic_id(name: str) -> None:
    group, at = _OTHER_TOPIC[name]
    assert shared_begin(_A0, _M, group, Log(3, 60, "id-2"), _ME).at == at


@pytest.mark.parametrize(
    ("position", "at"),
    [(_M, 200), (replace(_M, is_read=False), 200), (None, 0)],
    ids=["manifest", "manifest, never read", "partition added later"],
)
def test_exclusive_begins_at_its_checkpoint(position: Position | None, at: int) -> None:
    """Whatever the group has: the rule does not get to know."""
    assert exclusive_begin(_A0, position, _LOG) == (at, None)


_SHARED: dict[str, tuple[Position | None, GroupOffset | None, int]] = {
    "never read by us, C": (replace(_M, is_read=False), GroupOffset(50), 50),
    "never read by us, C past the place": (replace(_M, is_read=False), GroupOffset(300), 300),
    "never read by us, no C": (replace(_M, is_read=False), None, 200),
    "never read by us, added later, no C": (None, None, 0),
    "never read by us, added later, C": (None, GroupOffset(30), 30),
    "no C": (_M, None, 200),
    "C > M, foreign": (_M, GroupOffset(300), 300),
    "C > M, of another query": (_M, _of_another_query(300), 300),
    "C = M, our token": (_M, _ours(200), 200),
    "T <= C <= M, our token": (_M, _ours(100), 200),
    "T <= C <= M, foreign": (_M, GroupOffset(150), 200),
    "C = T": (_M, GroupOffset(100), 200),
    "T unknown": (replace(_M, committed=None), GroupOffset(5), 200),
}


@pytest.mark.parametrize("is_running", [False, True])
@pytest.mark.parametrize("name", _SHARED)
def test_shared_begins(name: str, is_running: bool) -> None:
    """``is_running``: a lost session and its return are a restart like any other."""
    position, group, at = _SHARED[name]
    found = shared_begin(_A0, position, group, _LOG, _ME, is_running=is_running)
    assert found == (at, None)


_REFUSED = {
    "C > M, our token": (_ours(300), False, "has offset 300 for a-0, and the checkpoint has 200"),
    "C > M, our token, while running": (_ours(300), True, "another query runs with a copy"),
    "C < T, foreign": (GroupOffset(99), False, "has offset 99 for a-0, and had 100 when"),
    "C < T, our token": (_ours(99), False, "its offset was reset"),
    "C < T, while running": (GroupOffset(99), True, "its offset was reset"),
}


@pytest.mark.parametrize("name", _REFUSED)
def test_shared_refuses_with_both_numbers(name: str) -> None:
    group, is_running, said = _REFUSED[name]
    with pytest.raises(ConfigError, match=said):
        shared_begin(_A0, _M, group, _LOG, _ME, is_running=is_running)


@pytest.mark.parametrize("group", [_ours(300), GroupOffset(99)])
def test_on_group_reset_says_what_counts(group: GroupOffset) -> None:
    choices: dict[OnGroupReset, int] = {"group": group.offset, "checkpoint": 200}
    for said, at in choices.items():
        me = replace(_ME, on_reset=said)
        assert shared_begin(_A0, _M, group, _LOG, me) == (at, None)


_BATCH = Manifest(
    5, {_A0: (100, 200)}, {"a": "id-1"}, "shared", token="t", group="g", committed={_A0: 100}
)
_REPLAYS: dict[str, tuple[GroupOffset | None, tuple[int, int] | None]] = {
    "no C": (None, (100, 200)),
    "group not told": (_ours(100), (100, 200)),
    "group told": (_ours(200), (100, 200)),
    "our C inside": (_ours(150), (100, 200)),
    "foreign C at its start": (GroupOffset(100), (100, 200)),
    "foreign C before it": (GroupOffset(20), (100, 200)),
    "foreign C inside": (GroupOffset(150), (150, 200)),
    "another query's C inside": (_of_another_query(150), (150, 200)),
    "foreign C at its end": (GroupOffset(200), None),
    "foreign C past its end": (GroupOffset(300), None),
    "C of a topic of the same name": (_of_another_query(150, "id-2"), (100, 200)),
}


@pytest.mark.parametrize("name", _REPLAYS)
def test_replay_of_n(name: str) -> None:
    group, left = _REPLAYS[name]
    offsets = {} if group is None else {_A0: group}
    found = left_by_others(_BATCH, _BATCH.ranges, offsets, _ME)
    assert found == ({} if left is None else {_A0: left})


@pytest.mark.parametrize(("ownership", "left"), [("exclusive", (100, 200)), ("shared", (150, 200))])
def test_an_exclusive_query_repeats_the_whole_batch(ownership: Any, left: tuple[int, int]) -> None:
    """Unless a member planned it: then its rules count once more."""
    plan = ExclusivePlan(Planning(), _ME, replace(_BATCH, ownership=ownership))
    seen = Seen({_A0: (0, 900)}, {"a": "id-1"})
    assert plan.again({_A0: GroupOffset(150)}, seen) == {_A0: left}


@pytest.mark.parametrize(
    ("group", "at"), [(GroupOffset(300), 300), (GroupOffset(150), 200), (None, 200)]
)
def test_shared_to_exclusive_counts_others_work_once(group: GroupOffset | None, at: int) -> None:
    plan = ExclusivePlan(Planning(), _ME, _BATCH)
    seen = Seen({_A0: (0, 1_000)}, {"a": "id-1"})
    plan.take_over({} if group is None else {_A0: group}, seen)
    batch = plan.next(seen, 10, 0)
    assert batch.ranges == {_A0: (at, at + 10)}
    assert plan.next(seen, 10, 1).ranges == {_A0: (at + 10, at + 20)}, "then M counts for good"


# -- the first manifest --------------------------------------------------------------------------

_SEEN = Seen({_A0: (0, 50), _A1: (0, 50)}, {"a": "id-1"}, {_A0: 4, _A1: 4})
_PLACES = {_A0: 50, _A1: 50}
_KNOWN = GroupState(offsets={_A0: GroupOffset(20)})


def _options(ownership: str, *, starts: bool = False, group: str | None = "g") -> SourceOptions:
    starting = "latest" if starts else None
    return options_of("h:1", kafka_group_id=group, ownership=ownership, startingOffsets=starting)


@pytest.mark.parametrize(
    ("ownership", "starts", "positions", "unread"),
    [
        ("exclusive", True, {_A0: 50, _A1: 50}, frozenset()),
        ("exclusive", False, {_A0: 20, _A1: 50}, frozenset()),
        ("shared", True, _PLACES, frozenset(_PLACES)),
        ("shared", False, _PLACES, frozenset(_PLACES)),
    ],
)
def test_the_first_manifest_has_a_place_for_every_partition(
    ownership: str, starts: bool, positions: dict[TopicPartition, int], unread: object
) -> None:
    me = lineage_of(None, _options(ownership, starts=starts), "t")
    found = first_manifest(me, _options(ownership, starts=starts), _PLACES, _SEEN, _KNOWN)
    assert (found.number, found.positions, found.unread) == (0, positions, unread)
    assert (found.token, found.run, found.group, found.epochs) == ("t", 1, "g", {_A0: 4, _A1: 4})
    assert Manifest.of(found.to_json()) == found


@pytest.mark.parametrize(
    ("group", "said"),
    [
        (GroupState(has_members=True), "has members"),
        (GroupState(offsets={_A0: _of_another_query(5)}), "has the offsets of another query"),
        (GroupState(offsets={_A0: GroupOffset(5)}), None),
        (GroupState(), None),
    ],
)
def test_exclusive_without_a_manifest(group: GroupState, said: str | None) -> None:
    """It refuses a group of others, unless the user says where it begins or that it shares."""
    for options in (_options("exclusive", starts=True), _options("shared")):
        check_unused(_ME, options, group)
    if said is None:
        check_unused(_ME, _options("exclusive"), group)
        return
    with pytest.raises(ConfigError, match=f"{said}.*startingOffsets.*ownership=shared"):
        check_unused(_ME, _options("exclusive"), group)


# -- checkpoints of another ownership, group or version ------------------------------------------

_EXCLUSIVE = replace(_BATCH, ownership="exclusive")
_TAKEN = GroupState(has_members=True)


@pytest.mark.parametrize(
    ("kept", "group", "found"),
    [
        (_BATCH, _KNOWN, False),
        (_BATCH, _TAKEN, False),
        (_EXCLUSIVE, _KNOWN, True),
        (_EXCLUSIVE, _TAKEN, "has members"),
        (replace(_BATCH, group="h"), GroupState(), True),
        (replace(_BATCH, group="h"), _KNOWN, "written for group 'h', and group 'g' has offsets"),
        (replace(_BATCH, group="h", number=0), _KNOWN, False),
    ],
    ids=[
        "same group",
        "same group with members",
        "exclusive -> shared, group empty",
        "exclusive -> shared, group has members",
        "other group name, without offsets",
        "other group name, with offsets",
        "other group name, nothing read yet",
    ],
)
def test_is_new_to_the_group(kept: Manifest, group: GroupState, found: bool | str) -> None:
    if isinstance(found, bool):
        assert is_new_to_the_group(kept, _options("shared"), group) is found
        return
    with pytest.raises(ConfigError, match=found):
        is_new_to_the_group(kept, _options("shared"), group)


def test_an_exclusive_query_does_not_ask_its_group() -> None:
    assert not is_new_to_the_group(_EXCLUSIVE, _options("exclusive"), _TAKEN)


def test_an_old_manifest_begins_at_c_where_it_lacks_a_position() -> None:
    old = Manifest(5, {_A0: (100, 200)}, {"a": "id-1"}, version=1)
    group = GroupState(offsets={_A0: _ours(150), _A1: GroupOffset(30)})
    found = upgraded(old, _SEEN, group)
    assert found.ends == {_A0: 200, _A1: 30}
    assert found.unread == {_A1}
    position = position_in(found, _A1)
    assert position is not None
    assert shared_begin(_A1, position, GroupOffset(35), _LOG, _ME).at == 35
    with pytest.raises(ConfigError, match="no position for a-1"):
        upgraded(old, _SEEN, GroupState())
