"""What the next batch reads, for a query that has all partitions to itself."""

from __future__ import annotations

import pytest

from kip848_client.core.types import TopicPartition
from kip848_client.spark.source.core._begin import CommitNote, GroupOffset, Lineage
from kip848_client.spark.source.core._exclusive_plan import COMMIT_ALL_MS, ExclusivePlan
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import DataLost, Planning, Seen

_A0, _A1, _B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
_IDS = {"a": "id-a", "b": "id-b"}
_ME = Lineage("token", 2, "g")
_START = Manifest(4, {_A0: (0, 10)}, {"a": "id-a"}, "exclusive", {_A1: 5}, token="token", run=1)


def _seen(**ends: int) -> Seen:
    names = {"a0": _A0, "a1": _A1, "b0": _B0}
    return Seen({names[name]: (0, end) for name, end in ends.items()}, _IDS)


def _plan(planning: Planning | None = None, kept: Manifest = _START) -> ExclusivePlan:
    return ExclusivePlan(planning or Planning(), _ME, kept)


def test_a_batch_has_a_position_for_each_partition() -> None:
    batch = _plan().next(_seen(a0=15, a1=5), None, 0)
    assert (batch.number, batch.ranges, batch.positions) == (5, {_A0: (10, 15)}, {_A1: 5})
    assert (batch.token, batch.run, batch.group, batch.ownership) == ("token", 2, "g", "exclusive")
    assert batch.topic_ids == _IDS


def test_nothing_new_is_the_same_manifest() -> None:
    assert _plan().next(_seen(a0=10, a1=5), None, 0) is _START


def test_another_leader_epoch_alone_makes_no_batch() -> None:
    """Spark compares texts: a manifest with another text is a batch."""
    seen = Seen({_A0: (0, 10), _A1: (0, 5)}, _IDS, {_A0: 7, _A1: 7}, {_A0: 10, _A1: 5})
    plan = _plan()
    assert plan.next(seen, None, 0) is _START
    more = Seen({_A0: (0, 11), _A1: (0, 5)}, _IDS, {_A0: 7, _A1: 7})
    assert plan.next(more, None, 0).epochs == {_A0: 7, _A1: 7}


def test_a_log_that_was_cut_and_has_grown_again_is_noticed_by_its_epoch() -> None:
    seen = Seen({_A0: (0, 400), _A1: (0, 5)}, _IDS, {_A0: 7}, {_A0: 4})
    with pytest.raises(DataLost, match="a-0 ends at 4 and was read up to 10: log truncation"):
        _plan().next(seen, None, 0)
    batch = _plan(Planning(fails_on_data_loss=False)).next(seen, None, 0)
    assert batch.ranges == {_A0: (4, 400)}


def test_a_new_partition_is_read_from_its_begin() -> None:
    seen = Seen({_A0: (0, 10), _A1: (0, 5), _B0: (3, 7)}, _IDS)
    assert _plan().next(seen, None, 0).ranges[_B0] == (3, 7)


def test_less_than_the_minimum_is_waited_for_until_the_delay_is_over() -> None:
    plan = _plan(Planning(at_least=100, delay_ms=1_000))
    assert plan.next(_seen(a0=20, a1=5), None, 0) is _START
    assert plan.next(_seen(a0=20, a1=5), None, 999) is _START
    batch = plan.next(_seen(a0=20, a1=5), None, 1_000)
    assert batch.ranges[_A0] == (10, 20)
    assert plan.next(_seen(a0=30, a1=5), None, 1_001) is batch
    assert plan.next(_seen(a0=120, a1=5), None, 1_002).ranges[_A0] == (20, 120)


def test_available_now_reads_what_was_there_and_no_minimum_holds_it_up() -> None:
    plan = _plan(Planning(at_least=100, delay_ms=1_000, until={_A0: 14, _A1: 5}))
    batch = plan.next(_seen(a0=20, a1=9, b0=4), 3, 0)
    assert (batch.ranges, batch.positions) == ({_A0: (10, 13)}, {_A1: 5, _B0: 0})
    batch = plan.next(_seen(a0=20, a1=9, b0=4), 3, 0)
    assert batch.ranges[_A0] == (13, 14)
    assert plan.next(_seen(a0=20, a1=9, b0=4), 3, 0) is batch


_OTHER = Seen({_A0: (0, 10), _A1: (0, 5)}, {"a": "another-id"})
_LOSSES = [
    (
        Seen({_A0: (12, 15), _A1: (0, 5)}, _IDS),
        "starts at 12: older records were deleted",
        (12, 15),
    ),
    (Seen({_A0: (0, 4), _A1: (0, 5)}, _IDS), "ends at 4 and was read up to 10", None),
    (_OTHER, "deleted and created again", (0, 10)),
    (Seen({_A1: (0, 5)}, _IDS), "a-0 was read up to 10 and no longer exists", None),
]


@pytest.mark.parametrize(("seen", "text", "_continues"), _LOSSES)
def test_what_is_lost_ends_the_query(seen: Seen, text: str, _continues: object) -> None:
    with pytest.raises(DataLost, match=f"{text}.*failOnDataLoss=false"):
        _plan().next(seen, None, 0)


@pytest.mark.parametrize(("seen", "text", "continues"), _LOSSES)
def test_or_is_logged_and_the_query_continues(
    seen: Seen, text: str, continues: tuple[int, int] | None
) -> None:
    planning = Planning(fails_on_data_loss=False)
    batch = _plan(planning).next(seen, None, 0)
    assert text in planning.losses[0]
    if continues is None:
        assert batch is _START
    else:
        assert batch.ranges[_A0] == continues


def test_a_batch_of_an_earlier_run_is_looked_at_before_it_is_read() -> None:
    batch = Manifest(5, {_A0: (10, 15)}, {"a": "id-a"}, "exclusive", {_A1: 5})
    again = _plan(kept=batch).again({}, Seen({_A0: (10, 15), _A1: (9, 9)}, _IDS))
    assert again == {_A0: (10, 15)}
    with pytest.raises(DataLost, match="starts at 11"):
        _plan(kept=batch).again({}, Seen({_A0: (11, 15), _A1: (9, 9)}, _IDS))
    with pytest.raises(DataLost, match="was deleted before 10 to 15 was read"):
        _plan(kept=batch).again({}, Seen({_A0: (0, 15), _A1: (9, 9)}, {"a": "another-id"}))
    with pytest.raises(DataLost, match="was deleted before"):
        _plan(kept=batch).again({}, Seen({}, {}))


def test_the_group_hears_of_positions_at_once_of_changes_then_and_of_all_once_a_day() -> None:
    plan = _plan()
    plan.is_done(_START)
    assert plan.to_commit(0) == {_A0: 10, _A1: 5}
    plan.is_committed({_A0: 10, _A1: 5}, 0)
    assert plan.to_commit(1) == {}
    batch = plan.next(_seen(a0=15, a1=5), None, 0)
    assert plan.to_commit(1) == {}, "Spark's log of commits does not have it yet"
    plan.is_done(batch)
    assert plan.to_commit(1) == {_A0: 15}
    plan.is_committed({_A0: 15}, 1)
    assert plan.to_commit(COMMIT_ALL_MS) == {_A0: 15, _A1: 5}


def test_a_late_report_of_an_earlier_batch_takes_nothing_back() -> None:
    """The control channel and Spark report batches side by side."""
    plan = _plan()
    first = plan.next(_seen(a0=15, a1=5), None, 0)
    plan.is_done(first)
    second = plan.next(_seen(a0=20, a1=5), None, 0)
    plan.is_done(second)
    plan.is_done(first)
    assert plan.to_commit(0) == {_A0: 20, _A1: 5}


def test_offsets_of_others_are_named_before_they_are_overwritten() -> None:
    plan = _plan()
    plan.is_done(_START)
    ours = CommitNote("token", 1, 3, "id-a")
    assert plan.overwritten({_A0: GroupOffset(900), _A1: GroupOffset(2, ours)}) == {_A0: (900, 10)}
    assert plan.overwritten({_A0: GroupOffset(900, ours)}) == {_A0: (900, 10)}
    assert plan.overwritten({_A0: GroupOffset(10)}) == {}


def test_a_members_checkpoint_counts_by_a_members_rules_once() -> None:
    plan = _plan(kept=Manifest(4, {_A0: (0, 10)}, {"a": "id-a"}, "shared", {_A1: 5}, token="token"))
    plan.take_over({_A0: GroupOffset(12), _A1: GroupOffset(3)}, _seen(a0=20, a1=20))
    plan.is_done(plan.kept)
    assert plan.to_commit(0) == {_A0: 12, _A1: 5}
    batch = plan.next(_seen(a0=20, a1=20), None, 0)
    assert batch.ranges == {_A0: (12, 20), _A1: (5, 20)}
    assert batch.ownership == "exclusive"
