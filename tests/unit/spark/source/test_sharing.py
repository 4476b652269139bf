"""What the next batch reads, for a query that is a member of a group."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kip848_client.core.types import TopicPartition
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import Planning, Seen
from kip848_client.spark.source.core._sharing import Sharing
from tests.support.examples import examples

_TPS = [TopicPartition("a", number) for number in range(3)]
_A0, _A1, _A2 = _TPS
_IDS = {"a": "id-a"}
_SEEN = Seen(dict.fromkeys(_TPS, (0, 100)), _IDS)


def _member(**positions: int) -> Sharing:
    sharing = Sharing(Planning())
    names = {"a0": _A0, "a1": _A1, "a2": _A2}
    sharing.assigned({names[name]: at for name, at in positions.items()})
    return sharing


def test_only_what_is_ours_is_read_from_where_the_group_is() -> None:
    batch = _member(a0=40, a1=100).next(Manifest(0), _SEEN, None, 0)
    assert batch == Manifest(1, {_A0: (40, 100)}, _IDS)


def test_without_partitions_there_is_nothing_to_read() -> None:
    start = Manifest(7, {_A0: (0, 5)}, _IDS)
    assert _member().next(start, _SEEN, None, 0) is start


def test_what_spark_has_is_committed_and_nothing_before() -> None:
    sharing = _member(a0=0)
    batch = sharing.next(Manifest(0), _SEEN, 10, 0)
    sharing.done(Manifest(0))
    assert sharing.to_commit == {}
    sharing.done(batch)
    assert sharing.to_commit == {_A0: 10}
    sharing.committed({_A0: 10})
    assert sharing.to_commit == {}


def test_a_commit_that_ends_late_does_not_stand_for_the_next_batch() -> None:
    sharing = _member(a0=0)
    first = sharing.next(Manifest(0), _SEEN, 10, 0)
    sharing.done(first)
    sharing.done(sharing.next(first, _SEEN, 10, 0))
    sharing.committed({_A0: 10})
    assert sharing.to_commit == {_A0: 20}


def test_a_partition_that_is_asked_back_is_free_when_its_batch_is_done() -> None:
    sharing = _member(a0=0, a1=0, a2=100)
    batch = sharing.next(Manifest(0), _SEEN, None, 0)
    sharing.asked_back([_A1, _A2])
    assert sharing.is_free([_A2])
    assert not sharing.is_free([_A1])
    sharing.done(batch)
    assert sharing.is_free([_A1])
    sharing.gone([_A1, _A2])
    assert sharing.owned == {_A0: 100}


def test_nothing_more_is_planned_of_what_is_asked_back() -> None:
    sharing = _member(a0=0, a1=0)
    sharing.asked_back([_A1])
    assert sharing.next(Manifest(0), _SEEN, None, 0).ranges == {_A0: (0, 100)}


def test_a_partition_that_was_lost_is_not_committed() -> None:
    sharing = _member(a0=0, a1=0)
    batch = sharing.next(Manifest(0), _SEEN, None, 0)
    sharing.gone([_A1])
    sharing.done(batch)
    assert sharing.to_commit == {_A0: 100}


@pytest.mark.parametrize(
    ("group_is_at", "committed", "goes_on_at"),
    [(0, {_A0: 10}, 10), (4, {_A0: 10}, 10), (25, {}, 25)],
)
def test_a_partition_that_is_lost_and_given_again_while_its_batch_runs(
    group_is_at: int, committed: dict[TopicPartition, int], goes_on_at: int
) -> None:
    sharing = _member(a0=0)
    batch = sharing.next(Manifest(0), _SEEN, 10, 0)
    sharing.gone([_A0])
    sharing.assigned({_A0: group_is_at})
    sharing.done(batch)
    assert sharing.to_commit == committed
    assert sharing.next(batch, _SEEN, 5, 0).ranges == {_A0: (goes_on_at, goes_on_at + 5)}


def test_an_offset_that_somebody_set_back_is_not_committed_over() -> None:
    sharing = _member(a0=50)
    batch = sharing.next(Manifest(0), _SEEN, 10, 0)
    sharing.gone([_A0])
    sharing.assigned({_A0: 20})
    sharing.done(batch)
    assert sharing.to_commit == {}


def test_what_comes_back_goes_on_where_the_group_is_by_then() -> None:
    sharing = _member(a0=0)
    sharing.done(sharing.next(Manifest(0), _SEEN, 10, 0))
    sharing.gone([_A0])
    sharing.assigned({_A0: 60})
    assert sharing.next(Manifest(1), _SEEN, 5, 0).ranges == {_A0: (60, 65)}


def test_a_repeated_batch_has_only_what_is_ours_and_not_committed() -> None:
    planned = Manifest(3, {_A0: (10, 50), _A1: (20, 60), _A2: (0, 30)}, _IDS)
    sharing = _member(a0=10, a2=12)
    found = sharing.repeated(planned, _IDS)
    assert found.ranges == {_A0: (10, 50), _A2: (12, 30)}
    sharing.done(planned)
    assert sharing.to_commit == {_A0: 50, _A2: 30}


def test_a_repeated_batch_leaves_what_others_have_done_or_set_back() -> None:
    planned = Manifest(3, {_A0: (10, 50), _A1: (20, 60)}, _IDS)
    assert _member(a0=50, a1=5).repeated(planned, _IDS).ranges == {}


def test_a_repeated_batch_leaves_a_topic_that_was_created_again() -> None:
    planned = Manifest(3, {_A0: (10, 50)}, {"a": "another-id"})
    assert _member(a0=10).repeated(planned, _IDS).ranges == {}


class _Group(RuleBasedStateMachine):
    """Two members (one at a time owns a partition) that crash and restart. Each offset is read by a
    batch that Spark has, once, unless a member was fenced; and nothing is left out."""

    def __init__(self) -> None:
        super().__init__()
        self.committed = dict.fromkeys(_TPS, 0)
        self.sharing = Sharing(Planning())
        self.start = Manifest(0)
        self.planned: Manifest | None = None
        self.read: Manifest | None = None
        self.sink: list[tuple[TopicPartition, int]] = []

    def _owned(self) -> bool:
        return bool(self.sharing.owned)

    @rule(tp=st.sampled_from(_TPS))
    def assign(self, tp: TopicPartition) -> None:
        if tp not in self.sharing.owned:
            self.sharing.assigned({tp: self.committed[tp]})

    @rule(limit=st.integers(1, 40))
    def ask(self, limit: int) -> None:
        """Spark asks for the next batch: the one before is in its sink and its log."""
        if self.planned is not None and self.read is not None:
            self._finish()
        found = self.sharing.next(self.start, _SEEN, limit, 0)
        if found is not self.start:
            self.planned = self.read = found

    def _finish(self) -> None:
        assert self.planned is not None
        assert self.read is not None
        for tp, (start, end) in self.read.ranges.items():
            self.sink.extend((tp, offset) for offset in range(start, end))
        self.sharing.done(self.planned)
        self.start, self.planned, self.read = self.planned, None, None
        self.committed |= self.sharing.to_commit
        self.sharing.committed(dict(self.sharing.to_commit))

    @rule(tp=st.sampled_from(_TPS), steps=st.integers(0, 20))
    def hand_over(self, tp: TopicPartition, steps: int) -> None:
        """Another member gets it, works on it and gives it back some time."""
        if tp not in self.sharing.owned:
            return
        self.sharing.asked_back([tp])
        if not self.sharing.is_free([tp]):
            self._finish()
        self.sharing.gone([tp])
        self._other_reads(tp, steps)

    @precondition(_owned)
    @rule(taken=st.sets(st.sampled_from(_TPS)), steps=st.integers(0, 20))
    def crash(self, taken: set[TopicPartition], steps: int) -> None:
        """The process dies with a batch in hand; others take some partitions; it comes back."""
        owned = sorted(self.sharing.owned)
        for tp in sorted(taken.intersection(owned)):
            self._other_reads(tp, steps)
        self.sharing = Sharing(Planning())
        kept = {tp: self.committed[tp] for tp in owned if tp not in taken}
        self.sharing.assigned(kept)
        if self.planned is not None:
            self.read = self.sharing.repeated(self.planned, _IDS)

    def _other_reads(self, tp: TopicPartition, steps: int) -> None:
        start = self.committed[tp]
        end = min(100, start + steps)
        self.sink.extend((tp, offset) for offset in range(start, end))
        self.committed[tp] = end

    @invariant()
    def each_offset_is_read_once(self) -> None:
        assert len(self.sink) == len(set(self.sink))

    @invariant()
    def what_is_committed_was_read(self) -> None:
        read = set(self.sink)
        for tp, end in self.committed.items():
            assert all((tp, offset) in read for offset in range(end))


TestGroup = _Group.TestCase
TestGroup.settings = settings(max_examples=examples(200), stateful_step_count=25)
