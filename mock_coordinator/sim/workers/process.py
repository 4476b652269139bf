"""One life of a worker: the real ``WorkerCore``, driven by virtual time and a bad network.

At any moment a process can be put to sleep (nothing of it runs, everything waits for it), and it
can die. Starting and stopping items takes its time; an item runs from the moment at which it is to
be started until it is stopped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kip848_client.connect.core import (
    AbandonComputation,
    AssignedItem,
    AssignorVersions,
    ComputeTarget,
    Configuration,
    ConfigurationRead,
    InstallTarget,
    ItemsStarted,
    ItemsStopped,
    JoinRequested,
    Output,
    PrepareTarget,
    ReadConfiguration,
    RebalanceRequested,
    StartItems,
    StopItems,
    TargetComputed,
    WorkerCore,
    WorkerEvent,
    WorkerSettings,
)
from kip848_client.core.connect import (
    AssignorFailed,
    IncrementalCooperativeAssignor,
    RebalanceReason,
    SpreadAssignor,
    computed_target,
)
from kip848_client.core.member import (
    Announce,
    Event,
    FindCoordinator,
    ForgetCoordinator,
    LeaveCompleted,
    LeaveMode,
    LeaveRequested,
    MemberState,
    Report,
    SendHeartbeat,
    TimerFired,
)
from kip848_client.core.types import MemberId
from mock_coordinator.sim.nodes import node_name
from mock_coordinator.sim.process_life import ProcessLife
from mock_coordinator.sim.stepping import Stepping
from mock_coordinator.sim.workers.configuration import Configured
from mock_coordinator.sim.workers.context import WorkerContext
from mock_coordinator.sim.workers.requests import WorkerRequests

__all__ = ["WorkerPlan", "WorkerProcess"]

_ASSIGNORS: Final = {
    "incremental": IncrementalCooperativeAssignor,
    "spread": SpreadAssignor,
}
_LEAVE_MS: Final = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """What one worker is configured to be, over all its lives."""

    host: str
    instance_id: str | None


class WorkerProcess(ProcessLife):
    """One process. ``ended`` is called when it is over by itself."""

    def __init__(
        self,
        context: WorkerContext,
        configured: Configured,
        plan: WorkerPlan,
        name: str,
        nodes: Sequence[int],
        ended: Callable[[WorkerProcess], None],
    ) -> None:
        super().__init__(context.kernel)
        options = context.options
        self._context = context
        self._configured = configured
        self.plan = plan
        self.name = name
        self.runs: set[AssignedItem] = set()
        self.leaving = False
        self.read_offset = configured.newest.offset
        self._ended = ended
        self._rng = context.kernel.rng(f"worker/{plan.host}")
        self._overslept = False
        self._turns: deque[Callable[[Callable[[], None]], None]] = deque()
        """Of calls of the listener; the first one is under way."""
        self._starting: _Once | None = None
        self._items_wait = False
        """Waits for the configuration, as far as this process knows."""
        kind = _ASSIGNORS[options.assignor]
        self._assignor = kind(scheduled_rebalance_max_delay_ms=options.delay_max_ms)
        member_id = MemberId(f"{name}-{context.kernel.rng('ids').getrandbits(32):08x}")
        self.core = WorkerCore(self._settings(kind.name), member_id, self._jitter)
        wires = context.wires(name, node_name, lambda: nodes)
        self._requests = WorkerRequests(wires, context.probes, member_id, self.feed, self.enter)
        self._stepping: Stepping[Event | WorkerEvent] = Stepping(
            context.kernel,
            self._step,
            lambda: self.core.deadline_ms,
            lambda: self.feed(TimerFired()),
            self.enter,
        )
        context.checks.enter(self)
        context.tell(name, "start", f"{member_id} {plan.instance_id or ''}")
        self.feed(JoinRequested(configured.newest))

    def _settings(self, assignor: str) -> WorkerSettings:
        options = self._context.options
        return WorkerSettings(
            url=f"http://{self.plan.host}:8083/",
            assignors=(AssignorVersions(assignor, 1, 2),),
            instance_id=self.plan.instance_id,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
            session_timeout_ms=options.session_timeout_ms,
            task_shutdown_graceful_timeout_ms=options.stop_ms_max,
            request_timeout_ms=options.request_timeout_ms,
        )

    def _jitter(self, pause_ms: int) -> int:
        return self._rng.randint(pause_ms * 4 // 5, max(pause_ms * 6 // 5, 1))

    # -- life --------------------------------------------------------------------------------

    @property
    def is_excused(self) -> bool:
        """Whether it sleeps, or slept past its session and has not stopped everything since."""
        return self.is_asleep or self._overslept

    def on_sleep(self, how_long: str) -> None:
        """It is about to stand still."""
        self._context.tell(self.name, "sleep", how_long)

    def on_wake(self, waiting: int) -> None:
        """It goes on; its session may be over."""
        context, options = self._context, self._context.options
        context.tell(self.name, "wake", f"{waiting} waiting")
        must_rest_ms = self._requests.heard_ms + options.session_timeout_ms
        if self.runs and context.kernel.now_ms + options.stop_ms_max >= must_rest_ms:
            self._overslept = True
            context.probes.reached("overslept")

    def die(self, why: str) -> None:
        """End at once, without a word."""
        if not self.is_alive:
            return
        self._context.tell(self.name, "die", why)
        self.is_alive = False
        self._requests.close()
        self._stepping.stop()
        self._context.checks.leave(self)
        self.runs.clear()

    # -- the user ----------------------------------------------------------------------------

    def leave(self) -> None:
        """Stop everything, say so, and end."""
        if self.leaving or self.core.state is MemberState.FATAL:
            return
        self.leaving = True
        self._context.tell(self.name, "leave")
        deadline_ms = self._context.kernel.now_ms + _LEAVE_MS
        self.feed(LeaveRequested(LeaveMode.DEFAULT, deadline_ms, final=True))

    def read(self, *, asks: bool) -> None:
        """The configuration has changed, and this worker reads it after a while. ``asks``: it lets
        the group balance it."""

        def done(newest: Configuration) -> None:
            if self.leaving or self.core.state is MemberState.FATAL:
                return
            self.read_offset = max(self.read_offset, newest.offset)
            self.feed(ConfigurationRead(newest))
            if asks:
                self.feed(RebalanceRequested(RebalanceReason.CONFIGURATION_CHANGED))

        newest, longest_ms = self._configured.newest, self._context.options.read_ms_max
        self.after(self._rng.randint(1, self._slow(longest_ms)), lambda: done(newest))

    def _slow(self, longest_ms: int) -> int:
        return 1 if self._context.healed else longest_ms

    # -- the core ----------------------------------------------------------------------------

    def feed(self, event: Event | WorkerEvent) -> None:
        """Give the core an event, and perform what it asks for."""
        self._stepping.post(event)
        if self.is_alive and not self._stepping.is_stepping:
            self._end_if_done()

    def _end_if_done(self) -> None:
        is_over = self.core.closed or self.core.state is MemberState.FATAL
        if is_over and not self._turns:
            self.die("over")
            self._ended(self)

    def _step(self, event: Event | WorkerEvent) -> None:
        for command in self.core.step(self._context.kernel.now_ms, event):
            self._perform(command)

    def _perform(self, command: Output) -> None:
        match command:
            case SendHeartbeat():
                self._requests.heartbeat(command)
            case FindCoordinator():
                self._requests.find_coordinator(command)
            case ForgetCoordinator():
                self._requests.forget_coordinator()
            case StopItems():
                self._stop(command)
            case StartItems():
                self._start(command)
            case ReadConfiguration():
                self._context.probes.reached("configuration awaited")
                self._items_wait = True
                self.read(asks=False)
            case PrepareTarget():
                self._requests.prepare(command)
            case InstallTarget():
                if command.target.deferred:
                    self._context.probes.reached("deferred items")
                self._requests.install(command)
            case ComputeTarget():
                self._begin_to_compute(command)
            case _:
                self._tell(command)

    def _tell(self, command: Output) -> None:
        """Commands that only say something."""
        tell, name = self._context.tell, self.name
        match command:
            case Announce():
                told = f"{command.old.value} -> {command.new.value}: {command.why}"
                tell(name, "state", told)
            case Report():
                tell(name, "report", f"{command.severity.value} {command.error}")
            case LeaveCompleted():
                tell(name, "left", str(command.error or ""))
            case AbandonComputation():
                tell(name, "abandoned")
            case _:
                pass

    def _begin_to_compute(self, command: ComputeTarget) -> None:
        takes_ms = self._rng.randint(1, self._slow(self._context.options.compute_ms_max))
        if takes_ms <= command.timeout_ms:
            self.after(takes_ms, lambda: self._compute(command))
            return
        failed = AssignorFailed(f"assign() took longer than {command.timeout_ms} ms")
        event = TargetComputed(command.number, failure=failed)
        self.after(command.timeout_ms, lambda: self.feed(event))

    def _compute(self, command: ComputeTarget) -> None:
        if self._context.happens("assignor", self._context.options.assignor_fails):
            self._context.probes.reached("the assignor failed")
            failed = AssignorFailed("assign() raised RuntimeError: no")
            self.feed(TargetComputed(command.number, failure=failed))
            return
        computed = computed_target(self._assignor, command.group, command.memory)
        self.feed(TargetComputed(command.number, computed))

    # -- the listener: one call after the other, as the driver of a real worker has it -----------

    def _call(self, begin: Callable[[Callable[[], None]], None]) -> None:
        """Call it when it is its turn; ``begin`` is given what to do at the end."""
        self._turns.append(begin)
        if len(self._turns) == 1:
            begin(self._end_turn)

    def _end_turn(self) -> None:
        self._turns.popleft()
        if self._turns:
            self._turns[0](self._end_turn)

    def _stop(self, command: StopItems) -> None:
        longest_ms = self._slow(self._context.options.stop_ms_max) if command.items else 1

        def begin(end: Callable[[], None]) -> None:
            context = self._context
            if command.items:
                context.probes.reached("lost items" if command.lost else "revoked items")
                context.tell(self.name, "stop", " ".join(map(str, command.items)))
            self.after(self._rng.randint(1, longest_ms), lambda: stopped(end))

        def stopped(end: Callable[[], None]) -> None:
            self.runs.difference_update(command.items)
            if not self.runs:
                self._overslept = False
            end()
            self.feed(ItemsStopped(command.plan))

        if command.lost and self._items_wait:
            self._context.probes.reached("fenced with news unread")
        self._items_wait = False
        if command.lost or command.last:
            self._cut_the_start()
        self._call(begin)

    def _start(self, command: StartItems) -> None:
        longest_ms = self._slow(self._context.options.start_ms_max)
        self._items_wait = False

        def begin(end: Callable[[], None]) -> None:
            if command.items:
                self._context.tell(self.name, "run", " ".join(map(str, command.items)))
            self._context.checks.started(self, command.items)
            self.runs.update(command.items)
            self._starting = started = _Once(lambda: ended(end))
            self.after(self._rng.randint(1, longest_ms), started)

        def ended(end: Callable[[], None]) -> None:
            self._starting = None
            end()
            self.feed(ItemsStarted(command.plan))

        self._call(begin)

    def _cut_the_start(self) -> None:
        """Everything is to be stopped: what begins must not hold that up."""
        starting = self._starting
        if starting is not None:
            self.after(0, starting)


class _Once:
    """An action that counts once."""

    def __init__(self, action: Callable[[], None]) -> None:
        self._action: Callable[[], None] | None = action

    def __call__(self) -> None:
        action, self._action = self._action, None
        if action is not None:
            action()
