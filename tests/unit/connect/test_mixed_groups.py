"""Workers that are rolled from the classic protocol to the new one, and back (the Connect proposal,
"Migration To the New Protocol")."""

from __future__ import annotations

import pytest

from kip848_client.connect import AssignedItem
from kip848_client.connect.core import Configuration, ConnectorTasks, RebalanceRequested
from kip848_client.core.connect import ITSELF, ConnectProtocol, EagerAssignor, RebalanceReason
from tests.unit.connect._mixed_workers import MixedWorkers

CONFIGURED = Configuration(3, {"a": ConnectorTasks(6, 2), "b": ConnectorTasks(3, 1)})


def classic_group(policy: str = "bidirectional") -> MixedWorkers:
    group = MixedWorkers(group_consumer_migration_policy=policy)
    group.configuration = CONFIGURED
    for name in ("w1", "w2", "w3"):
        group.worker(name)
    group.run(30_000)
    group.expect_all("w1", "w2", "w3")
    assert group.kind == "classic Stable"
    return group


def test_workers_are_rolled_one_by_one_and_no_other_task_stops() -> None:
    group = classic_group()
    for number in (1, 2, 3):
        before = dict(group.running)
        others = [name for name in group.workers if group.workers[name].runs]
        others.remove(f"w{number}")
        stopped = group.stops(*others)
        group.leave(f"w{number}")
        group.run(2_000)
        group.kill(f"w{number}")
        group.connect_worker(f"c{number}", host=f"w{number}")
        group.run(40_000)
        assert group.kind == "connect Stable"
        group.expect_all(*others, f"c{number}")
        assert group.stops(*others) == stopped
        for item, where in before.items():
            assert group.running[item] == (where if where in others else f"c{number}")
        group.fail_over()
        group.run(10_000)
        group.expect_all(*others, f"c{number}")
        assert group.stops(*others) == stopped


def test_and_back() -> None:
    group = MixedWorkers()
    group.configuration = CONFIGURED
    for name in ("c1", "c2", "c3"):
        group.connect_worker(name)
        group.run(10_000)
    group.expect_all("c1", "c2", "c3")
    for number in (3, 2):  # the first one computes, and remembers what waits for whom
        before = dict(group.running)
        others = [name for name in group.workers if name != f"c{number}"]
        stopped = group.stops(*others)
        group.leave(f"c{number}")
        group.run(2_000)
        group.kill(f"c{number}")
        group.worker(f"w{number}", host=f"c{number}")
        group.run(40_000)
        assert group.kind == "connect Stable"
        group.expect_all(*others, f"w{number}")
        assert group.stops(*others) == stopped
        for item, where in before.items():
            assert group.running[item] == (where if where in others else f"w{number}")
        group.fail_over()
        group.run(10_000)
        group.expect_all(*others, f"w{number}")
        assert group.stops(*others) == stopped
    stopped = group.stops("w2", "w3")
    group.leave("c1")
    group.run(10_000)
    group.kill("c1")
    assert group.kind == "classic Stable"
    group.expect_all("w2", "w3")
    assert group.stops("w2", "w3") == stopped
    group.worker("w1", host="c1")
    group.run(60_000)
    group.expect_all("w1", "w2", "w3")


def test_the_group_becomes_classic_when_the_last_worker_of_the_new_protocol_is_lost() -> None:
    group = classic_group()
    group.connect_worker("c1")
    group.run(30_000)
    group.expect_all("w1", "w2", "w3", "c1")
    stopped = group.stops("w1", "w2", "w3")
    group.kill("c1")
    group.run(60_000)  # longer than its session
    assert group.kind == "classic Stable"
    group.expect_all("w1", "w2", "w3")
    assert group.stops("w1", "w2", "w3") == stopped


def test_it_stays_as_it_is_where_the_policy_does_not_let_it_go_back() -> None:
    group = classic_group("upgrade")
    group.connect_worker("c1")
    group.run(30_000)
    running = dict(group.running)
    group.leave("c1")
    group.run(30_000)
    assert group.kind == "connect Assigning"
    still = {item: name for item, name in running.items() if name != "c1"}
    assert group.running == still
    joins = len(group.workers["w1"].commands)
    group.run(3_000)
    assert len(group.workers["w1"].commands) - joins <= 2  # it heartbeats, and nothing else
    group.kill("c1")
    group.connect_worker("c2")
    group.run(30_000)
    group.expect_all("w1", "w2", "w3", "c2")


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_policy_that_forbids_it(policy: str) -> None:
    group = classic_group(policy)
    worker = group.connect_worker("c1")
    group.run(30_000)
    assert "online upgrade is disabled" in worker.errors[0]
    assert group.kind == "classic Stable"
    group.expect_all("w1", "w2", "w3")


def test_a_worker_that_cannot_read_what_the_others_say_is_refused() -> None:
    group = classic_group()
    worker = group.connect_worker("c1", versions=(1, 1))
    group.run(10_000)
    assert "UNSUPPORTED_ASSIGNOR" in worker.errors[0]
    assert group.kind == "classic Stable"
    group.expect_all("w1", "w2", "w3")


def test_a_classic_worker_whom_nobody_could_read_is_refused() -> None:
    group = MixedWorkers()
    group.connect_worker("c1")
    group.run(10_000)
    worker = group.worker("w1", protocol=ConnectProtocol.EAGER)
    group.run(10_000)
    assert "INCONSISTENT_GROUP_PROTOCOL" in worker.errors[0]
    group.expect_all("c1")


def test_eager_workers_are_rolled_too() -> None:
    group = MixedWorkers(assignor=EagerAssignor())
    group.worker("w1", protocol=ConnectProtocol.EAGER)
    group.worker("w2", protocol=ConnectProtocol.EAGER)
    group.run(30_000)
    group.connect_worker("c1")
    group.run(30_000)
    assert group.kind == "connect Stable"
    assert set(group.running) == group.configured
    group.leave("c1")
    group.run(30_000)
    assert group.kind == "classic Stable"
    assert set(group.running) == group.configured


def test_tasks_are_configured_anew_in_a_mixed_group() -> None:
    group = classic_group()
    group.connect_worker("c1")
    group.run(30_000)
    group.reconfigure(Configuration(4, {"a": ConnectorTasks(7, 3), "b": ConnectorTasks(3, 1)}))
    group.run(60_000)
    group.expect_all("w1", "w2", "w3", "c1")
    assert {each.generation for each in all_tasks(group, "a")} == {3}
    group.reconfigure(Configuration(5, {"b": ConnectorTasks(3, 1)}))
    group.workers["c1"].feed(RebalanceRequested(RebalanceReason.CONFIGURATION_CHANGED))
    group.run(60_000)
    group.expect_all("w1", "w2", "w3", "c1")


def all_tasks(group: MixedWorkers, connector: str) -> list[AssignedItem]:
    return [
        each
        for worker in group.workers.values()
        for each in worker.runs
        if each.connector == connector and each.task != ITSELF
    ]
