"""Workers' real membership, and a real coordinator, in virtual time; stopping takes its time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final, TypeVar

from kip848_client._types import GroupId, MemberId
from kip848_client.connect import ITSELF, WorkerAssignment
from kip848_client.member import (
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
from kip848_client.wire.messages.connect_group import (
    ConnectGroupHeartbeatResponse,
    ConnectGroupInstallAssignmentRequest,
    ConnectGroupInstallAssignmentRequestMember,
    ConnectGroupInstallAssignmentResponse,
    ConnectGroupItems,
    ConnectGroupPrepareAssignmentRequest,
    ConnectGroupPrepareAssignmentResponse,
)
from kip848_client.worker import (
    AssignedItem,
    AssignorVersions,
    ConfigurationRead,
    ItemsStarted,
    ItemsStopped,
    JoinRequested,
    Output,
    ReadConfiguration,
    StartItems,
    StopItems,
    WorkerCore,
    WorkerEvent,
    WorkerSettings,
    heartbeat_outcome,
    heartbeat_request,
)
from tests.unit.mock_coordinator.groups._group_harness import GroupHarness

__all__ = ["WorkerGroup", "connector", "task"]

Kind = TypeVar("Kind")
ASSIGNORS: Final = (AssignorVersions("incremental-cooperative", 1, 2),)
STOP_MS: Final = 300
LATENCY_MS: Final = 5


def connector(name: str) -> AssignedItem:
    return AssignedItem(name)


def task(name: str, number: int, generation: int = 1) -> AssignedItem:
    return AssignedItem(name, number, generation)


def rows(items: Iterable[AssignedItem]) -> tuple[ConnectGroupItems, ...]:
    return tuple(
        ConnectGroupItems(connector=each.connector, runs_connector=True)
        if each.task == ITSELF
        else ConnectGroupItems(
            connector=each.connector, generation=each.generation, tasks=(each.task,)
        )
        for each in sorted(items)
    )


class Worker:
    """One worker: its core, what it really runs, and what it was asked."""

    def __init__(self, group: WorkerGroup, name: str, settings: WorkerSettings) -> None:
        self.name = name
        self.core = WorkerCore(settings, MemberId(name), lambda pause: pause)
        self.runs: set[AssignedItem] = set()
        self.commands: list[Output] = []
        self.computes = False
        self.cut_off = False
        self.stop_ms = STOP_MS
        self.knows_offset = 1_000_000
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
                case ReadConfiguration() if command.config_offset <= self.knows_offset:
                    group.later(1, self, ConfigurationRead(command.config_offset))
                case _:
                    pass

    def _send(self, command: SendHeartbeat) -> None:
        group = self._group
        if self.cut_off:
            lost = HeartbeatLost(command.attempt, LossReason.TIMED_OUT)
            group.later(command.timeout_ms, self, lost)
            return
        request = heartbeat_request(GroupId("c"), command.intent)
        response = group.base.ask(request, 0)
        assert isinstance(response, ConnectGroupHeartbeatResponse)
        self.computes = response.should_compute_assignment
        answered = HeartbeatAnswered(command.attempt, heartbeat_outcome(response))
        group.later(LATENCY_MS, self, answered)

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [each for each in self.commands if isinstance(each, kind)]

    @property
    def errors(self) -> list[str]:
        return [str(each.error) for each in self.commands if isinstance(each, Report)]


class WorkerGroup:
    """Workers of the group ``c``. ``check`` looks at what really runs after every start."""

    def __init__(self) -> None:
        self.base = GroupHarness("4.4")
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
        self, name: str, *, instance_id: str | None = None, host: str | None = None
    ) -> Worker:
        """A new worker, that joins."""
        settings = WorkerSettings(
            url=f"http://{host or name}:8083/",
            assignors=ASSIGNORS,
            instance_id=instance_id,
            rebalance_timeout_ms=10_000,
        )
        worker = self.workers[name] = Worker(self, name, settings)
        worker.feed(JoinRequested(config_offset=1))
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
        config_offset: int = 1,
    ) -> None:
        """As the worker that was chosen: Prepare, and Install of this."""
        [runner] = [each for each in self.workers.values() if each.computes]
        runner.computes = False
        epoch = runner.core.member_epoch
        assert epoch is not None
        asked = ConnectGroupPrepareAssignmentRequest(
            group_id="c", member_id=runner.name, member_epoch=epoch
        )
        given = self.base.ask(asked, 0)
        assert isinstance(given, ConnectGroupPrepareAssignmentResponse)
        assert given.error_code == 0, given
        said = WorkerAssignment(
            leader=runner.name,
            leader_url=f"http://{runner.name}:8083/",
            config_offset=config_offset,
            assigned=None,
            revoked=None,
            delay_ms=delay_ms,
        ).encode()
        install = ConnectGroupInstallAssignmentRequest(
            group_id="c",
            member_id=runner.name,
            member_epoch=epoch,
            group_epoch=given.group_epoch,
            members=tuple(
                ConnectGroupInstallAssignmentRequestMember(
                    member_id=each.member_id,
                    items=rows(to.get(each.member_id, ())),
                    version=2,
                    metadata=said,
                )
                for each in given.members
            ),
            deferred=rows(deferred),
        )
        answer = self.base.ask(install, 0)
        assert isinstance(answer, ConnectGroupInstallAssignmentResponse)
        assert answer.error_code == 0, answer

    @property
    def runners(self) -> list[str]:
        """Who was asked to compute."""
        return [each.name for each in self.workers.values() if each.computes]

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
