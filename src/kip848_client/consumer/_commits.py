"""Performs what the committer core asks for, and reads committed offsets.

``CommitDriver.feed`` is synchronous, so a ``commit()`` is on its way before its caller is
suspended. An OffsetCommit that was sent is never cancelled: its task belongs to the driver, not to
the caller, who may give up waiting.

Reading committed offsets has the trap that loses data in other clients: an error must never look
like "nothing committed", because then ``auto_offset_reset`` decides. Here only an answer without
any error and with offset -1 means that.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final

import anyio
from anyio.abc import TaskGroup

from kip848_client._ports import Clock, TopicView, Transport
from kip848_client._types import TopicId, TopicPartition
from kip848_client.consumer._backoff import Backoff
from kip848_client.consumer._messages import (
    TopicTable,
    commit_request,
    commit_results,
    committed_offsets,
    fetch_request,
)
from kip848_client.error_codes import ErrorCode, error_name, is_retriable
from kip848_client.errors import (
    BrokerError,
    ConsumerClosed,
    Kip848Error,
    ProtocolError,
    RequestTimedOut,
    TransportError,
    UnsupportedVersion,
    broker_error,
)
from kip848_client.member import CoordinatorLost, Event, HeartbeatWanted
from kip848_client.offsets import (
    CommitAnswered,
    CommitAsked,
    CommitDone,
    CommitEvent,
    CommitImpossible,
    CommitKind,
    CommitLost,
    CommitRefusal,
    CommittableOffset,
    CommitterCore,
    CommitTimer,
    CoordinatorSuspect,
    EpochNoted,
    OffsetTracker,
    RefreshEpoch,
    SendCommit,
)

__all__ = ["CommitDriver", "GroupIdentity"]

_log = logging.getLogger("kip848_client")

_NOTHING_COMMITTED: Final = -1
_MOVED: Final = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
_UNKNOWN_TOPIC: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
_RECREATED: Final = CommitRefusal(
    ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.name, "the topic was created again"
)


class GroupIdentity:
    """Under which names this consumer speaks to its group."""

    def __init__(self, group_id: str, member_id: str, instance_id: str | None) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.instance_id = instance_id


class CommitDriver:
    """Run ``run`` in a task; then everything else may be called.

    ``refresh_tracker`` is called before the core looks at the tracker. ``tell_member`` gets events
    for the member core. ``assigned_id`` gives the id under which a partition is assigned.
    """

    def __init__(
        self,
        core: CommitterCore,
        tracker: OffsetTracker,
        identity: GroupIdentity,
        transport: Transport,
        topics: TopicView,
        clock: Clock,
        *,
        refresh_tracker: Callable[[], None],
        tell_member: Callable[[Event], None],
        assigned_id: Callable[[TopicPartition], TopicId | None],
        backoff: Backoff,
    ) -> None:
        self._core = core
        self._tracker = tracker
        self._identity = identity
        self._transport = transport
        self._topics = topics
        self._clock = clock
        self._refresh_tracker = refresh_tracker
        self._tell_member = tell_member
        self._assigned_id = assigned_id
        self._backoff = backoff
        self._tickets = itertools.count(1)
        self._waiting: dict[int, tuple[anyio.Event, list[CommitDone]]] = {}
        self._task_group: TaskGroup | None = None
        self._stirred = anyio.Event()
        self._epoch_moved = anyio.Event()
        self._ended = anyio.Event()
        self._closed = False
        self._failure: Kip848Error | None = None

    @property
    def member_epoch(self) -> int | None:
        """The epoch that requests carry; ``None`` out of a group."""
        return self._core.member_epoch

    async def drain(self, deadline_ms: int) -> None:
        """Return when no wish to commit is open any more, or at the deadline."""
        with anyio.move_on_after(max(0, deadline_ms - self._clock.now_ms()) / 1000):
            while self._core.open_tickets:
                await self._ended.wait()

    async def run(self, task_group: TaskGroup) -> None:
        """Keep the core's timers; runs until cancelled."""
        self._task_group = task_group
        while True:
            self._stirred = anyio.Event()
            deadline_ms = self._core.deadline_ms
            if deadline_ms is None:
                await self._stirred.wait()
                continue
            with anyio.move_on_after((deadline_ms - self._clock.now_ms()) / 1000):
                await self._stirred.wait()
            if self._clock.now_ms() >= deadline_ms:
                self.feed(CommitTimer())

    def feed(self, event: CommitEvent) -> None:
        """Give the core an event and perform what it asks for; nothing once closed."""
        if self._closed:
            return
        self._refresh_tracker()
        for command in self._core.step(self._clock.now_ms(), event):
            match command:
                case SendCommit():
                    assert self._task_group is not None, "run() comes first"
                    self._task_group.start_soon(self._send, command)
                case CommitDone():
                    self._finish(command)
                case RefreshEpoch():
                    self._tell_member(HeartbeatWanted())
                case CoordinatorSuspect():
                    self._suspect(command.why)
                case _:
                    raise AssertionError(f"no such command: {command!r}")
        self._stirred.set()

    def note_epoch(self, member_epoch: int | None) -> None:
        """The member epoch changed."""
        self.feed(EpochNoted(member_epoch))
        self._epoch_moved.set()
        self._epoch_moved = anyio.Event()

    async def commit(
        self,
        offsets: Mapping[TopicPartition, CommittableOffset] | None,
        kind: CommitKind,
        deadline_ms: int,
    ) -> CommitDone:
        """Commit and wait for the end, which comes at ``deadline_ms`` at the latest. Raises
        ``ConsumerClosed``, and nothing else: failures are in the result."""
        ticket = next(self._tickets)
        done = anyio.Event()
        result: list[CommitDone] = []
        if self._closed:
            raise self._failure or ConsumerClosed("the consumer is closed")
        self._waiting[ticket] = (done, result)
        self.feed(CommitAsked(ticket, kind, offsets, deadline_ms))
        await done.wait()
        if not result:
            why = "the consumer was closed before the commit was answered"
            raise self._failure or ConsumerClosed(why)
        return result[0]

    def commit_soon(self, partitions: Collection[TopicPartition], deadline_ms: int) -> None:
        """Begin to commit what is done of these partitions, which may be given up right after it;
        a failure is logged. Needs no waiting: the request is on its way before this returns, unless
        another one is."""
        self._refresh_tracker()
        dirty = self._tracker.dirty()
        offsets = {tp: dirty[tp] for tp in partitions if tp in dirty}
        if offsets and not self._closed:
            ticket = next(self._tickets)
            self.feed(CommitAsked(ticket, CommitKind.REVOCATION, offsets, deadline_ms))

    def close(self, error: Kip848Error | None = None) -> None:
        """Nothing will be sent any more: end every wait, with ``error`` if there is one."""
        self._closed = True
        self._failure = self._failure or error
        for done, _ in self._waiting.values():
            done.set()
        self._waiting.clear()

    async def fetch_committed(
        self, partitions: Collection[TopicPartition], deadline_ms: int
    ) -> dict[TopicPartition, CommittableOffset | None]:
        """What is committed; ``None`` for nothing. A partition that the broker does not know until
        the deadline is left out.

        Raises ``BrokerError`` for what waiting does not cure, ``RequestTimedOut`` at the deadline.
        """
        last = "no answer"
        failures = 0
        while True:
            try:
                found = await self._ask_committed(partitions)
            except TransportError as err:
                self._suspect(str(err))
                last = str(err)
            except BrokerError as err:
                if not self._is_worth_retrying(err):
                    raise
                last = str(err)
            else:
                missing = [tp for tp in partitions if tp not in found]
                if not missing or self._clock.now_ms() >= deadline_ms:
                    return found
                last = f"unknown: {', '.join(f'{tp.topic}-{tp.partition}' for tp in missing)}"
                partitions = missing if not found else partitions
            if self._clock.now_ms() >= deadline_ms:
                raise RequestTimedOut(f"committed offsets could not be read in time: {last}")
            failures += 1
            with anyio.move_on_after(self._backoff.pause_s(failures)):
                await self._epoch_moved.wait()

    async def _ask_committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, CommittableOffset | None]:
        await self._transport.find_coordinator()
        table = TopicTable((tp.topic for tp in partitions), self._topics.id_of)
        epoch = self._core.member_epoch
        member = None if epoch is None else (self._identity.member_id, epoch)
        request = fetch_request(self._identity.group_id, member, partitions, table)
        response = await self._transport.coordinator(request, versions=table.versions)
        code, rows = committed_offsets(response, table)
        _raise_for(code)
        found: dict[TopicPartition, CommittableOffset | None] = {}
        for tp in partitions:
            row = rows.get(tp)
            if row is None or row.error_code in _UNKNOWN_TOPIC:
                continue  # silence about a partition is not "nothing committed"
            _raise_for(row.error_code)
            found[tp] = (
                None
                if row.committed_offset == _NOTHING_COMMITTED
                else CommittableOffset(
                    row.committed_offset, row.committed_leader_epoch, row.metadata or ""
                )
            )
        return found

    def _is_worth_retrying(self, error: BrokerError) -> bool:
        if error.code in _MOVED:
            self._suspect(error.name)
            return True
        if error.code == ErrorCode.STALE_MEMBER_EPOCH and self._core.member_epoch is not None:
            self._tell_member(HeartbeatWanted())
            return True
        if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._tell_member(HeartbeatWanted())  # it will be fenced and give up what it has
            return False
        return error.retriable or error.code == ErrorCode.UNSTABLE_OFFSET_COMMIT

    async def _send(self, command: SendCommit) -> None:
        offsets = dict(command.offsets)
        refused = self._set_aside_recreated(command, offsets)
        table = TopicTable((tp.topic for tp in offsets), self._topics.id_of)
        member = None
        if command.member_epoch is not None:
            identity = self._identity
            member = (identity.member_id, command.member_epoch, identity.instance_id)
        event: CommitEvent
        try:
            results: dict[TopicPartition, CommitRefusal | None] = {}
            if offsets:
                await self._transport.find_coordinator()
                response = await self._transport.coordinator(
                    commit_request(self._identity.group_id, member, offsets, table),
                    versions=table.versions,
                    timeout_ms=command.timeout_ms,
                )
                results = commit_results(response, table)
            event = CommitAnswered(command.attempt, results | refused)
        except TransportError as err:
            self._suspect(str(err))
            event = CommitLost(command.attempt, str(err))
        except BrokerError as err:
            if err.retriable:
                event = CommitLost(command.attempt, str(err))
            else:
                event = CommitImpossible(command.attempt, err)
        except (ProtocolError, UnsupportedVersion, Kip848Error) as err:
            event = CommitImpossible(command.attempt, err)
        self.feed(event)

    def _set_aside_recreated(
        self, command: SendCommit, offsets: dict[TopicPartition, CommittableOffset]
    ) -> dict[TopicPartition, CommitRefusal | None]:
        """Take out partitions whose topic was deleted and created again meanwhile: by name, their
        offset would be stored for the new topic."""
        refused: dict[TopicPartition, CommitRefusal | None] = {}
        for tp in command.offsets:
            held = self._assigned_id(tp)
            newest = self._topics.id_of(tp.topic)
            if held is not None and newest is not None and held != newest:
                del offsets[tp]
                refused[tp] = _RECREATED
        return refused

    def _finish(self, done: CommitDone) -> None:
        self._ended.set()
        self._ended = anyio.Event()
        waiting = None if done.ticket is None else self._waiting.pop(done.ticket, None)
        if waiting is None:
            for tp, error in sorted(done.failed.items()):
                # the epoch moved while it was under way, as in any rebalance: the next one cures it
                cured = (
                    isinstance(error, BrokerError) and error.code == ErrorCode.STALE_MEMBER_EPOCH
                )
                level = logging.INFO if cured else logging.WARNING
                _log.log(level, "automatic commit of %s-%d: %s", tp.topic, tp.partition, error)
            return
        event, result = waiting
        result.append(done)
        event.set()

    def _suspect(self, why: str) -> None:
        self._transport.forget_coordinator()
        self._tell_member(CoordinatorLost(why))


def _raise_for(code: int) -> None:
    if code != 0:
        raise broker_error(code, error_name(code), api="OffsetFetch", retriable=is_retriable(code))
