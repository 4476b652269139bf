"""Performs the commands of the fetch core. It contains no protocol rules.

Each command that takes time is a task; its end is an event with the number of the command.
Notifications to the application's side (positions, readable records) are made within the step.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

import anyio

from kip848_client.consumer._commits import Commits
from kip848_client.core.cluster import LearnLeaders
from kip848_client.core.fetch import (
    FETCH_VERSIONS,
    CloseRequested,
    CloseSession,
    Command,
    CommittedFailed,
    CommittedFound,
    Event,
    FetchAnswered,
    FetchCore,
    FetchLost,
    FoundOffset,
    ListOffsets,
    LookUpCommitted,
    Notice,
    OffsetsAsked,
    OffsetsFound,
    OffsetsListed,
    OffsetsNotFound,
    OffsetsNotListed,
    OffsetsWithdrawn,
    Positioned,
    Readable,
    SendFetch,
    StoredOffset,
    TimerFired,
    UseEndpoints,
    closing_request,
    fetch_answer,
    fetch_request,
    list_offsets_request,
    list_offsets_versions,
    listed_offsets,
)
from kip848_client.core.ports import Clock, NotSent, Transport
from kip848_client.core.types import TopicIdPartition, TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    BrokerError,
    ConsumerClosed,
    Kip848Error,
    LocalProtocolError,
    RequestTimedOut,
    UnsupportedVersion,
    WireError,
)
from kip848_client.observe.core.watching import FetchMeter
from kip848_client.runtime._stepping import Stepping
from kip848_client.runtime._topics import TopicDirectory

__all__ = ["Application", "FetchDriver"]

_log = logging.getLogger("kip848_client")

_SESSIONS_CLOSED_WITHIN_S: Final = 1.0
"""An unclosed session costs a broker some memory for a while, nothing else."""
_REMEMBERED_MIN: Final = 16


class Application(Protocol):
    """The side that delivers records. All methods are called within a step."""

    def positioned(self, told: Positioned) -> None:
        """A partition has another position."""
        ...

    def readable(self) -> None:
        """There may be a record to deliver, or an error to raise."""
        ...

    def changed(self) -> None:
        """The set of deliverable partitions has changed."""
        ...


class FetchDriver:
    """Drives one fetch core. Run ``run`` in a task; ``post`` events to it.

    ``commits`` looks up committed offsets, ``None`` without a group. ``meter`` measures, if wanted.
    ``fields`` are added to each log line.
    """

    def __init__(
        self,
        core: FetchCore,
        transport: Transport,
        topics: TopicDirectory,
        commits: Commits | None,
        application: Application,
        clock: Clock,
        *,
        patience_ms: int,
        request_timeout_ms: int,
        meter: FetchMeter | None = None,
        fields: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        self._fields = fields
        self._meter = meter
        self.core: Final = core
        self._transport = transport
        self._topics = topics
        self._commits = commits
        self._application = application
        self._clock = clock
        self._patience_ms = patience_ms
        self._request_timeout_ms = request_timeout_ms
        self._steps: Stepping[Event] = Stepping(
            self._step, lambda: core.deadline_ms, TimerFired, clock
        )
        self._changes = core.changes
        self._tickets = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Mapping[TopicPartition, FoundOffset]]] = {}
        self._failure: Kip848Error | None = None
        self._closing = 0
        self._asked_at: dict[TopicIdPartition, int] = {}
        self._asked_at_max = _REMEMBERED_MIN
        self._answered_ms: dict[int, int] = {}

    # -- for the application's side ----------------------------------------------------------

    def post(self, event: Event) -> None:
        """Pass an event to the core; its commands are performed before this returns, while ``run``
        runs."""
        self._steps.post(event)

    def ticket(self) -> int:
        """Return a number for a request to the core."""
        return next(self._tickets)

    async def offsets(
        self, times: Mapping[TopicPartition, int], deadline_ms: int
    ) -> Mapping[TopicPartition, FoundOffset]:
        """Look up offsets by time at the leaders: ``EARLIEST``, ``LATEST`` or ms since 1970.

        Raises ``BrokerError`` for errors that are not transient, ``RequestTimedOut`` at the
        deadline, ``ConsumerClosed``.
        """
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        if not times:
            return {}
        ticket = self.ticket()
        future: asyncio.Future[Mapping[TopicPartition, FoundOffset]]
        future = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = future
        self.post(OffsetsAsked(ticket, times, deadline_ms))
        try:
            return await future
        finally:
            if self._waiting.pop(ticket, None) is not None:
                self.post(OffsetsWithdrawn(ticket))

    def answered_ms(self, tp: TopicPartition) -> int | None:
        """When the broker that this partition was last requested from last answered."""
        topic_id = self.core.topic_id(tp)
        node = None if topic_id is None else self._asked_at.get((topic_id, tp.partition))
        return None if node is None else self._answered_ms.get(node)

    def end_waits(self, error: Kip848Error | None = None) -> None:
        """End every wait, with ``error`` if there is one: nothing more is looked up."""
        self._failure = self._failure or error or ConsumerClosed("the consumer is closed")
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(self._failure.with_traceback(None))
        self._waiting.clear()

    # -- life --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Drive the core until cancelled. Raises only errors that show a bug of this client."""
        await self._steps.run()

    async def begun(self) -> None:
        """Return when ``run`` runs: from then on events are processed at once."""
        await self._steps.begun()

    async def close(self, within_s: float) -> None:
        """Request nothing more, and close the sessions as far as the time allows."""
        self.post(CloseRequested())
        with anyio.move_on_after(min(within_s, _SESSIONS_CLOSED_WITHIN_S)):
            while self._closing and self._steps.running:
                await self._steps.stepped()

    def _step(self, event: Event) -> None:
        core = self.core
        try:
            commands = core.step(self._clock.now_ms(), event)
        except LocalProtocolError as err:
            # The application's calls check the state first; this one lost a race with a close.
            _log.debug("event %r was refused: %s", event, err)
            return
        if self._meter is not None:
            self._meter.on_step(self._clock.now_ms(), event, commands)
        if core.changes != self._changes:
            self._changes = core.changes
            self._application.changed()
        for command in commands:
            self._perform(command)

    def _perform(self, command: Command) -> None:
        match command:
            case SendFetch():
                self._note_asked(command)
                self._steps.start(self._fetch, command)
            case Readable():
                self._application.readable()
            case Positioned():
                self._application.positioned(command)
            case ListOffsets():
                self._steps.start(self._list_offsets, command)
            case LearnLeaders():
                self._steps.start(self._learn_leaders, command)
            case LookUpCommitted():
                self._steps.start(self._look_up_committed, command)
            case UseEndpoints():
                self._transport.add_brokers([(e.node, e.host, e.port) for e in command.nodes])
            case CloseSession():
                self._closing += 1
                self._steps.start(self._close_session, command)
            case OffsetsFound():
                self._finish(command.ticket, command.found)
            case OffsetsNotFound():
                self._finish(command.ticket, command.error)
            case Notice():
                level = logging.WARNING if command.warning else logging.INFO
                _log.log(level, "%s", command.text, extra=dict(self._fields))
            case _:
                raise AssertionError(f"no such command: {command!r}")

    def _finish(
        self, ticket: int, result: Mapping[TopicPartition, FoundOffset] | Kip848Error
    ) -> None:
        future = self._waiting.pop(ticket, None)
        if future is None or future.done():
            return  # the caller has stopped waiting
        if isinstance(result, Kip848Error):
            future.set_exception(result)
        else:
            future.set_result(result)

    # -- requests ----------------------------------------------------------------------------

    async def _fetch(self, command: SendFetch) -> None:
        fetch, node = command.fetch, command.node
        try:
            response = await self._transport.fetch(
                node,
                fetch_request(command.intent),
                versions=FETCH_VERSIONS,
                timeout_ms=command.timeout_ms,
            )
            answer = fetch_answer(response)
        except Kip848Error as err:
            self.post(FetchLost(fetch, str(err), not isinstance(err, NotSent), _to_tell(err)))
            return
        self._answered_ms[node] = self._clock.now_ms()
        if len(answer.partitions) > self.core.rows_a_step:
            await asyncio.sleep(0)  # translation was enough work for one loop iteration
        self.post(FetchAnswered(fetch, answer))

    def _note_asked(self, command: SendFetch) -> None:
        for each in command.intent.add:
            self._asked_at[each.key] = command.node
        for key in command.intent.forget:
            if self._asked_at.get(key) == command.node:  # otherwise another broker is asked by now
                del self._asked_at[key]
        self._forget_where_others_were_asked()

    def _forget_where_others_were_asked(self) -> None:
        """Prune the map: partitions come and go, and without a session there is no forget
        request."""
        if len(self._asked_at) > self._asked_at_max:
            ours = {(self.core.topic_id(tp), tp.partition) for tp in self.core.assigned}
            self._asked_at = {key: at for key, at in self._asked_at.items() if key in ours}
            self._asked_at_max = _REMEMBERED_MIN + 2 * len(self._asked_at)

    async def _list_offsets(self, command: ListOffsets) -> None:
        request = list_offsets_request(command, self._request_timeout_ms)
        try:
            response = await self._transport.broker(
                command.node, request, versions=list_offsets_versions(command)
            )
        except Kip848Error as err:
            self.post(OffsetsNotListed(command.query, str(err), _to_tell(err)))
            return
        self.post(OffsetsListed(command.query, listed_offsets(command, response)))

    async def _learn_leaders(self, command: LearnLeaders) -> None:
        self.post(await self._topics.look_up(command))

    async def _look_up_committed(self, command: LookUpCommitted) -> None:
        assert self._commits is not None, "without a group nothing is committed"
        deadline_ms = self._clock.now_ms() + self._patience_ms
        try:
            stored = await self._commits.fetch_committed(command.partitions, deadline_ms)
        except Kip848Error as err:
            self.post(CommittedFailed(command.number, err, _is_passing(err)))
            return
        offsets = {
            tp: None if found is None else StoredOffset(found.offset, found.leader_epoch)
            for tp, found in stored.items()
        }
        self.post(CommittedFound(command.number, offsets))

    async def _close_session(self, command: CloseSession) -> None:
        # Not on the fetch connection: a fetch may wait there, at the broker.
        try:
            await self._transport.broker(
                command.node, closing_request(command), versions=FETCH_VERSIONS
            )
        except Kip848Error as err:
            _log.debug("fetch session of broker %d was not closed: %s", command.node, err)
        self._closing -= 1
        self._steps.wake_waiters()


def _to_tell(error: Kip848Error) -> Kip848Error | None:
    """Return ``error`` if a retry cannot help: failed authentication, a missing version."""
    if isinstance(error, BrokerError | UnsupportedVersion):
        return error
    if isinstance(error, WireError):
        raise error  # our own request cannot be encoded
    return None


def _is_passing(error: Kip848Error) -> bool:
    """Whether a failed look-up of committed offsets is not worth reporting: an unknown member is
    fenced or gone, and so will its partitions be; or a retry may help."""
    if isinstance(error, BrokerError):
        return error.code == ErrorCode.UNKNOWN_MEMBER_ID
    return isinstance(error, RequestTimedOut | ConsumerClosed)
