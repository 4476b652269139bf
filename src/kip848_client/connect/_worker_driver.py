"""Executes the commands of the worker's core. It contains no protocol rules.

The listener is called for one command at a time, in the order of the commands, while heartbeats
continue.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from kip848_client.connect._listener import WorkerRebalanceListener
from kip848_client.connect._observers import WorkerObservers
from kip848_client.connect.core._classic_core import ClassicWorkerCore
from kip848_client.connect.core._classic_messages import (
    ClassicRequest,
    HeartbeatTaken,
    RequestRefused,
)
from kip848_client.connect.core._commands import (
    AbandonComputation,
    ComputeTarget,
    InstallTarget,
    PrepareTarget,
    ReadConfiguration,
    StartItems,
    StopItems,
    TellAssignors,
)
from kip848_client.connect.core._core import Output, WorkerCore
from kip848_client.connect.core._events import (
    ItemsStarted,
    ItemsStopped,
    TargetComputed,
    WorkerEvent,
)
from kip848_client.connect.core._model import AssignedItem
from kip848_client.core.connect import AssignorFailed, ConnectAssignor
from kip848_client.core.member import (
    Announce,
    CoordinatorRecovered,
    Event,
    Fenced,
    FindCoordinator,
    ForgetCoordinator,
    HeartbeatAccepted,
    HeartbeatAnswered,
    LeaveCompleted,
    Report,
    SendHeartbeat,
    Severity,
    TimerFired,
)
from kip848_client.core.ports import Clock
from kip848_client.errors import Kip848Error, LocalProtocolError
from kip848_client.observe.core.watching import is_blocked
from kip848_client.runtime._assignor_runs import AssignorRun
from kip848_client.runtime._hooks import call_hook
from kip848_client.runtime._loop_watch import LoopWatch
from kip848_client.runtime._stepping import Stepping
from kip848_client.runtime._waits import Waits

__all__ = ["WorkerDriver"]

_log = logging.getLogger("kip848_client")

_LATE_MS: Final = 500
"""A shorter delay of a timer is normal on a busy machine."""
_LEAVE_GRACE_S: Final = 0.5
"""The time for sending the last leave and receiving its answer."""


class Requests(Protocol):
    """Sends the requests of a core."""

    def forget_coordinator(self) -> None:
        """Look the coordinator up again before the next request to it."""
        ...

    async def find_coordinator(self, command: FindCoordinator) -> Event:
        """Send FindCoordinator to any broker."""
        ...

    async def ask(self, command: Any) -> Event | WorkerEvent:
        """Send the request of a command of this core's protocol to the coordinator."""
        ...


class WorkerDriver:
    """Drives one worker core. Run ``run`` in a task; ``post`` events to it."""

    def __init__(
        self,
        core: WorkerCore | ClassicWorkerCore,
        requests: Requests,
        listener: WorkerRebalanceListener,
        assignors: Mapping[str, ConnectAssignor],
        clock: Clock,
        observers: WorkerObservers,
        *,
        stop_ms: int,
        start_ms: int,
    ) -> None:
        self.core = core
        self._requests = requests
        self._listener = listener
        self._assignors = assignors
        self._clock = clock
        self._observers = observers
        self._fields = observers.fields
        self._stop_ms = stop_ms
        self._start_ms = start_ms
        self._steps: Stepping[Event | WorkerEvent] = Stepping(
            self._step, lambda: core.deadline_ms, TimerFired, clock
        )
        self._each_second = LoopWatch(clock, self._on_late)
        self._waits = Waits()
        self._run_of_assignor = AssignorRun()
        self._turn = asyncio.Lock()
        """Serializes calls of the listener. The lock is fair, so calls are made in order."""
        self._in_listener: asyncio.Task[None] | None = None
        self._may_cut = False
        """Whether the current call may be cancelled when everything has to stop."""
        self._calls = 0
        """How many cancellable calls were requested: starts, and calls of assignors."""
        self._cut_calls = 0
        """How many of the oldest ones were cancelled. A call that has not begun never begins."""
        self._heartbeats = 0
        """How many heartbeats are in flight."""
        self.runs: set[AssignedItem] = set()
        """The items that the listener was called to start, and not yet to stop."""
        self.fatal: Kip848Error | None = None
        self.last_heartbeat_ms: int | None = None
        """When the last heartbeat was answered."""
        self.consecutive_fences = 0
        """How often the worker was fenced since a heartbeat was last accepted."""

    # -- interface for the worker ------------------------------------------------------------

    async def run(self) -> None:
        """Drive the core until cancelled. Raises errors that indicate a bug in this library."""
        self._each_second.start()
        try:
            await self._steps.run()
        finally:
            self._each_second.stop()

    async def begun(self) -> None:
        """Return once ``run`` is running."""
        await self._steps.begun()

    def post(self, event: Event | WorkerEvent) -> None:
        """Pass an event to the core. While ``run`` runs, the resulting commands are executed before
        this returns."""
        self._steps.post(event)

    async def stepped(self) -> None:
        """Return after the next step, or when ``run`` ends."""
        await self._steps.stepped()

    async def left(self) -> None:
        """Return when the final leave has completed: answered, or its grace time is over."""
        while not self.core.closed and self._steps.running:
            await self._steps.stepped()
        async with self._turn:  # the listener has returned
            pass
        try:
            async with asyncio.timeout(_LEAVE_GRACE_S):
                while self._heartbeats and self._steps.running:
                    await self._steps.stepped()
        except TimeoutError:
            pass

    @property
    def remaining_delay_ms(self) -> int:
        """The rest of the delay that the newest assignment announced."""
        return self.core.remaining_delay_ms(self._clock.now_ms())

    @property
    def in_listener(self) -> bool:
        """Whether the caller is a method of the listener."""
        return self._in_listener is not None and asyncio.current_task() is self._in_listener

    # -- commands ----------------------------------------------------------------------------

    def _step(self, event: Event | WorkerEvent) -> None:
        self._note_heartbeat(event)
        try:
            commands = self.core.step(self._clock.now_ms(), event)
        except LocalProtocolError as err:
            # The user's calls check the state first, but this one lost a race with the end.
            _log.debug("event %r was refused: %s", event, err)
            return
        for command in commands:
            self._perform(command)
        self._observers.on_step(event, commands)

    def _note_heartbeat(self, event: Event | WorkerEvent) -> None:
        match event:
            case HeartbeatAnswered(outcome=HeartbeatAccepted()) | HeartbeatTaken():
                self.last_heartbeat_ms = self._clock.now_ms()
                self.consecutive_fences = 0
            case HeartbeatAnswered() | RequestRefused(api="Heartbeat"):
                self.last_heartbeat_ms = self._clock.now_ms()
            case _:
                pass

    def _perform(self, command: Output) -> None:
        start = self._steps.start
        match command:
            case SendHeartbeat():
                self._heartbeats += 1
                start(self._send_heartbeat, command)
            case FindCoordinator():
                start(self._answer, self._requests.find_coordinator, command)
            case PrepareTarget() | InstallTarget() | ClassicRequest():
                start(self._answer, self._requests.ask, command)
            case ComputeTarget():
                start(self._answer, self._compute, command)
            case AbandonComputation():
                self._run_of_assignor.abandon(command.number)
            case StopItems():
                if command.lost or command.last:
                    self._cut_what_must_not_wait()
                start(self._stop, command)
            case StartItems():
                self._calls += 1
                start(self._start, command, self._calls)
            case TellAssignors():
                self._calls += 1
                start(self._tell_assignors, command, self._calls)
            case _:
                self._tell(command)

    def _tell(self, command: Output) -> None:
        """Commands that only report something."""
        match command:
            case ForgetCoordinator():
                self._requests.forget_coordinator()
                self._say(logging.INFO, f"coordinator unknown: {command.why}")
            case Announce():
                text = f"{command.old.value} -> {command.new.value}: {command.why}"
                self._say(logging.INFO, text)
            case Report():
                self._report(command)
            case Fenced():
                self.consecutive_fences += 1
            case CoordinatorRecovered():
                self._say(logging.WARNING, command.text)
            case LeaveCompleted() if command.error is not None:
                self._say(logging.WARNING, f"the leave was not told: {command.error}")
            case ReadConfiguration():
                self._say(
                    logging.WARNING,
                    f"another worker knows version {command.config_offset} of what is configured: "
                    "nothing is started or computed before reconfigure() has told it here",
                )
            case _:
                pass

    def _report(self, report: Report) -> None:
        if report.severity is Severity.FATAL:
            self.fatal = report.error
        level = logging.WARNING if report.severity is Severity.NOTICE else logging.ERROR
        self._say(level, str(report.error), cause=report.error.__cause__)

    def _on_late(self, late_ms: int) -> None:
        """Called about once a second. A late call means that the event loop was busy."""
        self._observers.late(late_ms)
        self._tell_waits()
        if late_ms < _LATE_MS or not is_blocked(late_ms, self.core.heartbeat_interval_ms):
            return
        heard_ms = self.last_heartbeat_ms
        silent_ms = None if heard_ms is None else self._clock.now_ms() - heard_ms
        self._say(
            logging.WARNING,
            f"the event loop did not run for at least {late_ms / 1000:.1f} s, and no heartbeat was "
            "sent; run code that blocks in a thread (asyncio.to_thread) or in a process",
        )
        self._observers.blocked(late_ms, silent_ms)

    def problems(self) -> tuple[str, ...]:
        """What the worker has been waiting for for more than a second."""
        return self._waits.problems(self._clock.now_ms())

    @property
    def unreachable_ms(self) -> int:
        """How long the coordinator has owed an answer; 0 if it owes none."""
        now_ms = self._clock.now_ms()
        return max((now_ms - each.since_ms for each in self.core.waits.values()), default=0)

    def _tell_waits(self) -> None:
        for level, line in self._waits.look(self._clock.now_ms(), self.core.waits, again=False):
            self._say(level, line)

    def _say(self, level: int, text: str, cause: BaseException | None = None) -> None:
        extra = {**self._fields, "member_epoch": self.core.member_epoch or 0}
        _log.log(level, "group %s: %s", self._fields["group_id"], text, exc_info=cause, extra=extra)

    # -- commands that take time -------------------------------------------------------------

    async def _answer(
        self, ask: Callable[[Any], Awaitable[Event | WorkerEvent]], command: Any
    ) -> None:
        self.post(await ask(command))

    async def _send_heartbeat(self, command: SendHeartbeat) -> None:
        try:
            answer = await self._requests.ask(command)
        finally:
            self._heartbeats -= 1
        self.post(answer)

    async def _compute(self, command: ComputeTarget) -> TargetComputed:
        number, name = command.number, command.assignor
        assignor = self._assignors.get(name)
        if assignor is None:
            what = f"the coordinator chose {name!r}, which is none of ours"
            return TargetComputed(number, failure=AssignorFailed(what))
        extra = {**self._fields, "assignor": name}
        given = (command.group, command.memory)
        try:
            returned = await self._run_of_assignor.of(
                number, name, assignor.assign, given, command.timeout_ms, extra
            )
        except AssignorFailed as failure:
            return TargetComputed(number, failure=failure)
        return TargetComputed(number, returned)

    async def _stop(self, command: StopItems) -> None:
        listener = self._listener
        method = listener.on_lost if command.lost else listener.on_revoked
        async with self._turn:
            started = tuple(each for each in command.items if each in self.runs)
            if started:
                await self._call(method, started, self._stop_ms)
            self.runs.difference_update(started)
        self.post(ItemsStopped(command.plan))

    async def _start(self, command: StartItems, call: int) -> None:
        async with self._turn:
            if command.items and call > self._cut_calls:
                self.runs |= set(command.items)
                await self._call(
                    self._listener.on_assigned, command.items, self._start_ms, may_cut=True
                )
        self.post(ItemsStarted(command.plan))

    async def _tell_assignors(self, command: TellAssignors, call: int) -> None:
        async with self._turn:
            for each in self._assignors.values():
                if call > self._cut_calls:
                    await self._call(
                        each.on_assignment, command.assignment, self._stop_ms, may_cut=True
                    )

    def _cut_what_must_not_wait(self) -> None:
        """Everything has to stop: cancel starts and assignor calls that would delay it."""
        self._cut_calls = self._calls
        if self._may_cut and self._in_listener is not None:
            self._in_listener.cancel("all items are to be stopped")

    async def _call(
        self,
        method: Callable[[Any], Any],
        given: object,
        timeout_ms: int,
        *,
        may_cut: bool = False,
    ) -> None:
        name = getattr(method, "__qualname__", repr(method))
        self._may_cut = may_cut
        failure = await call_hook(
            lambda: method(given), name, timeout_ms, began=self._enter, leaves_alone=True
        )
        self._in_listener, self._may_cut = None, False
        if failure is not None:
            self._say(logging.ERROR, str(failure), cause=failure.__cause__)

    def _enter(self, task: asyncio.Task[None]) -> None:
        self._in_listener = task
