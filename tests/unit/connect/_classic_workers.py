"""Workers' real classic membership, and a real coordinator, in virtual time; stopping takes its
time, and so does whatever is sent."""

from __future__ import annotations

import heapq
import itertools
from typing import Any, Final, TypeVar

from kip848_client.connect import AssignedItem
from kip848_client.connect.core import (
    VERSIONS,
    ClassicRequest,
    ClassicWorkerCore,
    ClassicWorkerSettings,
    Configuration,
    ConfigurationRead,
    ConnectorTasks,
    ItemsStarted,
    ItemsStopped,
    JoinRequested,
    Output,
    ReadConfiguration,
    RequestLost,
    SendLeave,
    StartItems,
    StopItems,
    WorkerEvent,
    classic_answer,
    classic_request,
)
from kip848_client.core.connect import ITSELF, ConnectProtocol
from kip848_client.core.member import (
    CoordinatorFound,
    CoordinatorLookupFailed,
    Event,
    FindCoordinator,
    LeaveMode,
    LeaveRequested,
    LossReason,
    MemberState,
    Report,
    TimerFired,
)
from kip848_client.core.types import GroupId
from mock_coordinator.core.groups import GroupCoordinator
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from tests.unit.mock_coordinator.groups._group_harness import GroupHarness

__all__ = ["ClassicWorker", "ClassicWorkers", "connector", "task"]

Kind = TypeVar("Kind")
C: Final = GroupId("c")
CONFIGURED: Final = Configuration(1, {"a": ConnectorTasks(2, 1), "b": ConnectorTasks(1, 1)})
STOP_MS: Final = 300
LATENCY_MS: Final = 5


def connector(name: str) -> AssignedItem:
    return AssignedItem(name)


def task(name: str, number: int, generation: int = 1) -> AssignedItem:
    return AssignedItem(name, number, generation)


class Harness(GroupHarness):
    """A coordinator that makes new ids."""

    def __init__(self, **config: str | int) -> None:
        self._drawn = itertools.count(1)
        super().__init__("4.4", member_id="", **config)

    def _new_member_id(self) -> str:
        return f"id{next(self._drawn)}"

    def fail_over(self) -> None:
        """Another broker coordinates; all that it has are the records."""
        self.groups = GroupCoordinator.replay(
            self.profile,
            self.config,
            self.catalog,
            self._new_member_id,
            self.groups.records,
            self.now,
        )


class ClassicWorker:
    """One worker: its core, what it really runs, and what it was asked."""

    def __init__(self, group: ClassicWorkers, name: str, settings: ClassicWorkerSettings) -> None:
        self.name = name
        self.core = ClassicWorkerCore(settings, lambda pause: pause)
        self.runs: set[AssignedItem] = set()
        self.commands: list[Output] = []
        self.cut_off = False
        self.loses_answers = False
        """What it sends arrives, and no answer comes back."""
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
                    group.later(1, self, CoordinatorFound(command.lookup))
                case ClassicRequest():
                    group.send(self, command)
                case StopItems():
                    assert set(command.items) <= self.runs
                    group.later(self.stop_ms, self, ItemsStopped(command.plan), stops=command)
                case StartItems():
                    assert not self.runs & set(command.items)
                    self.runs |= set(command.items)
                    group.check()
                    group.later(1, self, ItemsStarted(command.plan))
                case ReadConfiguration() if self.can_read:
                    group.later(self.read_ms, self, ConfigurationRead(group.configuration))
                case _:
                    pass

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [each for each in self.commands if isinstance(each, kind)]

    @property
    def errors(self) -> list[str]:
        return [str(each.error) for each in self.commands if isinstance(each, Report)]


class ClassicWorkers:
    """Workers of the classic group ``c``. ``check`` looks at what really runs at every start."""

    def __init__(self, *, max_delay_ms: int = 20_000, **config: str | int) -> None:
        config = {"group_initial_rebalance_delay_ms": 0, **config}
        self.base = Harness(**config)
        self.max_delay_ms = max_delay_ms
        self.configuration = CONFIGURED
        self.workers: dict[str, ClassicWorker] = {}
        self.checks = True
        self._queue: list[tuple[int, int, ClassicWorker, Any, StopItems | None]] = []
        self._number = 0
        self._asked: dict[int, tuple[ClassicWorker, ClassicRequest]] = {}

    @property
    def now(self) -> int:
        return self.base.now

    def later(
        self, ms: int, worker: ClassicWorker, event: Any, *, stops: StopItems | None = None
    ) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now + ms, self._number, worker, event, stops))

    def worker(
        self,
        name: str,
        *,
        host: str | None = None,
        protocol: ConnectProtocol = ConnectProtocol.SESSIONED,
        configuration: Configuration | None = None,
    ) -> ClassicWorker:
        """A new worker, that joins."""
        settings = ClassicWorkerSettings(
            url=f"http://{host or name}:8083/",
            connect_protocol=protocol,
            rebalance_timeout_ms=20_000,
            scheduled_rebalance_max_delay_ms=self.max_delay_ms,
            request_timeout_ms=4_000,
        )
        worker = self.workers[name] = ClassicWorker(self, name, settings)
        worker.feed(JoinRequested(configuration or self.configuration))
        return worker

    # -- requests ----------------------------------------------------------------------------

    def send(self, worker: ClassicWorker, command: ClassicRequest) -> None:
        """A request goes out; it is lost if its worker is cut off."""
        lost = RequestLost(command.attempt, LossReason.TIMED_OUT)
        self.later(command.timeout_ms, worker, lost)  # ignored when an answer came before
        if worker.cut_off:
            return
        self._number += 1
        number = self._number
        self._asked[number] = (worker, command)
        version = VERSIONS[type(command)][1]
        received = RequestReceived(
            number, number, version, ClientInfo(worker.name), classic_request(C, command)
        )
        self.base.groups.run_due(self.now)
        response = self.base.groups.handle(self.now, received)
        if response is not None:
            self._answer(number, response)
        self._take_late()

    def _take_late(self) -> None:
        for received, response in self.base.groups.take_replies():
            if received.connection in self._asked:
                self._answer(received.connection, response)

    def _answer(self, number: int, response: Any) -> None:
        worker, command = self._asked.pop(number)
        if not worker.cut_off and not worker.loses_answers:
            self.later(LATENCY_MS, worker, classic_answer(command, response))

    def fail_over(self) -> None:
        """Another broker coordinates: whatever waits there is lost."""
        self.base.fail_over()
        for worker, command in self._asked.values():
            self.later(LATENCY_MS, worker, RequestLost(command.attempt, LossReason.DISCONNECTED))
        self._asked.clear()

    # -- time --------------------------------------------------------------------------------

    def run(self, ms: int) -> None:
        """Let time pass."""
        end = self.now + ms
        while (at := self._next_ms()) <= end:
            self._pass(at)
            if self._queue and self._queue[0][0] <= at:
                _, _, worker, event, stops = heapq.heappop(self._queue)
                if self.workers.get(worker.name) is not worker:
                    continue  # its process is gone, and what it ran
                if stops is not None:
                    worker.runs -= set(stops.items)
                worker.feed(event)
                continue
            for worker in list(self.workers.values()):
                deadline = worker.core.deadline_ms
                if deadline is not None and deadline <= at:
                    worker.feed(TimerFired())
        self._pass(end)

    def _pass(self, at: int) -> None:
        while (due := self.base.groups.deadline_ms) is not None and due <= at:
            self.base.pass_ms(max(0, due - self.now))
            self._take_late()
        self.base.pass_ms(max(0, at - self.now))
        self._take_late()

    def _next_ms(self) -> int:
        times = [self._queue[0][0]] if self._queue else []
        deadlines = [worker.core.deadline_ms for worker in self.workers.values()]
        deadlines.append(self.base.groups.deadline_ms)
        times += [each for each in deadlines if each is not None]
        return max(self.now, min(times, default=1 << 60))

    def leave(self, name: str) -> None:
        worker = self.workers[name]
        worker.feed(LeaveRequested(LeaveMode.DEFAULT, self.now + 6_000, final=True))

    def kill(self, name: str) -> None:
        """Its process is gone, and what it ran."""
        del self.workers[name]

    def reconfigure(self, configuration: Configuration) -> None:
        """Everybody is told."""
        self.configuration = configuration
        for worker in self.workers.values():
            if not worker.core.closed:
                worker.feed(ConfigurationRead(configuration))

    # -- looking -----------------------------------------------------------------------------

    @property
    def configured(self) -> set[tuple[str, int]]:
        found = self.configuration.connectors
        return {(name, n) for name, tasks in found.items() for n in range(ITSELF, tasks.count)}

    @property
    def running(self) -> dict[tuple[str, int], str]:
        """Who runs what. Nothing runs twice."""
        found: dict[tuple[str, int], str] = {}
        for worker in self.workers.values():
            for item in sorted(worker.runs):
                key = (item.connector, item.task)
                assert found.setdefault(key, worker.name) == worker.name, (item, found[key])
        return found

    def check(self) -> None:
        if self.checks:
            assert self.running is not None

    def expect_all(self, *names: str) -> None:
        """These are the group, stable, and everything runs, evenly."""
        assert set(self.running) == self.configured
        assert {name for name, each in self.workers.items() if each.runs} <= set(names)
        for name in names:
            core = self.workers[name].core
            assert core.state is MemberState.STABLE, (name, core.state)
            assert set(core.assigned) == self.workers[name].runs
        for what in (True, False):
            counts = [
                sum((item.task == ITSELF) is what for item in self.workers[name].runs)
                for name in names
            ]
            assert max(counts) - min(counts) <= 1, counts

    def left(self, name: str) -> list[SendLeave]:
        return self.workers[name].all(SendLeave)
