"""Connect groups under whatever workers do, in whatever order: what must hold all the time, and
that it comes to an end."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from mock_coordinator.core.groups.records.state_records import StateRecord
from tests.support.examples import examples
from tests.unit.mock_coordinator.groups._group_harness import ALL_PROFILES
from tests.unit.mock_coordinator.groups.connect._connect_harness import (
    ConnectGroupHarness,
    Item,
    Worker,
    is_settled,
)

PLACES = (("W1", None), ("W2", None), ("W3", "i3"), ("W4", "i3"))
"""Workers; the last two fight for one instance id."""
CONNECTORS = {"A": 3, "B": 1}


def universe(generation: int) -> list[Item]:
    """All connectors with their tasks, those of A in this generation."""
    return [
        (name, -1 if task < 0 else generation if name == "A" else 0, task)
        for name, tasks in CONNECTORS.items()
        for task in range(-1, tasks)
    ]


@settings(max_examples=examples(80))
@given(st.data())
def test_whatever_workers_do(data: st.DataObject) -> None:
    harness = ConnectGroupHarness(data.draw(st.sampled_from(ALL_PROFILES)))
    generation = 1
    for _ in range(data.draw(st.integers(1, 45))):
        worker = harness.worker(*data.draw(st.sampled_from(PLACES)))
        what = data.draw(st.integers(0, 19))
        if worker.computes and what < 14:
            generation += data.draw(st.sampled_from([0, 0, 1]))
            compute(harness, worker, generation, data)
        elif what < 15:
            harness.beat(
                worker,
                reports=data.draw(st.booleans()),
                lost=data.draw(st.sampled_from([False, False, False, True])),
                reason=data.draw(st.sampled_from([0, 0, 0, 2])),
            )
        elif what == 15:
            harness.leave(worker, temporarily=worker.instance_id is not None)
        elif what < 18:
            harness.base.pass_ms(data.draw(st.sampled_from([1_000, 9_000, 11_000, 46_000])))
            harness.check()
        else:
            harness.base.restart()
            harness.check()
    replays_are_the_same(harness)
    settles(harness, generation)
    replays_are_the_same(harness)


def compute(
    harness: ConnectGroupHarness, worker: Worker, generation: int, data: st.DataObject
) -> None:
    """Install something: right, incomplete, of mixed generations, or plainly wrong."""
    prepared = harness.prepare(worker)
    if prepared.error_code:
        worker.computes = False
        return
    members = [each.member_id for each in prepared.members]
    places = st.sampled_from([*members, *members, "deferred", "nowhere"])
    to: dict[str, set[Item]] = {member_id: set() for member_id in members}
    deferred = set[Item]()
    mixed = data.draw(st.integers(0, 9)) == 0
    for connector, number, task in universe(generation):
        older = mixed and number > 0 and data.draw(st.booleans())
        item = (connector, number - 1 if older else number, task)
        place = data.draw(places)
        if place == "deferred":
            deferred.add(item)
        elif place != "nowhere":
            to[place].add(item)
    wrong = data.draw(st.sampled_from([0] * 12 + [1, 2, 3, 4]))
    error = 1 if wrong == 1 else 0
    if wrong == 2:
        to["W9"] = set()
    if wrong == 3:
        to[members[0]].add(("B", 0, 0))
        deferred.add(("B", 1, 0))
    code = harness.install(
        worker, prepared.group_epoch - (wrong == 4), to, deferred, error=error, metadata=b"m"
    )
    assert bool(code) == (wrong > 1), (wrong, code)


def settles(harness: ConnectGroupHarness, generation: int) -> None:
    """From wherever it is, a group of well-behaved workers comes to run everything."""
    harness.base.pass_ms(46_000)
    for member_id, _ in PLACES:
        if harness.workers.get(member_id):
            harness.workers[member_id].drop()
    alive = [harness.worker("W1"), harness.worker("W2"), harness.worker("W3", "i3")]
    everything = universe(generation)

    def place(members: list[str]) -> dict[str, set[Item]]:
        return {
            member_id: set(everything[number :: len(members)])
            for number, member_id in enumerate(members)
        }

    for _ in range(12):
        for worker in alive:
            harness.beat(worker)
            if worker.computes:
                _, code = harness.compute(worker, place)
                assert code == 0
    assert is_settled(harness.group), harness.group
    assert harness.group.state == "Stable"
    running = [item for worker in alive for item in worker.runs]
    assert sorted(running) == sorted(everything)


def replays_are_the_same(harness: ConnectGroupHarness) -> None:
    """What a coordinator knows that takes over, from the log and from the compacted log."""
    records = harness.base.groups.records
    for kept in (records, compacted(records)):
        copy = harness.replayed(kept)
        assert copy.group_ids == harness.base.groups.group_ids
        for group_id in copy.group_ids:
            living, again = harness.base.groups.snapshot(group_id), copy.snapshot(group_id)
            assert living is not None
            assert again is not None
            assert again.without_timers() == living.without_timers()


def compacted(records: Sequence[StateRecord]) -> list[StateRecord]:
    """The last record of every key."""
    last = {record.key: number for number, record in enumerate(records)}
    return [record for number, record in enumerate(records) if last[record.key] == number]
