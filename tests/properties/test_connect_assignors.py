"""Laws of Connect's assignors, over random histories of groups; and that one declarative
computation is what Kafka's assignor reaches in a round and the one that follows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.connect import (
    ConnectAssignor,
    ConnectorTaskId,
    EagerAssignor,
    IncrementalCooperativeAssignor,
    IncrementalMemory,
    Items,
    ReturningWorker,
    Round,
    RoundMemory,
    SpreadAssignor,
    TargetAssignment,
    incremental_round,
    items_of,
)
from kip848_client.core.connect._item_sets import ItemSet, as_set
from tests.support.connect.group import PlayedGroup
from tests.support.connect.sequences import Cluster
from tests.support.examples import examples

SEEDS = st.integers(0, 2**63)
COMPUTATIONS = 10


def _histories(seed: int, make: type[ConnectAssignor], **extra: object) -> Iterator[PlayedGroup]:
    """The group before each computation of a random history; the caller computes."""
    cluster = Cluster(random.Random(seed))
    cluster.begin()
    kept = {"scheduled_rebalance_max_delay_ms": cluster.max_delay_ms, **extra}
    group = PlayedGroup(make(**kept) if make is not EagerAssignor else make())
    for _ in range(COMPUTATIONS):
        group.leave(*(each for each in list(group.workers) if each not in cluster.workers))
        group.join(*(each for each in cluster.workers if each not in group.workers))
        group.connectors = dict(cluster.connectors)
        group.now_ms = cluster.now_ms
        yield group
        cluster.change()


def _java(group: PlayedGroup, max_delay_ms: int) -> tuple[Round, Mapping[str, Items]]:
    """What Kafka's assignor would do about the group, in a round and the one that follows."""
    known = group.memory if isinstance(group.memory, IncrementalMemory) else IncrementalMemory()
    left = as_set(group.last.deferred)
    for items in known.targets.values():
        left |= items
    memory = RoundMemory(
        assigned=left,
        waiting=known.waiting,
        generation=1,
        workers=frozenset(known.targets),
    )
    runs: Mapping[str, Items] = {each: row.target for each, row in group.workers.items()}
    for number in (2, 3):
        done = incremental_round(
            group.connectors,
            runs,
            memory,
            now_ms=group.now_ms,
            completed=number - 1,
            generation=number,
            max_delay_ms=max_delay_ms,
            java_order=False,
        )
        runs, memory = {each: row.runs for each, row in done.workers.items()}, done.memory
        if not any(row.stop for row in done.workers.values()):
            break
    return done, runs


def _sets(held: Mapping[str, Items]) -> dict[str, ItemSet]:
    return {each: as_set(items) for each, items in held.items()}


@settings(max_examples=examples(1_000))
@given(SEEDS)
def test_a_computation_is_javas_round_and_the_one_that_follows(seed: int) -> None:
    for group in _histories(
        seed, IncrementalCooperativeAssignor, returning_worker=ReturningWorker.WAIT
    ):
        max_delay_ms = Cluster(random.Random(seed)).begin().max_delay_ms
        done, runs = _java(group, max_delay_ms)
        target = group.compute()
        assert _sets(target.workers) == _sets(runs)
        assert target.delay_ms == done.delay_ms
        assert isinstance(group.memory, IncrementalMemory)
        assert group.memory.waiting == done.memory.waiting
        everything = as_set(items_of(group.connectors))
        assert as_set(target.deferred) == everything - _held(target)


def _held(target: TargetAssignment) -> ItemSet:
    found = ItemSet()
    for items in target.workers.values():
        found |= as_set(items)
    return found


@pytest.mark.parametrize("returning", ReturningWorker)
@pytest.mark.parametrize("make", [IncrementalCooperativeAssignor, SpreadAssignor])
@settings(max_examples=examples(200))
@given(seed=SEEDS)
def test_laws_of_the_incremental_ones(
    make: type[ConnectAssignor], returning: ReturningWorker, seed: int
) -> None:
    deadline: int | None = None
    for group in _histories(seed, make, returning_worker=returning):
        before = {each: as_set(row.target) for each, row in group.workers.items()}
        candidates, kept_for_others = _candidates(group), group.last.deferred
        target = group.compute()  # checked: each item once, nothing that is not configured
        if target.delay_ms == 0:
            assert not target.deferred
            _even(target)
            if not kept_for_others:
                _fewest_moves(group, before)
            _few_moves(group, before, candidates)
        at = group.now_ms + target.delay_ms if target.deferred else None
        assert at is None or deadline is None or at <= deadline  # one outage, one deadline
        deadline = at
        assert group.compute() == target  # with nothing changed


def _candidates(group: PlayedGroup) -> tuple[str, ...]:
    assert group.memory is None or isinstance(group.memory, IncrementalMemory)
    return group.memory.waiting.candidates if group.memory else ()


def _even(target: TargetAssignment) -> None:
    for counts in (
        [len(items.connectors) for items in target.workers.values()],
        [len(items.tasks) for items in target.workers.values()],
    ):
        assert max(counts) - min(counts) <= 1


def _few_moves(
    group: PlayedGroup, before: Mapping[str, ItemSet], candidates: tuple[str, ...]
) -> None:
    """Who has no more than its share loses nothing, but for what is deleted."""
    everything = as_set(items_of(group.connectors))
    for of_kind in (_connectors, _tasks):
        share = len(of_kind(everything)) // len(before)
        for worker, items in before.items():
            had = of_kind(items) & of_kind(everything)
            kept = had & of_kind(as_set(group.last.workers[worker]))
            if worker in candidates:
                continue
            assert len(kept) >= min(len(had), share)


def _fewest_moves(group: PlayedGroup, before: Mapping[str, ItemSet]) -> None:
    """No even load can be had with fewer."""
    everything = as_set(items_of(group.connectors))
    for of_kind in (_connectors, _tasks):
        share, extra = divmod(len(of_kind(everything)), len(before))
        had = {each: of_kind(items) & of_kind(everything) for each, items in before.items()}
        above = [len(items) - share for items in had.values() if len(items) > share]
        moved = sum(
            len(items - of_kind(as_set(group.last.workers[each]))) for each, items in had.items()
        )
        assert moved == sum(above) - min(extra, len(above))


def _connectors(items: ItemSet) -> frozenset[object]:
    return frozenset(items.connectors)


def _tasks(items: ItemSet) -> frozenset[object]:
    return frozenset(items.tasks)


@settings(max_examples=examples(100))
@given(SEEDS)
def test_eager_deals_everything(seed: int) -> None:
    for group in _histories(seed, EagerAssignor):
        target = group.compute()
        assert not target.deferred
        assert target.delay_ms == 0
        _even(target)
        counts = [len(items) for items in target.workers.values()]
        assert max(counts) - min(counts) <= 1


@settings(max_examples=examples(200))
@given(st.integers(1, 8), st.lists(st.integers(0, 12), max_size=6))
def test_spread_has_the_tasks_of_each_connector_at_all_workers(
    workers: int, tasks: list[int]
) -> None:
    group = PlayedGroup(
        SpreadAssignor(), {f"c{number}": count for number, count in enumerate(tasks)}
    )
    group.join(*(f"w{number}" for number in range(workers)))
    target = group.compute()
    for connector, count in group.connectors.items():
        found = [_of(connector, items.tasks) for items in target.workers.values()]
        assert max(found) <= -(-count // workers) + 1, target


def _of(connector: str, tasks: tuple[ConnectorTaskId, ...]) -> int:
    return Counter(name for name, _ in tasks)[connector]
