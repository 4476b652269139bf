"""Workers' real membership, and a real coordinator, in virtual time; stopping takes its time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final, TypeVar

from kip848_client.connect import AssignedItem
from kip848_client.connect.core import (
    AbandonComputation,
    AssignorVersions,
    ComputeTarget,
    ComputingLost,
    Configuration,
    ConfigurationRead,
    ConnectorTasks,
    InstallTarget,
    ItemsStarted,
    ItemsStopped,
    JoinRequested,
    Output,
    PrepareTarget,
    ReadConfiguration,
    StartItems,
    StopItems,
    TargetComputed,
    WorkerCore,
    WorkerEvent,
    WorkerSettings,
    heartbeat_outcome,
    heartbeat_request,
    install_outcome,
    install_request,
    prepare_outcome,
    prepare_request,
)
from kip848_client.core.connect import (
    ITSELF,
    AssignorFailed,
    AssignorMetadata,
    Computed,
    ConnectAssignor,
    ConnectorTaskId,
    Items,
    TargetAssignment,
    computed_target,
)
from kip848_client.core.member import (
    CoordinatorFound,
    CoordinatorLookupFailed,
    Event,
    FindCoordinator,
    HeartbeatAnswered,
    HeartbeatLost,
    LeaveMode,
    LeaveRequested,
    LossReason,
    MemberState,
    Report,
    SendHeartbeat,
    TimerFired,
)
from kip848_client.core.types import GroupId, MemberId
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupHeartbeatResponse,
    ConnectGroupInstallAssignmentResponse,
    ConnectGroupPrepareAssignmentResponse,
)
from tests.unit.mock_coordinator.groups._group_harness import GroupHarness

__all__ = ["WorkerGroup", "connector", "task"]

Kind = TypeVar("Kind")
C: Final = GroupId("c")
CONFIGURED: Final = Configuration(1, {"a": ConnectorTasks(2, 1), "b": ConnectorTasks(1, 1)})
STOP_MS: Final = 300
LATENCY_MS: Final = 5


def connector(name: str) -> AssignedItem:
    return AssignedItem(name)


def task(name: str, number: int, generation: int = 1) -> AssignedItem:
    return AssignedItem(name, number, generation)


def plain(items: Iterable[AssignedItem]) -> Items:
    found = sorted(items)
    return Items(
        tuple(each.connector for each in found if each.task == ITSELF),
        tuple(ConnectorTaskId(each.connector, each.task) for each in found if each.task != ITSELF),
    )


class Worker:
    """One worker: its core, what it really runs, and what it was asked."""

    def __init__(self, group: WorkerGroup, name: str, settings: WorkerSettings) -> None:
        self.name = name
        self.core = WorkerCore(settings, MemberId(name), lambda pause: pause)
        self.runs: set[AssignedItem] = set()
        self.commands: list[Output] = []
        self.asked: ComputeTarget | None = None
        """What it is to compute."""
        self.cut_off = False
        self.stop_ms = STOP_MS
        self.can_read = True
        self.read_ms = 1
        """Until it knows the configuration that it asks for."""
        self._group = group

    def feed(self, event: Event | WorkerEvent) -> None:
        group = self._group
        for command in self.core.step(group.now, event):
            self.commands.append(command)
            match command:
                case FindCoordinator() if self.cut_off:
                    group.later(1_000, self, CoordinatorLookupFailed(command.lookup))
                case FindCoordinator():
                    group.later(0, self, CoordinatorFound(command.lookup))
                case SendHeartbeat():
                    self._send(command)
                case StopItems():
                    group.later(self.stop_ms, self, ItemsStopped(command.plan), stops=command)
                case StartItems():
                    self.runs |= set(command.items)
                    group.check()
                    group.later(1, self, ItemsStarted(command.plan))
                case ReadConfiguration() if self.can_read:
                    group.later(self.read_ms, self, ConfigurationRead(group.configuration))
                case PrepareTarget() | InstallTarget() if self.cut_off:
                    group.later(command.timeout_ms, self, ComputingLost(command.number, "cut off"))
                case PrepareTarget():
                    self._prepare(command)
                case ComputeTarget():
                    self._compute(command)
                case AbandonComputation():
                    self.asked = None
                case InstallTarget():
                    self._install(command)
                case _:
                    pass

    def _prepare(self, command: PrepareTarget) -> None:
        group = self._group
        response = group.base.ask(prepare_request(C, self.core.member_id, command), 0)
        assert isinstance(response, ConnectGroupPrepareAssignmentResponse)
        group.later(LATENCY_MS, self, prepare_outcome(command.number, response))

    def _compute(self, command: ComputeTarget) -> None:
        group = self._group
        if group.assignor is None:
            self.asked = command
            return
        try:
            computed = computed_target(group.assignor, command.group, command.memory)
            answer = TargetComputed(command.number, computed)
        except AssignorFailed as err:
            answer = TargetComputed(command.number, failure=err)
        group.later(1, self, answer)

    def _install(self, command: InstallTarget) -> None:
        group = self._group
        response = group.base.ask(install_request(C, self.core.member_id, command), 0)
        assert isinstance(response, ConnectGroupInstallAssignmentResponse)
        group.later(LATENCY_MS, self, install_outcome(command.number, response))

    def _send(self, command: SendHeartbeat) -> None:
        group = self._group
        if self.cut_off:
            lost = HeartbeatLost(command.attempt, LossReason.TIMED_OUT)
            group.later(command.timeout_ms, self, lost)
            return
        request = heartbeat_request(C, command.intent)
        response = group.base.ask(request, 0)
        assert isinstance(response, ConnectGroupHeartbeatResponse)
        answered = HeartbeatAnswered(command.attempt, heartbeat_outcome(response))
        group.later(LATENCY_MS, self, answered)

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [each for each in self.commands if isinstance(each, kind)]

    @property
    def errors(self) -> list[str]:
        return [str(each.error) for each in self.commands if isinstance(each, Report)]


class WorkerGroup:
    """Workers of the group ``c``. ``check`` looks at what really runs after every start."""

    def __init__(
        self, assignor: ConnectAssignor | None = None, *, initial_delay_ms: int = 0
    ) -> None:
        self.base = GroupHarness("4.4", group_initial_rebalance_delay_ms=initial_delay_ms)
        self.assignor = assignor
        """``None``: tests say what is computed, with ``assign``."""
        self.configuration = CONFIGURED
        self.rebalance_timeout_ms = 10_000
        self.workers: dict[str, Worker] = {}
        self._queue: list[tuple[int, int, Worker, Event | WorkerEvent, StopItems | None]] = []
        self._number = 0

    @property
    def now(self) -> int:
        return self.base.now

    def later(
        self, ms: int, worker: Worker, event: Event | WorkerEvent, *, stops: StopItems | None = None
    ) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now + ms, self._number, worker, event, stops))

    def worker(
        self,
        name: str,
        *,
        instance_id: str | None = None,
        host: str | None = None,
        said: AssignorMetadata | None = None,
    ) -> Worker:
        """A new worker, that joins."""
        settings = WorkerSettings(
            url=f"http://{host or name}:8083/",
            assignors=(AssignorVersions("incremental-cooperative", 1, 2, said),),
            instance_id=instance_id,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            request_timeout_ms=4_000,
        )
        worker = self.workers[name] = Worker(self, name, settings)
        worker.feed(JoinRequested(self.configuration))
        return worker

    def run(self, ms: int) -> None:
        """Let time pass."""
        end = self.now + ms
        while (at := self._next_ms()) <= end:
            self.base.pass_ms(at - self.now)
            if self._queue and self._queue[0][0] <= at:
                _, _, worker, event, stops = heapq.heappop(self._queue)
                if stops is not None:
                    worker.runs -= set(stops.items)
                if worker.name in self.workers:
                    worker.feed(event)
                continue
            for worker in self.workers.values():
                deadline = worker.core.deadline_ms
                if deadline is not None and deadline <= at:
                    worker.feed(TimerFired())
        self.base.pass_ms(end - self.now)

    def _next_ms(self) -> int:
        times = [self._queue[0][0]] if self._queue else []
        for worker in self.workers.values():
            deadline = worker.core.deadline_ms
            if deadline is not None:
                times.append(deadline)
        return max(self.now, min(times, default=1 << 60))

    def leave(self, name: str) -> None:
        worker = self.workers[name]
        deadline_ms = self.now + 5_000
        worker.feed(LeaveRequested(LeaveMode.DEFAULT, deadline_ms, final=True))

    def kill(self, name: str) -> None:
        """Its process is gone, and what it ran."""
        del self.workers[name]

    def assign(
        self,
        to: dict[str, set[AssignedItem]],
        *,
        deferred: Iterable[AssignedItem] = (),
        delay_ms: int = 0,
    ) -> None:
        """What the assignor of the worker that was chosen returns."""
        [runner] = [each for each in self.workers.values() if each.asked is not None]
        asked, runner.asked = runner.asked, None
        assert asked is not None
        workers = {name: plain(items) for name, items in to.items()}
        target = TargetAssignment(workers, plain(deferred), delay_ms)
        runner.feed(TargetComputed(asked.number, Computed(target)))

    @property
    def runners(self) -> list[str]:
        """Who was asked to compute."""
        return [each.name for each in self.workers.values() if each.asked is not None]

    def check(self) -> None:
        """Nothing runs twice, and no tasks of two generations run side by side."""
        running: dict[tuple[str, int], str] = {}
        generations: dict[str, int] = {}
        for worker in self.workers.values():
            for item in sorted(worker.runs):
                key = (item.connector, item.task)
                assert running.setdefault(key, worker.name) == worker.name, (item, running[key])
                if item.task != ITSELF:
                    first = generations.setdefault(item.connector, item.generation)
                    assert first == item.generation, (item, first)

    def expect(self, **runs: set[AssignedItem]) -> None:
        assert {name: worker.runs for name, worker in self.workers.items()} == runs
        for worker in self.workers.values():
            assert worker.core.state is MemberState.STABLE, (worker.name, worker.core.state)
