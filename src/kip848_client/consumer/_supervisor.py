"""Performs what the group core asks for. No rule of the protocol is in here.

``post`` gives the core an event and performs the commands of the step at once, before anything is
awaited: a ``commit()`` is on its way before its caller is suspended, and no record is handed out
of a partition that has just been taken. What takes time is a task of the task group, which lives
inside ``run`` and nowhere else; its end is the next event.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final, Protocol

import anyio

from kip848_client._assignor_wire import topic_partitions
from kip848_client._driver._stepping import Stepping
from kip848_client._partition_names import listed
from kip848_client._ports import Clock
from kip848_client._types import TopicId, TopicPartition
from kip848_client.client_assignors import NewAssignment
from kip848_client.consumer._assignors import LocalAssignors
from kip848_client.consumer._commits import Commits
from kip848_client.consumer._errors import ErrorBox
from kip848_client.consumer._listener import call_hook, call_listener, listener_method
from kip848_client.consumer._requests import GroupRequests
from kip848_client.errors import CallbackError, LocalProtocolError
from kip848_client.group import (
    AbandonComputation,
    ApplicationDone,
    AssignorCommand,
    AssignPartitions,
    AutomaticCommitFailed,
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
    ListenerReturned,
    Output,
    PollWanted,
    PrepareAssignment,
    StartFetching,
)
from kip848_client.member import (
    Announce,
    AssignedPartition,
    AssignorsOffered,
    CoordinatorRecovered,
    FindCoordinator,
    ForgetCoordinator,
    HeartbeatAnswered,
    LeaveCompleted,
    MemberCore,
    Polled,
    PollEnded,
    Report,
    ResolveTopics,
    SendHeartbeat,
    Severity,
    TimerFired,
)
from kip848_client.offsets import CommitDone, SendCommit

__all__ = ["Assignment", "Supervisor"]

_log = logging.getLogger("kip848_client")

_LEAVE_GRACE_S: Final = 0.5
"""What the last leave gets beyond the time that the user gave: perhaps it is not even written."""


class Assignment(Protocol):
    """What the application has, as far as the supervisor changes it. All of it is synchronous, but
    for the waiting."""

    def refresh(self) -> None:
        """Bring the tracker of offsets up to date."""
        ...

    def assigned(
        self, assignment: Mapping[TopicPartition, TopicId], new: Collection[TopicPartition]
    ) -> None:
        """The user's assignment is now this; ``new`` of it begins without a position."""
        ...

    def started(self, assignment: Collection[TopicPartition]) -> None:
        """Fetch it; find positions where there are none."""
        ...

    def released(self, partitions: Collection[TopicPartition]) -> None:
        """These are not assigned any more."""
        ...

    def fetch_only(
        self, fetchable: Collection[TopicPartition], of: Mapping[TopicPartition, TopicId]
    ) -> None:
        """Hand out, of what the group assigned (``of``), nothing that is not ``fetchable``."""
        ...

    def want_poll(self) -> None:
        """Tell us of the next poll, even if one was told a moment ago."""
        ...

    async def until_done(self, partitions: Collection[TopicPartition]) -> None:
        """Return when the application is done with what it has of these."""
        ...


class Supervisor:
    """Drives one group core. Run ``run`` in a task; ``post`` events to it.

    ``listener`` gives the user's listener of the moment.
    """

    def __init__(
        self,
        core: GroupCore,
        requests: GroupRequests,
        assignment: Assignment,
        errors: ErrorBox,
        clock: Clock,
        *,
        listener: Callable[[], object | None],
        callback_timeout_ms: int,
        assignors: LocalAssignors | None = None,
    ) -> None:
        self._core = core
        self._requests = requests
        self._assignment = assignment
        self._errors = errors
        self._clock = clock
        self._listener = listener
        self._callback_timeout_ms = callback_timeout_ms
        self._assignors = LocalAssignors(()) if assignors is None else assignors
        self._steps: Stepping[Input] = Stepping(
            self._step, lambda: core.deadline_ms, TimerFired, clock
        )
        self._callback_task: asyncio.Task[None] | None = None
        self._leaves_in_flight = 0
        self._shown: tuple[object, object] = (None, None)
        """What may be fetched, as it was told last."""
        self._changed = anyio.Event()
        self.commits: Final = Commits(core, self.post, clock)
        self.callback_failures: list[CallbackError] = []
        self.heartbeats_sent = 0
        self.heartbeats_answered = 0
        self.last_heartbeat_ms: int | None = None

    # -- for the application's side ----------------------------------------------------------

    @property
    def member(self) -> MemberCore:
        """The member, for looking at."""
        return self._core.member

    @property
    def wants_poll(self) -> bool:
        """See ``PollObserver``."""
        return self._core.member.wants_poll

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

    def detach(self) -> None:
        """The application assigns by hand from now on."""
        self.post(Detached())

    async def change(self) -> None:
        """Return at the next change of the member's state."""
        await self._changed.wait()

    async def left(self) -> None:
        """Return when the final leave is over and its heartbeat was answered or had its grace."""
        while not self.member.closed and self._steps.running:
            await self._steps.stepped()
        with anyio.move_on_after(_LEAVE_GRACE_S):
            while self._leaves_in_flight and self._steps.running:
                await self._steps.stepped()

    # -- the loop ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Drive the core until cancelled. Raises what shows a bug of ours."""
        try:
            await self._steps.run()
        finally:
            self._changed.set()

    def post(self, event: Input) -> None:
        """Give the core an event; what follows is done when this returns, while ``run`` runs."""
        self._steps.post(event)

    def _step(self, event: Input) -> None:
        self._assignment.refresh()
        try:
            commands = self._core.step(self._clock.now_ms(), event)
        except LocalProtocolError as err:
            # The application's calls look at the state first; this one lost a race with an end.
            _log.debug("event %r was refused: %s", event, err)
            return
        for command in commands:
            self._perform(command)
        # What may be fetched is the core's to say, in both directions and before anything is
        # awaited; a callback that has ended only counts once the core has heard of it.
        shown = self._core.fetchable, self._core.assigned_ids
        if shown[0] is not self._shown[0] or shown[1] is not self._shown[1]:
            self._shown = shown
            self._assignment.fetch_only({p.tp for p in shown[0]}, shown[1])
        self.commits.stir()

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
                self._steps.start(self._answer, self._requests.commit, command)
            case FetchCommitted():
                self._steps.start(self._answer, self._requests.committed, command)
            case CallListener():
                self._steps.start(self._call_listener, command)
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
        """Commands about client-side assignors."""
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
        """Commands that only say something."""
        group_id = self._requests.group_id
        match command:
            case ForgetCoordinator(why=why):
                _log.info("group %s: coordinator unknown: %s", group_id, why)
                self._requests.forget_coordinator()
            case Announce(old=old, new=new, why=why):
                _log.info("group %s: %s -> %s: %s", group_id, old.value, new.value, why)
                self._changed.set()
                self._changed = anyio.Event()
            case Report():
                self._report(command)
            case CoordinatorRecovered(silent_ms=silent_ms):
                text = "group %s: the coordinator answers again, after %d ms"
                _log.warning(text, group_id, silent_ms)
            case LeaveCompleted(error=error):
                if error is not None:
                    _log.warning("group %s was left without its knowing: %s", group_id, error)
            case AutomaticCommitFailed(partitions=partitions, error=error, passing=passing):
                level = logging.INFO if passing else logging.WARNING
                _log.log(level, "automatic commit of %s: %s", listed(partitions), error)
            case _:
                raise AssertionError(f"no such command: {command!r}")

    def _report(self, command: Report) -> None:
        match command.severity:
            case Severity.NOTICE:
                cause = command.error.__cause__
                _log.warning("group %s: %s", self._requests.group_id, command.error, exc_info=cause)
            case Severity.RAISE:
                self._errors.raise_once(command.error)
            case Severity.FATAL:
                self._errors.raise_always(command.error)

    # -- what takes time ---------------------------------------------------------------------

    async def _answer(self, ask: Callable[[Any], Awaitable[Input]], command: Output) -> None:
        self.post(await ask(command))

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
                _log.error("group %s: %s", self._requests.group_id, failure, exc_info=cause)
        self.post(ListenerReturned(command.number, failed=failed))

    async def _call_listener(self, command: CallListener) -> None:
        failure: CallbackError | None = None
        hook = listener_method(self._listener(), command.method.value)
        if hook is not None:
            failure = await call_listener(
                hook,
                set(_tps(command.partitions)),
                self._callback_timeout_ms,
                began=self._note_task,
            )
        if failure is not None:
            cause = failure.__cause__
            _log.error("group %s: %s", self._requests.group_id, failure, exc_info=cause)
            self.callback_failures.append(failure)
            self._errors.raise_once(failure)
        self.post(ListenerReturned(command.number, failed=failure is not None))

    def _note_task(self, task: asyncio.Task[None]) -> None:
        self._callback_task = task


def _tps(partitions: Iterable[AssignedPartition]) -> list[TopicPartition]:
    return [each.tp for each in partitions]
