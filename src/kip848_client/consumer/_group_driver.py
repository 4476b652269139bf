"""Performs the commands of the group core. It contains no protocol rules.

``post`` passes an event to the core and performs the commands of the step at once, before anything
is awaited: a ``commit()`` is sent before its caller is suspended, and no record is delivered from a
partition that was just revoked. Anything that takes time is a task of the task group, which lives
inside ``run`` and nowhere else; its end is the next event.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final, Protocol

import anyio

from kip848_client.consumer._assignors import LocalAssignors
from kip848_client.consumer._commits import Commits
from kip848_client.consumer._error_box import ErrorBox
from kip848_client.consumer._group_log import GroupLog
from kip848_client.consumer._listener import call_listener, listener_method
from kip848_client.consumer._observers import ConsumerObservers
from kip848_client.consumer._requests import GroupRequests
from kip848_client.core.client_assignors import NewAssignment
from kip848_client.core.group import (
    AbandonComputation,
    ApplicationDone,
    AssignorCommand,
    AssignPartitions,
    AutomaticCommitFailed,
    AutomaticCommitsRecovered,
    AwaitApplication,
    CallAssignors,
    CallListener,
    CommittedFailed,
    CommittedFound,
    ComputeAssignment,
    Detached,
    FetchCommitted,
    FlushDone,
    ForgetPartitions,
    GroupCore,
    Input,
    InstallAssignment,
    ListenerReplaced,
    ListenerReturned,
    Output,
    PollWanted,
    PrepareAssignment,
    StartFetching,
)
from kip848_client.core.group_wire.assignors import topic_partitions
from kip848_client.core.member import (
    Announce,
    AssignedPartition,
    AssignorsOffered,
    CoordinatorRecovered,
    EpochChanged,
    FindCoordinator,
    ForgetCoordinator,
    HeartbeatAnswered,
    LeaveCompleted,
    MemberCore,
    Note,
    NotPolled,
    Polled,
    PollEnded,
    Report,
    ResolveTopics,
    SendHeartbeat,
    Severity,
    TimerFired,
)
from kip848_client.core.offsets import CommitDone, SendCommit
from kip848_client.core.partition_names import listed
from kip848_client.core.ports import Clock
from kip848_client.core.types import GroupMetadata, TopicId, TopicPartition
from kip848_client.errors import CallbackError, LocalProtocolError
from kip848_client.observe.core.watching import is_blocked, what_happens_next
from kip848_client.runtime._hooks import call_hook
from kip848_client.runtime._loop_watch import LoopWatch
from kip848_client.runtime._stepping import Stepping
from kip848_client.runtime._waits import Waits

__all__ = ["Assignment", "GroupDriver"]

_log = logging.getLogger("kip848_client")

_LATE_MS: Final = 500
"""A timer that is less late is ignored: a busy machine does that."""

_LEAVE_GRACE_S: Final = 0.5
"""Extra time for the last leave beyond the user's timeout: it may not even be written yet."""


class Assignment(Protocol):
    """The application's assignment, as changed by the group driver. Only ``until_done`` waits."""

    def refresh(self) -> None:
        """Bring the offset tracker up to date."""
        ...

    def assigned(
        self, assignment: Mapping[TopicPartition, TopicId], new: Collection[TopicPartition]
    ) -> None:
        """Set the user's assignment; its ``new`` part starts without a position."""
        ...

    def started(self, assignment: Collection[TopicPartition]) -> None:
        """Fetch these; find missing positions."""
        ...

    def released(self, partitions: Collection[TopicPartition]) -> None:
        """Remove these partitions from the assignment."""
        ...

    def fetch_only(
        self, fetchable: Collection[TopicPartition], of: Mapping[TopicPartition, TopicId]
    ) -> None:
        """Limit delivery to ``fetchable``, of the group's assignment (``of``)."""
        ...

    def want_poll(self) -> None:
        """Report the next poll, even if one was reported a moment ago."""
        ...

    async def until_done(self, partitions: Collection[TopicPartition]) -> None:
        """Return when the application is done with the records it holds of these."""
        ...


class GroupDriver:
    """Drives one group core. Run ``run`` in a task; ``post`` events to it.

    ``listener`` returns the user's current listener. ``observers`` get each step.
    """

    def __init__(
        self,
        core: GroupCore,
        requests: GroupRequests,
        assignment: Assignment,
        errors: ErrorBox,
        clock: Clock,
        observers: ConsumerObservers,
        *,
        listener: Callable[[], object | None],
        callback_timeout_ms: int,
        assignors: LocalAssignors | None = None,
        instance_id: str | None = None,
    ) -> None:
        self._core = core
        self._requests = requests
        self._assignment = assignment
        self._errors = errors
        self._clock = clock
        self._observers = observers
        self._log = GroupLog(
            requests.group_id,
            {**observers.fields, "member_id": core.member.member_id},
            lambda: core.member.commit_epoch or 0,
        )
        self._listener = listener
        self._callback_timeout_ms = callback_timeout_ms
        self._instance_id = instance_id
        self._assignors = LocalAssignors(()) if assignors is None else assignors
        self._steps: Stepping[Input] = Stepping(
            self._step, lambda: core.deadline_ms, TimerFired, clock
        )
        self._loop_watch = LoopWatch(clock, self._on_late)
        self._callback_task: asyncio.Task[None] | None = None
        self._leaves_in_flight = 0
        self._shown: tuple[object, object] = (None, None)
        """The fetchable partitions last passed on."""
        self._changed = anyio.Event()
        self.commits: Final = Commits(core, self.post, clock, self._log)
        self.callback_failures: list[CallbackError] = []
        self.heartbeats_sent = 0
        self.heartbeats_answered = 0
        self.last_heartbeat_ms: int | None = None
        self._waits = Waits()

    # -- for the application's side ----------------------------------------------------------

    @property
    def member(self) -> MemberCore:
        """The member core, read-only."""
        return self._core.member

    @property
    def wants_poll(self) -> bool:
        """See ``PollObserver``."""
        return self._core.wants_poll

    @property
    def in_listener(self) -> bool:
        """Whether the calling task is the one in which the listener runs."""
        return self._callback_task is not None and self._callback_task is asyncio.current_task()

    def polled(self, *, waiting: bool) -> None:
        """See ``PollObserver``."""
        self.post(Polled(waiting=waiting))

    def poll_ended(self) -> None:
        """See ``PollObserver``."""
        self.post(PollEnded())

    def greet_listener(self) -> None:
        """Call a new listener about the current assignment."""
        self.post(ListenerReplaced())

    def detach(self) -> None:
        """The application assigns manually from now on."""
        self.post(Detached())

    async def change(self) -> None:
        """Return at the next change of the member's state."""
        await self._changed.wait()

    async def left(self) -> None:
        """Return when the final leave has ended, the listener has returned, and the heartbeat was
        answered or its grace has passed."""
        while not self.member.closed and self._steps.running:
            await self._steps.stepped()
        while not self._core.listener_is_idle and self._steps.running:
            await self._steps.stepped()
        with anyio.move_on_after(_LEAVE_GRACE_S):
            while self._leaves_in_flight and self._steps.running:
                await self._steps.stepped()

    # -- the loop ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Drive the core until cancelled. Raises only errors that show a bug of this client."""
        self._loop_watch.start()
        try:
            await self._steps.run()
        finally:
            self._loop_watch.stop()
            self._changed.set()

    def post(self, event: Input) -> None:
        """Pass an event to the core; its commands are performed before this returns, while ``run``
        runs."""
        self._steps.post(event)

    def _step(self, event: Input) -> None:
        self._assignment.refresh()
        try:
            commands = self._core.step(self._clock.now_ms(), event)
        except LocalProtocolError as err:
            # The application's calls check the state first; this one lost a race with a close.
            _log.debug("event %r was refused: %s", event, err)
            return
        for command in commands:
            self._perform(command)
        self._observers.on_step(event, commands)
        # Only the core decides what may be fetched, in both directions and before anything is
        # awaited; the end of a callback counts only once the core has received it.
        shown = self._core.fetchable, self._core.assigned_ids
        if shown[0] is not self._shown[0] or shown[1] is not self._shown[1]:
            self._shown = shown
            self._assignment.fetch_only({p.tp for p in shown[0]}, shown[1])
        self.commits.wake_waiters()

    # -- commands ----------------------------------------------------------------------------

    def _perform(self, command: Output) -> None:
        match command:
            case SendHeartbeat():
                self.heartbeats_sent += 1
                self._leaves_in_flight += command.intent.member_epoch < 0
                self._steps.start(self._send_heartbeat, command)
            case FindCoordinator():
                self._steps.start(self._answer, self._requests.find_coordinator, command)
            case ResolveTopics():
                self._steps.start(self._answer, self._requests.resolve, command)
            case SendCommit():
                self._steps.start(self._answer, self._requests.commit(command))
            case FetchCommitted():
                self._steps.start(self._answer, self._requests.committed(command))
            case CallListener():
                self._steps.start(self._call_listener, command, self._listener())
            case AwaitApplication():
                self._steps.start(self._await_application, command)
            case AssignorCommand():
                self._assign(command)
            case CommitDone() | CommittedFound() | CommittedFailed() | FlushDone():
                self.commits.finish(command)
            case AssignPartitions():
                ids = {each.tp: each.topic_id for each in command.assignment}
                self._assignment.assigned(ids, _tps(command.new))
            case StartFetching():
                self._assignment.started(_tps(command.assignment))
            case ForgetPartitions():
                self._assignment.released(command.partitions)
            case PollWanted():
                self._assignment.want_poll()
            case _:
                self._tell(command)

    def _assign(self, command: AssignorCommand) -> None:
        """Perform commands about client-side assignors."""
        match command:
            case CallAssignors():
                self._steps.start(self._call_assignors, command)
            case PrepareAssignment():
                self._steps.start(self._answer, self._requests.prepare, command)
            case ComputeAssignment():
                self._steps.start(self._answer, self._assignors.compute, command)
            case AbandonComputation():
                self._assignors.abandon(command)
            case InstallAssignment():
                self._steps.start(self._answer, self._requests.install, command)
            case _:
                raise AssertionError(f"no such command: {command!r}")

    def _tell(self, command: Output) -> None:
        """Perform commands that only report something."""
        log = self._log
        match command:
            case ForgetCoordinator(why=why):
                log.say(logging.INFO, f"coordinator unknown: {why}", {"why": why})
                self._requests.forget_coordinator()
            case Announce(old=old, new=new, why=why):
                fields = {"old_state": old.value, "state": new.value, "why": why}
                log.say(logging.INFO, f"{old.value} -> {new.value}: {why}", fields)
                self._changed.set()
                self._changed = anyio.Event()
            case Report():
                self._report(command)
            case CoordinatorRecovered(silent_ms=silent_ms):
                log.say(logging.WARNING, command.text, {"silent_ms": silent_ms})
            case LeaveCompleted(error=error):
                if error is not None:
                    text = (
                        f"left group {self._requests.group_id}, but the coordinator may not know: "
                        f"{error}"
                    )
                    log.say_only(logging.WARNING, text)
            case AutomaticCommitFailed(partitions=partitions, error=error, passing=passing):
                level = logging.INFO if passing else logging.WARNING
                log.say_only(level, f"automatic commit of {listed(partitions)}: {error}")
            case AutomaticCommitsRecovered(failing_ms=failing_ms):
                text = f"automatic commits are stored again, after {failing_ms} ms"
                log.say(logging.WARNING, text, {"failing_ms": failing_ms})
            case NotPolled():
                ages = {"poll_age_ms": command.poll_age_ms, "left_ms": command.left_ms}
                log.say(logging.WARNING, command.text, ages)
            case Note() | EpochChanged():
                pass  # for observers only; they get each step
            case _:
                raise AssertionError(f"no such command: {command!r}")

    def _report(self, command: Report) -> None:
        match command.severity:
            case Severity.NOTICE:
                cause = command.error.__cause__
                self._log.say(logging.WARNING, str(command.error), cause=cause)
            case Severity.RAISE:
                self._errors.raise_once(command.error)
            case Severity.FATAL:
                self._errors.raise_always(command.error)

    def _on_late(self, late_ms: int) -> None:
        """Handle a late timer. The clock is checked once a second; a late check means that the
        event loop was busy."""
        self._observers.late(late_ms)
        self._tell_waits()
        interval_ms = self.member.snapshot().heartbeat_interval_ms if late_ms >= _LATE_MS else 0
        if not interval_ms or not is_blocked(late_ms, interval_ms):
            return
        heard_ms = self.last_heartbeat_ms
        silent_ms = None if heard_ms is None else self._clock.now_ms() - heard_ms
        fields = {"late_ms": late_ms, "silent_ms": silent_ms}
        self._log.say(logging.WARNING, what_happens_next(late_ms, silent_ms), fields)
        self._observers.blocked(late_ms, silent_ms)

    def _tell_waits(self) -> None:
        for level, line in self._waits.look(self._clock.now_ms(), self._core.waits, again=False):
            self._log.say(level, line)

    def problems(self) -> tuple[str, ...]:
        """Describe the waits of more than a second."""
        return self._waits.problems(self._clock.now_ms())

    # -- requests ----------------------------------------------------------------------------

    async def _answer(self, ask: Callable[..., Awaitable[Input]], *arguments: Output) -> None:
        self.post(await ask(*arguments))

    async def _send_heartbeat(self, command: SendHeartbeat) -> None:
        answer = await self._requests.heartbeat(command)
        if isinstance(answer, HeartbeatAnswered):
            self.heartbeats_answered += 1
            self.last_heartbeat_ms = self._clock.now_ms()
        self._leaves_in_flight -= command.intent.member_epoch < 0
        if self._assignors:
            self.post(AssignorsOffered(self._assignors.offer()))
        self.post(answer)

    async def _await_application(self, command: AwaitApplication) -> None:
        await self._assignment.until_done(command.partitions)
        self.post(ApplicationDone(command.number))

    async def _call_assignors(self, command: CallAssignors) -> None:
        news = command.news
        target = news.target or ()
        names = await self._requests.names([topic_id for topic_id, _ in target])
        assignment = NewAssignment(
            command.member_epoch,
            topic_partitions(target, names),
            news.metadata,
            news.metadata_version,
            news.error,
            self._identity(command.member_epoch),
        )
        failed = False
        for name, assignor in self._assignors.named():
            hook = partial(assignor.on_assignment, assignment)
            where = f"{name}.on_assignment"
            limit_ms = self._callback_timeout_ms
            failure = await call_hook(hook, where, limit_ms, began=self._note_task)
            if failure is not None:
                failed = True
                cause = failure.__cause__
                self._log.say(logging.ERROR, str(failure), cause=cause)
        self.post(ListenerReturned(command.number, failed=failed))

    def _identity(self, member_epoch: int) -> GroupMetadata:
        group_id, member_id = self._requests.group_id, self._core.member.member_id
        return GroupMetadata(group_id, member_epoch, member_id, self._instance_id)

    async def _call_listener(self, command: CallListener, listener: object | None) -> None:
        failure: CallbackError | None = None
        hook = listener_method(listener, command.method.value)
        if hook is not None:
            failure = await call_listener(
                hook,
                set(_tps(command.partitions)),
                self._callback_timeout_ms,
                began=self._note_task,
            )
        if failure is not None:
            cause = failure.__cause__
            self._log.say(logging.ERROR, str(failure), cause=cause)
            self.callback_failures.append(failure)
            self._errors.raise_once(failure)
        self.post(ListenerReturned(command.number, failed=failure is not None))

    def _note_task(self, task: asyncio.Task[None]) -> None:
        self._callback_task = task


def _tps(partitions: Iterable[AssignedPartition]) -> list[TopicPartition]:
    return [each.tp for each in partitions]
