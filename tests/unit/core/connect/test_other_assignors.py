"""``eager``, ``spread``, and what all shipped ones have in common."""

from __future__ import annotations

import pytest

from kip848_client.core.connect import (
    AssignorMetadata,
    ConnectAssignor,
    ConnectorTaskId,
    EagerAssignor,
    GroupWorker,
    IncrementalCooperativeAssignor,
    Items,
    NewWorkerAssignment,
    SpreadAssignor,
    WorkerMetadata,
    eager_round,
    group_worker,
)
from tests.support.connect.group import PlayedGroup, shown

BOTH = ("leader", "member")


@pytest.mark.parametrize(
    ("connectors", "workers", "dealt"),
    [
        ({"c1": 1}, BOTH, ["c1 / -", "- / c1[0]"]),
        ({"c1": 2, "c2": 1}, BOTH, ["c1 / c1[0] c2[0]", "c2 / c1[1]"]),
        ({"c1": 1, "c2": 1, "c3": 1}, BOTH, ["c1 c3 / c2[0]", "c2 / c1[0] c3[0]"]),
        (
            {"c1": 4, "c2": 4},
            ("w1", "w2", "w3"),
            ["c1 / c1[1] c2[0,3]", "c2 / c1[2] c2[1]", "- / c1[0,3] c2[2]"],
        ),
        ({}, BOTH, ["- / -", "- / -"]),
        ({"c1": 0, "c2": 1}, BOTH, ["c1 / c2[0]", "c2 / -"]),
        ({"c1": 1}, (), []),
    ],
)
def test_eager_deals_like_kafkas(
    connectors: dict[str, int], workers: tuple[str, ...], dealt: list[str]
) -> None:
    held = eager_round(connectors, reversed(workers))
    assert [shown(held[each]) for each in workers] == dealt
    group = PlayedGroup(EagerAssignor(), connectors)
    group.join(*workers)
    assert [shown(group.compute().workers[each]) for each in workers] == dealt


def test_a_newcomer_gets_tasks_of_each_connector() -> None:
    moved: dict[str, str] = {}
    for assignor in (IncrementalCooperativeAssignor(), SpreadAssignor()):
        group = PlayedGroup(assignor, {"c1": 4, "c2": 4})
        group.join("w1")
        group.compute()
        group.join("w2")
        group.compute()
        moved[assignor.name] = group.has("w2")
    assert moved == {
        "incremental-cooperative": "c1 / c1[0,1,2,3]",
        "spread": "c1 / c1[0,1] c2[0,1]",
    }


def test_the_next_task_goes_to_who_has_the_fewest_of_its_connector() -> None:
    group = PlayedGroup(SpreadAssignor(), {"c1": 1, "c2": 1})
    group.join("w1", "w2")
    group.workers["w1"] = GroupWorker(1, Items((), (ConnectorTaskId("c1", 0),)), url="http://w1")
    group.workers["w2"] = GroupWorker(1, Items((), (ConnectorTaskId("c2", 0),)), url="http://w2")
    group.compute()
    group.connectors = {"c1": 2, "c2": 2}
    group.compute()
    tasks = {each: group.has(each).split(" / ")[1] for each in ("w1", "w2")}
    assert tasks == {"w1": "c1[0] c2[1]", "w2": "c1[1] c2[0]"}


@pytest.mark.parametrize(
    ("assignor", "name", "versions"),
    [
        (EagerAssignor(), "eager", (0, 0)),
        (IncrementalCooperativeAssignor(), "incremental-cooperative", (1, 2)),
        (SpreadAssignor(), "spread", (1, 2)),
    ],
)
def test_names_and_versions(
    assignor: ConnectAssignor, name: str, versions: tuple[int, int]
) -> None:
    assert assignor.name == name
    assert (assignor.minimum_version, assignor.maximum_version) == versions
    assert assignor.metadata() == AssignorMetadata(version=versions[1])
    assert assignor.on_assignment(NewWorkerAssignment(1, Items(), 0, 0)) is None


def test_a_worker_as_the_coordinator_tells_of_it() -> None:
    said = WorkerMetadata("http://w1", 42, data=b"capacity=4")
    target = Items(("A",))
    worker = group_worker(3, target, AssignorMetadata(said.encode(), 2, 1), instance_id="one")
    assert worker == GroupWorker(
        3, target, AssignorMetadata(b"capacity=4", 2, 1), "http://w1", 42, "one"
    )
    assert worker.identity == ("instance", "one")


@pytest.mark.parametrize("said", [AssignorMetadata(b"rubbish", 2), AssignorMetadata(b"\0\1", 2)])
def test_a_worker_that_says_what_nobody_can_read_takes_part(said: AssignorMetadata) -> None:
    worker = group_worker(3, Items(), said)
    assert (worker.url, worker.config_offset, worker.identity) == (None, None, None)
    assert worker.metadata == said
    group = PlayedGroup(IncrementalCooperativeAssignor(), {"A": 2})
    group.join("w1")
    group.workers["w2"] = worker
    group.compute()
    assert group.all == ["w1: A / A[0]", "w2: - / A[1]"]
