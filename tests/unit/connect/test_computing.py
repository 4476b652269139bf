"""Workers that compute with the assignors of the package, and with ones that fail."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from kip848_client.connect.core import (
    AssignorVersions,
    ComputeTarget,
    Configuration,
    ConfigurationRead,
    ConnectorTasks,
    InstallTarget,
    ReadConfiguration,
    RebalanceRequested,
    StopItems,
    TellAssignors,
)
from kip848_client.core.connect import (
    AssignmentMetadata,
    AssignorMetadata,
    Computed,
    ConnectAssignor,
    IncrementalCooperativeAssignor,
    NewWorkerAssignment,
    RebalanceReason,
    TargetAssignment,
    WorkerGroup,
)
from kip848_client.core.member import Fenced, MemberState
from tests.unit.connect import _workers
from tests.unit.connect._workers import connector, task

A, A0, A1, B, B0 = connector("a"), task("a", 0), task("a", 1), connector("b"), task("b", 0)
ALL = {A, A0, A1, B, B0}
DELAY_MS = 30_000


class Failing(IncrementalCooperativeAssignor):
    """Does, for some calls, what it is told to."""

    def __init__(self, *instead: Any) -> None:
        super().__init__(scheduled_rebalance_max_delay_ms=DELAY_MS)
        self.instead = list(instead)

    def assign(self, group: WorkerGroup, memory: object = None) -> Computed:
        if not self.instead:
            return super().assign(group, memory)
        what = self.instead.pop(0)
        if isinstance(what, Exception):
            raise what
        result: Computed = what
        return result


def group_of(*names: str, assignor: ConnectAssignor | None = None) -> _workers.WorkerGroup:
    """Workers that have come to rest."""
    chosen = assignor or IncrementalCooperativeAssignor(scheduled_rebalance_max_delay_ms=DELAY_MS)
    group = _workers.WorkerGroup(chosen)
    for name in names:
        group.worker(name)
        group.run(12_000)
    return group


def running(group: _workers.WorkerGroup) -> set[Any]:
    return set().union(*(worker.runs for worker in group.workers.values()))


def test_workers_share_what_is_configured() -> None:
    group = group_of("w1", "w2")
    assert running(group) == ALL
    assert sorted(len(worker.runs) for worker in group.workers.values()) == [2, 3]


def test_what_a_killed_worker_ran_waits_for_it_and_then_goes_to_others() -> None:
    group = group_of("w1", "w2", "w3")
    gone = group.workers["w2"].runs
    group.kill("w2")
    group.run(60_000)
    assert running(group) == ALL - gone

    group.run(DELAY_MS + 10_000)

    assert running(group) == ALL


def test_a_worker_that_comes_back_in_time_gets_its_own_back_at_once() -> None:
    group = group_of("w1", "w2", "w3")
    gone = set(group.workers["w2"].runs)
    stops = sum(len(each.all(StopItems)) for each in group.workers.values())
    group.kill("w2")
    group.run(50_000)
    group.worker("w4", host="w2")
    group.run(12_000)

    assert group.workers["w4"].runs == gone
    assert running(group) == ALL
    others = [group.workers[name] for name in ("w1", "w3")]
    assert sum(len(each.all(StopItems)) for each in others) <= stops  # nobody else gave anything up


def test_the_wait_goes_on_with_another_worker_when_the_one_that_computes_is_killed() -> None:
    group = group_of("w1", "w2", "w3")
    leader = group.workers["w3"].core.leader
    lost = next(name for name in ("w2", "w3") if name != leader)
    group.kill(lost)
    group.run(55_000)
    waiting = ALL - running(group)
    assert waiting
    group.kill(leader)
    group.run(60_000 + DELAY_MS + 20_000)

    assert running(group) == ALL


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        (RuntimeError("no"), "assign() raised RuntimeError: no"),
        (None, "expected Computed"),
        (Computed(TargetAssignment({})), "is forgotten"),
        (Computed(TargetAssignment({"nobody": _workers.plain({A})})), "there is no worker"),
        (
            Computed(TargetAssignment({"w1": _workers.plain(ALL), "w2": _workers.plain({A0})})),
            "a-0 is given twice",
        ),
    ],
)
def test_an_assignor_that_fails_costs_nobody_what_it_runs(instead: Any, said: str) -> None:
    group = group_of("w1", "w2", assignor=Failing())
    before = {name: set(worker.runs) for name, worker in group.workers.items()}
    group.assignor = Failing(instead)

    group.workers["w1"].feed(RebalanceRequested(RebalanceReason.WORKER_CHANGED))
    group.run(200)
    assert {name: worker.runs for name, worker in group.workers.items()} == before
    group.run(20_000)

    assert running(group) == ALL
    told = [each for worker in group.workers.values() for each in worker.errors]
    assert len(told) == 1
    assert said in told[0]
    installs = [each for w in group.workers.values() for each in w.all(InstallTarget)]
    assert installs[-2].target.error < 0 == installs[-1].target.error  # it was tried again
    assert [each.assignment.error for each in group.workers["w1"].all(TellAssignors)][-2:] == [
        -1,
        0,
    ]


def test_assignors_are_told_of_each_assignment_once() -> None:
    group = group_of("w1", "w2", "w3")
    for worker in group.workers.values():
        told = [each.assignment for each in worker.all(TellAssignors)]
        assert told[-1].items == _workers.plain(worker.runs)
        assert told[-1].delay_ms == 0
        assert all(before != after for before, after in pairwise(told))
    group.kill("w2")
    group.run(60_000)
    told = [each.assignment for each in group.workers["w1"].all(TellAssignors)]
    assert told[-1].delay_ms == DELAY_MS
    before = len(told)
    group.run(20_000)
    assert len(group.workers["w1"].all(TellAssignors)) == before  # heartbeats alone say nothing


class Saying(IncrementalCooperativeAssignor):
    """Says something to each worker, and remembers what each has said."""

    def __init__(self) -> None:
        super().__init__(scheduled_rebalance_max_delay_ms=DELAY_MS)
        self.heard: list[dict[str, tuple[bytes, int]]] = []
        self.error = 0

    def assign(self, group: WorkerGroup, memory: object = None) -> Computed:
        said = {each: worker.metadata for each, worker in group.workers.items()}
        self.heard.append({each: (data.data, data.reason) for each, data in said.items()})
        target, after = super().assign(group, memory)
        metadata = {
            each: AssignmentMetadata(f"{each} of {len(said)}".encode(), error=self.error)
            for each in said
        }
        return Computed(replace(target, metadata=metadata), after)


def told_last(group: _workers.WorkerGroup, name: str) -> NewWorkerAssignment:
    return group.workers[name].all(TellAssignors)[-1].assignment


def test_what_an_assignor_says_to_each_worker_arrives_with_its_assignment() -> None:
    assignor = Saying()
    group = group_of("w1", "w2", assignor=assignor)
    for name in ("w1", "w2"):
        told = told_last(group, name)
        assert (told.data, told.version, told.error) == (f"{name} of 2".encode(), 2, 0)
        assert told.member_id == name
    assert running(group) == ALL
    assert group.workers["w1"].core.leader  # what every assignment says is read as before
    assignor.error = 7
    group.workers["w2"].feed(RebalanceRequested(64))
    group.run(12_000)
    assert [told_last(group, name).error for name in ("w1", "w2")] == [7, 7]
    assert running(group) == ALL  # an error of one worker stops nothing


def test_what_is_said_is_of_the_version_that_the_assignor_names() -> None:
    class InVersion1(Saying):
        def assign(self, group: WorkerGroup, memory: object = None) -> Computed:
            target, after = super().assign(group, memory)
            said = {
                each: replace(metadata, version=1) for each, metadata in target.metadata.items()
            }
            return Computed(replace(target, metadata=said), after)

    group = group_of("w1", assignor=InVersion1())
    told = told_last(group, "w1")
    assert (told.data, told.version) == (b"w1 of 1", 1)
    assert running(group) == ALL


def test_a_version_that_a_worker_does_not_read_is_refused_and_told() -> None:
    class InVersion3(Saying):
        def assign(self, group: WorkerGroup, memory: object = None) -> Computed:
            target, after = super().assign(group, memory)
            said = {each: AssignmentMetadata(b"x", version=3) for each in group.workers}
            return Computed(replace(target, metadata=said), after)

    group = group_of("w1", assignor=InVersion3())
    assert any("versions 1 to 2, not 3" in each for each in group.workers["w1"].errors)
    assert not group.workers["w1"].runs


def test_a_worker_that_says_something_else_is_heard_with_its_reason() -> None:
    assignor = Saying()
    group = group_of("w1", "w2", assignor=assignor)
    computed = len(assignor.heard)
    new = (
        AssignorVersions("incremental-cooperative", 1, 2, AssignorMetadata(b"half", 2, reason=99)),
    )
    group.workers["w2"].feed(RebalanceRequested(64, new))
    group.run(12_000)
    assert assignor.heard[computed:] == [{"w1": (b"", 0), "w2": (b"half", 99)}]

    group.workers["w2"].feed(RebalanceRequested(RebalanceReason.CONFIGURATION_CHANGED))
    group.run(12_000)
    assert assignor.heard[computed + 1 :] == [{"w1": (b"", 0), "w2": (b"half", 2)}]


def test_a_worker_without_a_reason_of_its_assignor_tells_its_own() -> None:
    assignor = Saying()
    group = group_of("w1", assignor=assignor)
    said = (AssignorVersions("incremental-cooperative", 1, 2, AssignorMetadata(b"", 2)),)
    group.workers["w1"].feed(RebalanceRequested(64, said))
    group.run(12_000)
    assert assignor.heard[-1] == {"w1": (b"", 64)}


def computes_next(group: _workers.WorkerGroup, asks: str) -> tuple[str, ComputeTarget]:
    """Who computes when ``asks`` asks for it, and what it is given."""
    before = {name: len(worker.all(ComputeTarget)) for name, worker in group.workers.items()}
    group.workers[asks].feed(RebalanceRequested(64))
    group.run(20_000)
    [found] = [
        (name, worker.all(ComputeTarget)[-1])
        for name, worker in group.workers.items()
        if len(worker.all(ComputeTarget)) > before[name]
    ]
    return found


def test_a_memory_is_given_back_to_the_worker_that_goes_on_computing() -> None:
    group = group_of("w1", "w2")
    name, given = computes_next(group, "w2")
    assert name == group.workers[name].core.leader
    assert given.memory is not None


def test_a_memory_from_before_another_worker_computed_is_not_given() -> None:
    group = group_of("w1", "w2")
    first = group.workers["w1"].core.leader
    second = "w2" if first == "w1" else "w1"
    group.workers[first].cut_off = True
    group.run(60_000)
    assert group.workers[second].core.leader == second  # it has computed meanwhile
    group.workers[first].cut_off = False
    group.run(60_000)
    group.kill(second)
    asked = len(group.workers[first].all(ComputeTarget))
    group.run(60_000 + DELAY_MS)
    given = group.workers[first].all(ComputeTarget)[asked]
    assert given.memory is None
    assert running(group) == ALL


def test_a_memory_is_dropped_by_a_worker_that_was_passed_over() -> None:
    """It stays in the group, and hears of the assignment that another has computed."""
    group = group_of("w1", "w2")
    first = group.workers["w1"].core.leader
    second = "w2" if first == "w1" else "w1"
    group.workers[first].cut_off = True
    group.workers[second].feed(RebalanceRequested(64))
    group.run(30_000)
    group.workers[first].cut_off = False
    group.run(15_000)
    assert not group.workers[first].all(Fenced)
    assert group.workers[first].core.leader == second
    group.kill(second)
    asked = len(group.workers[first].all(ComputeTarget))
    group.run(60_000)
    assert group.workers[first].all(ComputeTarget)[asked].memory is None


def test_a_worker_that_is_put_out_does_not_ask_again_for_what_failed_before() -> None:
    assignor = Failing()
    group = group_of("w1", "w2", assignor=assignor)
    worker = group.workers[group.workers["w1"].core.leader]
    assignor.instead = [RuntimeError("no")] * 10  # the pause grows to a minute
    worker.feed(RebalanceRequested(64))
    while assignor.instead:
        group.run(500)
    worker.cut_off = True
    group.run(46_000)
    assert worker.all(Fenced)
    worker.cut_off = False
    group.run(6_000)
    assert worker.core.state is MemberState.STABLE

    def asked() -> int:
        return sum(len(each.all(ComputeTarget)) for each in group.workers.values())

    before = asked()
    group.run(25_000)  # the pause ends meanwhile
    assert asked() == before
    group.run(DELAY_MS + 30_000)
    assert running(group) == ALL


def test_an_assignor_that_always_fails_is_asked_more_and_more_rarely() -> None:
    group = group_of("w1", assignor=Failing(*[RuntimeError("no")] * 1_000))
    asked = len(group.workers["w1"].all(ComputeTarget))
    group.run(600_000)
    assert 5 < len(group.workers["w1"].all(ComputeTarget)) - asked < 20
    assert not group.workers["w1"].runs


def test_who_computes_reads_what_others_know_first() -> None:
    group = group_of("w1")
    worker = group.workers["w1"]
    worker.can_read = False
    connectors = {**group.configuration.connectors, "c": ConnectorTasks(0, 1)}
    group.configuration = Configuration(7, connectors)
    group.worker("w2")
    group.run(5_000)
    assert worker.all(ReadConfiguration) == [ReadConfiguration(7)]
    assert group.workers["w2"].runs == set()

    worker.feed(ConfigurationRead(group.configuration))
    group.run(12_000)

    assert running(group) == {*ALL, connector("c")}


def test_a_new_generation_of_tasks_replaces_the_old_one() -> None:
    group = group_of("w1", "w2")
    connectors = {"a": ConnectorTasks(3, 2), "b": ConnectorTasks(1, 1)}
    group.configuration = Configuration(2, connectors)
    for worker in group.workers.values():
        worker.feed(ConfigurationRead(group.configuration))
    group.workers["w1"].feed(RebalanceRequested(RebalanceReason.CONFIGURATION_CHANGED))
    group.run(20_000)

    assert running(group) == {A, B, B0, *(task("a", number, 2) for number in range(3))}


def test_what_is_configured_while_an_assignor_computes_is_for_the_next_target() -> None:
    """A connector is deleted, and another is configured anew, before there is a result."""
    group = group_of("w1", "w2")
    group.assignor = None  # the test says when there is a result
    group.workers["w1"].feed(RebalanceRequested(RebalanceReason.WORKER_CHANGED))
    group.run(100)
    held = {name: set(worker.runs) for name, worker in group.workers.items()}
    group.configuration = Configuration(2, {"a": ConnectorTasks(2, 2)})
    for worker in group.workers.values():
        worker.feed(ConfigurationRead(group.configuration))

    group.assign(held)

    runner = next(each for each in group.workers.values() if each.all(ComputeTarget))
    rows = runner.all(InstallTarget)[-1].target.rows
    assert {row.member_id: set(row.items) for row in rows} == held


def test_what_a_worker_says_to_an_assignor_of_its_own_arrives() -> None:
    heard: list[bytes] = []

    class Listening(IncrementalCooperativeAssignor):
        def assign(self, group: WorkerGroup, memory: object = None) -> Computed:
            heard.extend(worker.metadata.data for worker in group.workers.values())
            return super().assign(group, memory)

    group = _workers.WorkerGroup(Listening())
    said = AssignorMetadata(b"3 cores", version=2)
    group.worker("w1", said=said)
    group.run(12_000)

    assert heard == [b"3 cores"]
    assert running(group) == ALL
