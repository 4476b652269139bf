"""The one task that runs the member core, and performs what it asks for.

Theory of operation
-------------------
Events come into an inbox, from the application's calls and from the tasks that perform commands.
The supervisor's task takes them one by one, steps the core, and performs the commands of the step
in order. What a command wants done "before awaiting" is done in that loop, synchronously; what
takes time is a task of the task group, which lives inside ``run`` and nowhere else.

The listener is called by one more task, one call after another, while heartbeats go on.

Two things are added to what the core asks for. Partitions are not given up while the application is
in the middle of their records: the flush before a revocation, and the listener's call, wait until
it comes back for more (as Kafka's Java client does by reconciling inside of poll), at the longest
as long as the group waits for us. And where the loss of partitions has overtaken a call of the
listener, the listener gets the loss instead.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, Protocol

import anyio
from anyio.abc import TaskGroup

from kip848_client._aiokafka._fetch import FetchPath
from kip848_client._heartbeat_wire import heartbeat_outcome, heartbeat_request
from kip848_client._ports import (
    Clock,
    ConnectionBroken,
    TopicView,
    Transport,
    VersionLimits,
)
from kip848_client._types import GroupId, TopicId, TopicPartition
from kip848_client.consumer._errors import ErrorBox
from kip848_client.consumer._listener import call_listener, listener_method
from kip848_client.consumer._poller import Poller
from kip848_client.errors import (
    BrokerError,
    CallbackError,
    Kip848Error,
    LocalProtocolError,
    ProtocolError,
    RequestTimedOut,
    TransportError,
    UnsupportedVersion,
)
from kip848_client.member import (
    Announce,
    AssignedPartition,
    Command,
    CoordinatorFound,
    CoordinatorLookupFailed,
    CoordinatorRecovered,
    EpochChanged,
    Event,
    FindCoordinator,
    FlushOffsets,
    ForgetCoordinator,
    HeartbeatAnswered,
    HeartbeatFailed,
    HeartbeatLost,
    LeaveCompleted,
    LossReason,
    MemberCore,
    OffsetsFlushed,
    PartitionsReleased,
    PartitionsStarted,
    Polled,
    PollEnded,
    ReleasePartitions,
    Report,
    ResolveTopics,
    SendHeartbeat,
    Severity,
    StartPartitions,
    Subscribed,
    TimerFired,
    TopicsResolved,
)

__all__ = ["Offsets", "Supervisor"]

_log = logging.getLogger("kip848_client")

_HEARTBEAT_VERSIONS: VersionLimits = (1, 1)
"""Version 1: the member makes its id (KIP-1082) and may send a pattern."""

_LEAVE_GRACE_S: Final = 0.5
"""What the last leave gets beyond the time that the user gave."""

Callback = ReleasePartitions | StartPartitions


class Offsets(Protocol):
    """What the supervisor needs of positions and commits."""

    def note_epoch(self, member_epoch: int | None) -> None:
        """The epoch that offset requests carry changed."""
        ...

    async def flush(self, deadline_ms: int) -> None:
        """Commit what is confirmed; never raises."""
        ...

    def assigned(
        self, assignment: Collection[TopicPartition], new: Collection[TopicPartition]
    ) -> None:
        """The user's assignment is now this."""
        ...

    def started(self, assignment: Collection[TopicPartition]) -> None:
        """The assigned callback is done: fetch, find positions where there are none."""
        ...

    def released(self, partitions: Collection[TopicPartition]) -> None:
        """These are not assigned any more."""
        ...


class Supervisor:
    """Drives one member. Run ``run`` in a task; ``post`` events to it.

    ``listener`` gives the user's listener of the moment. ``unsupported`` makes the error for a
    broker without KIP-848.
    """

    def __init__(
        self,
        core: MemberCore,
        group_id: GroupId,
        transport: Transport,
        topics: TopicView,
        fetch: FetchPath[Any],
        offsets: Offsets,
        errors: ErrorBox,
        clock: Clock,
        *,
        listener: Callable[[], object | None],
        unsupported: Callable[[UnsupportedVersion], Kip848Error],
        callback_timeout_ms: int,
    ) -> None:
        self._core = core
        self._group_id = group_id
        self._transport = transport
        self._topics = topics
        self._fetch = fetch
        self._offsets = offsets
        self._errors = errors
        self._clock = clock
        self._listener = listener
        self._unsupported = unsupported
        self._callback_timeout_ms = callback_timeout_ms
        self._poller: Poller[Any] | None = None
        self._inbox: deque[Event] = deque()
        self._mail = anyio.Event()
        self._callbacks: deque[Callback] = deque()
        self._callback_wanted = anyio.Event()
        self._callback_task: asyncio.Task[None] | None = None
        self._lost_plan = 0
        self._announced: set[TopicPartition] = set()
        self._ids: dict[TopicPartition, TopicId] = {}
        self._detached = False
        self._leaves_in_flight = 0
        self._leave_answered = anyio.Event()
        self._leaves: list[anyio.Event] = []
        self._changed = anyio.Event()
        self.callback_failures: list[CallbackError] = []
        self.heartbeats_sent = 0
        self.heartbeats_answered = 0
        self.last_heartbeat_ms: int | None = None

    def attach(self, poller: Poller[Any]) -> None:
        """Say who knows whether the application is in the middle of records."""
        self._poller = poller

    @property
    def core(self) -> MemberCore:
        """The member, for looking at."""
        return self._core

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

    def assigned_id(self, tp: TopicPartition) -> TopicId | None:
        """The topic id under which a partition is assigned."""
        return self._ids.get(tp)

    def post(self, event: Event) -> None:
        """Give the member an event; it is taken soon, in order."""
        if isinstance(event, Subscribed):
            self._detached = False
        self._inbox.append(event)
        self._mail.set()

    def detach(self) -> None:
        """The member is on its way out, and what is assigned from now on is not the group's: leave
        it alone until there is a subscription again. The listener still hears the end."""
        self._detached = True
        self._ids = {}

    async def change(self) -> None:
        """Return at the next change of the member's state."""
        await self._changed.wait()

    def leave_done(self) -> anyio.Event:
        """An event that is set by the next ``LeaveCompleted``."""
        done = anyio.Event()
        self._leaves.append(done)
        return done

    async def run(self) -> None:
        """Drive the member until it is closed and its listener has returned, or cancelled."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._call_back)
                while not self._core.closed:
                    self._step(await self._next_event(), group)
                # A leave that was given up at its deadline was perhaps not even written yet.
                with anyio.move_on_after(_LEAVE_GRACE_S):
                    while self._leaves_in_flight:
                        await self._leave_answered.wait()
                group.cancel_scope.cancel()
        finally:
            self._changed.set()

    async def _next_event(self) -> Event:
        if not self._inbox:
            self._mail = anyio.Event()
            deadline_ms = self._core.deadline_ms
            if deadline_ms is None:
                await self._mail.wait()
            else:
                with anyio.move_on_after((deadline_ms - self._clock.now_ms()) / 1000):
                    await self._mail.wait()
        return self._inbox.popleft() if self._inbox else TimerFired()

    def _step(self, event: Event, group: TaskGroup) -> None:
        try:
            commands = self._core.step(self._clock.now_ms(), event)
        except LocalProtocolError as err:
            # The application's calls look at the state first; this one lost a race with an end.
            _log.debug("event %r was refused: %s", event, err)
            return
        for command in commands:
            self._perform(command, group)
        # What may be fetched is the core's to say, in both directions and before anything is
        # awaited; a callback that has ended only counts once the core has heard of it.
        fetchable = {each.tp for each in self._core.fetchable}
        self._fetch.live.hold_all_but(self._ids, fetchable)

    def _perform(self, command: Command, group: TaskGroup) -> None:
        match command:
            case SendHeartbeat():
                self.heartbeats_sent += 1
                if command.intent.member_epoch < 0:
                    self._leaves_in_flight += 1
                group.start_soon(self._send_heartbeat, command)
            case EpochChanged():
                self._offsets.note_epoch(command.member_epoch)
            case FlushOffsets():
                group.start_soon(self._flush, command, _tps(command.revoked))
            case ReleasePartitions():
                if command.lost:
                    self._lost_plan = command.plan
                self._queue(command)
            case StartPartitions():
                self._take(command)
                self._queue(command)
            case ResolveTopics():
                group.start_soon(self._resolve, command)
            case FindCoordinator():
                group.start_soon(self._find_coordinator, command)
            case _:
                self._take_note(command)

    def _take_note(self, command: Command) -> None:
        match command:
            case ForgetCoordinator():
                _log.info("group %s: coordinator unknown: %s", self._group_id, command.why)
                self._transport.forget_coordinator()
            case Announce():
                self._announce(command)
            case Report():
                self._report(command)
            case CoordinatorRecovered():
                _log.warning(
                    "group %s: the coordinator answers again, after %d ms",
                    self._group_id,
                    command.silent_ms,
                )
            case LeaveCompleted():
                self._complete_leave(command)
            case _:
                raise AssertionError(f"no such command: {command!r}")

    # -- commands that are done at once ----------------------------------------------------------

    def _announce(self, command: Announce) -> None:
        _log.info(
            "group %s: %s -> %s: %s",
            self._group_id,
            command.old.value,
            command.new.value,
            command.why,
        )
        self._changed.set()
        self._changed = anyio.Event()
        if self.wants_poll and self._poller is not None:
            self._poller.attention = True

    def _report(self, command: Report) -> None:
        match command.severity:
            case Severity.NOTICE:
                _log.warning("group %s: %s", self._group_id, command.error)
            case Severity.RAISE:
                self._errors.raise_once(command.error)
            case Severity.FATAL:
                self._errors.raise_always(command.error)

    def _take(self, command: StartPartitions) -> None:
        if self._detached:
            return
        self._ids = {each.tp: each.topic_id for each in command.assignment}
        self._offsets.assigned(_tps(command.assignment), _tps(command.partitions))

    def _complete_leave(self, command: LeaveCompleted) -> None:
        if command.error is not None:
            _log.warning("group %s was left without its knowing: %s", self._group_id, command.error)
        self._let_go_of(self._ids)  # a callback that was cut short may have left some
        for done in self._leaves:
            done.set()
        self._leaves.clear()

    def _let_go_of(self, partitions: Iterable[TopicPartition]) -> None:
        gone = [tp for tp in partitions if tp in self._ids]
        for tp in partitions:
            self._announced.discard(tp)
        for tp in gone:
            del self._ids[tp]
        self._offsets.released(gone)

    # -- commands that take time -----------------------------------------------------------------

    async def _send_heartbeat(self, command: SendHeartbeat) -> None:
        attempt = command.attempt
        request = heartbeat_request(self._group_id, command.intent)
        event: Event
        try:
            answer = await self._transport.coordinator(
                request, versions=_HEARTBEAT_VERSIONS, timeout_ms=command.timeout_ms
            )
        except UnsupportedVersion as err:
            event = HeartbeatFailed(attempt, self._unsupported(err))
        except RequestTimedOut:
            event = HeartbeatLost(attempt, LossReason.TIMED_OUT)
        except (ConnectionBroken, ProtocolError):
            event = HeartbeatLost(attempt, LossReason.DISCONNECTED)
        except TransportError:
            event = HeartbeatLost(attempt, LossReason.NOT_SENT)
        except BrokerError as err:
            event = HeartbeatFailed(attempt, err)
        else:
            self.heartbeats_answered += 1
            self.last_heartbeat_ms = self._clock.now_ms()
            event = HeartbeatAnswered(attempt, heartbeat_outcome(answer))
        if command.intent.member_epoch < 0:
            self._leaves_in_flight -= 1
            self._leave_answered.set()
            self._leave_answered = anyio.Event()
        self.post(event)

    async def _find_coordinator(self, command: FindCoordinator) -> None:
        try:
            await self._transport.find_coordinator()
        except BrokerError as err:
            self.post(CoordinatorLookupFailed(command.lookup, None if err.retriable else err))
        except UnsupportedVersion as err:
            self.post(CoordinatorLookupFailed(command.lookup, self._unsupported(err)))
        except Kip848Error as err:
            _log.debug("group %s: no coordinator: %s", self._group_id, err)
            self.post(CoordinatorLookupFailed(command.lookup))
        else:
            self.post(CoordinatorFound(command.lookup))

    async def _resolve(self, command: ResolveTopics) -> None:
        try:
            names = await self._topics.resolve(command.ids)
        except Kip848Error as err:
            _log.info("topics could not be resolved: %s", err)
            names = {}
        self._topics.watch(set(names.values()))
        self.post(TopicsResolved(command.query, names))

    async def _flush(self, command: FlushOffsets, revoked: Collection[TopicPartition]) -> None:
        remaining_s = (command.deadline_ms - self._clock.now_ms()) / 1000
        with anyio.move_on_after(remaining_s):
            await self._until_done(revoked)
        await self._offsets.flush(command.deadline_ms)
        self.post(OffsetsFlushed(command.plan))

    async def _until_done(self, partitions: Collection[TopicPartition]) -> None:
        if self._poller is not None:
            await self._poller.until_done(partitions)

    # -- the listener ----------------------------------------------------------------------------

    def _queue(self, command: Callback) -> None:
        self._callbacks.append(command)
        self._callback_wanted.set()

    async def _call_back(self) -> None:
        while True:
            while not self._callbacks:
                self._callback_wanted = anyio.Event()
                await self._callback_wanted.wait()
            command = self._callbacks.popleft()
            if isinstance(command, StartPartitions):
                await self._start(command)
            else:
                await self._release(command)

    async def _release(self, command: ReleasePartitions) -> None:
        partitions = _tps(command.partitions)
        if not command.lost:
            await self._wait_unless_lost(command, partitions)
        lost = command.lost or self._is_overtaken(command)
        named = [tp for tp in partitions if tp in self._announced]
        failed = False
        if named:
            name = "on_partitions_lost" if lost else "on_partitions_revoked"
            failed = await self._call(name, named)
        if command.lost or command.last:
            self._let_go_of(list(self._ids))
        elif lost or not failed:
            self._let_go_of(partitions)
        else:
            self._ask_for_poll()
        self.post(PartitionsReleased(command.plan, failed=failed))

    def _is_overtaken(self, command: Callback) -> bool:
        """Whether the group has taken everything since the command was given."""
        return command.plan < self._lost_plan

    def _ask_for_poll(self) -> None:
        if self._poller is not None:
            self._poller.attention = True

    async def _wait_unless_lost(
        self, command: ReleasePartitions, partitions: Collection[TopicPartition]
    ) -> None:
        """Wait for the application to be done with records of these partitions, or for a newer
        command that makes this one void."""
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while not self._is_overtaken(command):
                    self._callback_wanted = anyio.Event()
                    await self._callback_wanted.wait()
                group.cancel_scope.cancel()

            group.start_soon(watch)
            await self._until_done(partitions)
            group.cancel_scope.cancel()

    async def _start(self, command: StartPartitions) -> None:
        failed = False
        if not self._is_overtaken(command) and not self._detached:
            new = _tps(command.partitions)
            self._announced.update(new)
            failed = await self._call("on_partitions_assigned", new)
        if failed:
            self._ask_for_poll()
        elif not self._is_overtaken(command) and not self._detached:
            self._offsets.started(_tps(command.assignment))
        self.post(PartitionsStarted(command.plan, failed=failed))

    def _note_callback(self, task: asyncio.Task[None]) -> None:
        self._callback_task = task

    async def _call(self, name: str, partitions: Collection[TopicPartition]) -> bool:
        """Call the listener; returns whether it failed."""
        hook = listener_method(self._listener(), name)
        if hook is None:
            return False
        failure = await call_listener(
            hook, partitions, self._callback_timeout_ms, began=self._note_callback
        )
        if failure is None:
            return False
        _log.error("group %s: %s", self._group_id, failure, exc_info=failure.__cause__)
        self.callback_failures.append(failure)
        self._errors.raise_once(failure)
        return True


def _tps(partitions: Iterable[AssignedPartition]) -> list[TopicPartition]:
    return [each.tp for each in partitions]
