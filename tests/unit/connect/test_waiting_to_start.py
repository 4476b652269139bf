"""Items that wait for the configuration while their worker is put out of the group: other workers
run them by then, so nothing of them may start. On both protocols."""

from __future__ import annotations

from kip848_client.connect.core import (
    Configuration,
    ConfigurationRead,
    ConnectorTasks,
    RebalanceRequested,
    StartItems,
)
from kip848_client.core.member import Fenced
from tests.unit.connect._classic_workers import ClassicWorker, ClassicWorkers
from tests.unit.connect._workers import Worker, WorkerGroup, connector, task

A, A0, A1, B, B0 = connector("a"), task("a", 0), task("a", 1), connector("b"), task("b", 0)
NEW = connector("c")
CLASSIC_SESSION_MS = 10_000
SESSION_MS = 45_000


def starts_after(worker: Worker | ClassicWorker, configuration: Configuration) -> list[StartItems]:
    """What it starts when it reads this."""
    before = len(worker.all(StartItems))
    worker.feed(ConfigurationRead(configuration))
    return worker.all(StartItems)[before:]


# -- the classic protocol ------------------------------------------------------------------------


def classic_group_whose_second_worker_waits() -> tuple[ClassicWorkers, ClassicWorker]:
    """It runs nothing yet."""
    group = ClassicWorkers(max_delay_ms=0)
    group.worker("w1")
    group.run(5_000)
    second = group.worker("w2", configuration=Configuration(0))
    second.can_read = False
    group.run(10_000)
    assert not second.core.assigned
    return group, second


def test_a_classic_worker_that_runs_nothing_yet_gives_up_what_waits_to_start() -> None:
    group, second = classic_group_whose_second_worker_waits()
    second.cut_off = True
    group.run(CLASSIC_SESSION_MS)
    assert [each.cause for each in second.all(Fenced)] == ["the end of the session"]
    group.run(60_000)
    group.expect_all("w1")
    assert starts_after(second, group.configuration) == []
    second.cut_off = False
    group.run(60_000)
    group.expect_all("w1", "w2")


def test_a_classic_worker_that_runs_something_gives_up_what_waits_to_start() -> None:
    group = ClassicWorkers(max_delay_ms=0)
    first, second = group.worker("w1"), group.worker("w2")
    group.run(30_000)
    group.expect_all("w1", "w2")
    second.can_read = False
    connectors = {**group.configuration.connectors, "c": ConnectorTasks(2), "d": ConnectorTasks(1)}
    group.configuration = Configuration(2, connectors)
    first.feed(ConfigurationRead(group.configuration))
    first.feed(RebalanceRequested(2))
    group.run(8_000)
    assert second.runs
    assert second.core.member_epoch == first.core.member_epoch
    second.cut_off = True
    group.run(60_000)
    group.expect_all("w1")
    assert starts_after(second, group.configuration) == []


def test_a_classic_worker_that_slept_past_its_session_starts_nothing() -> None:
    """The configuration comes before its timer."""
    _, second = classic_group_whose_second_worker_waits()
    late = second.core.step(10**9, ConfigurationRead(Configuration(1, {"a": ConnectorTasks(2, 1)})))
    assert [each for each in late if isinstance(each, Fenced)]
    assert not [each for each in late if isinstance(each, StartItems)]


# -- the protocol of KIP-848 ---------------------------------------------------------------------


def group_whose_second_worker_waits(*, runs_something: bool) -> tuple[WorkerGroup, Worker]:
    group = WorkerGroup()
    first, second = group.worker("w1"), group.worker("w2")
    group.run(6_000)
    had = {B, B0} if runs_something else set()
    group.assign({"w1": {A, A0, A1, B, B0} - had, "w2": had})
    group.run(15_000)
    group.expect(w1={A, A0, A1, B, B0} - had, w2=had)
    second.can_read = False
    connectors = {**group.configuration.connectors, "c": ConnectorTasks(0, 1)}
    group.configuration = Configuration(9, connectors)
    first.feed(ConfigurationRead(group.configuration))
    first.feed(RebalanceRequested(2))
    group.run(6_000)
    group.assign({"w1": {A, A0, A1, B, B0} - had, "w2": had | {NEW}})
    group.run(10_000)
    assert second.runs == had
    return group, second


def check_that_nothing_starts_after_the_session(*, runs_something: bool) -> None:
    group, second = group_whose_second_worker_waits(runs_something=runs_something)
    second.cut_off = True
    group.run(SESSION_MS + 10_000)
    if group.runners:
        group.assign({"w1": {A, A0, A1, B, B0, NEW}})
    group.run(15_000)
    assert group.workers["w1"].runs == {A, A0, A1, B, B0, NEW}
    assert [each.cause for each in second.all(Fenced)] == ["the end of the session"]
    assert starts_after(second, group.configuration) == []
    assert not second.runs


def test_a_worker_that_runs_nothing_yet_gives_up_what_waits_to_start() -> None:
    check_that_nothing_starts_after_the_session(runs_something=False)


def test_a_worker_that_runs_something_gives_up_what_waits_to_start() -> None:
    check_that_nothing_starts_after_the_session(runs_something=True)


def test_a_worker_that_slept_past_its_session_starts_nothing() -> None:
    """The configuration comes before its timer."""
    group, second = group_whose_second_worker_waits(runs_something=False)
    late = second.core.step(group.now + SESSION_MS, ConfigurationRead(group.configuration))
    assert [each for each in late if isinstance(each, Fenced)]
    assert not [each for each in late if isinstance(each, StartItems)]
