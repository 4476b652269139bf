"""Where to begin in each partition: committed offsets, and what to do without one.

A partition gets its position from, in this order: a ``seek`` of the user (also inside
``on_partitions_assigned``), the committed offset, ``auto_offset_reset``. The last is asked for only
after an answer that says "nothing committed" without any error.

A look-up belongs to one tenure of the partition: if it was taken away, given back or sought
meanwhile, its result is thrown away.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Collection, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, Final

import anyio

from kip848_client._aiokafka._fetch import FetchPath
from kip848_client._ports import Clock, TopicView, Transport, VersionLimits
from kip848_client._types import TopicPartition
from kip848_client.config import parse_duration_ms
from kip848_client.consumer._backoff import Backoff
from kip848_client.consumer._commits import Commits
from kip848_client.consumer._errors import ErrorBox
from kip848_client.consumer._records import OffsetAndTimestamp
from kip848_client.error_codes import ErrorCode, error_name, is_retriable
from kip848_client.errors import (
    BrokerError,
    ConsumerClosed,
    Kip848Error,
    NoOffsetForPartition,
    RequestTimedOut,
    TransportError,
    broker_error,
    not_assigned,
)
from kip848_client.offsets import CommittableOffset, OffsetTracker
from kip848_client.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
)

__all__ = ["EARLIEST", "LATEST", "OffsetLookup", "Positions"]

_log = logging.getLogger("kip848_client")

Committed = Mapping[TopicPartition, CommittableOffset | None]
"""What a group has stored; ``None`` for nothing."""

LATEST: Final = -1
EARLIEST: Final = -2
_NOT_FOUND: Final = -1
_VERSIONS: Final[VersionLimits] = (2, 32767)
"""Version 2 knows the isolation level."""
_RETRY_S: Final = 1.0
"""Between attempts after an error that was raised to the user."""


class OffsetLookup:
    """Offsets by time, asked of the partitions' leaders (ListOffsets)."""

    def __init__(
        self,
        transport: Transport,
        topics: TopicView,
        clock: Clock,
        *,
        read_committed: bool,
        backoff: Backoff,
        request_timeout_ms: int,
    ) -> None:
        self._transport = transport
        self._topics = topics
        self._clock = clock
        self._isolation = int(read_committed)
        self._backoff = backoff
        self._request_timeout_ms = request_timeout_ms

    async def find(
        self, times: Mapping[TopicPartition, int], deadline_ms: int
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """The first offset at or after each time (``EARLIEST``, ``LATEST`` or ms since 1970);
        offset -1 when there is none.

        Raises ``BrokerError`` for what waiting does not cure, ``RequestTimedOut`` at the deadline.
        """
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        last = "no leader is known"
        failures = 0
        while True:
            missing = {tp: at for tp, at in times.items() if tp not in found}
            if not missing:
                return found
            last = await self._round(missing, found) or last
            if len(found) == len(times):
                return found
            if self._clock.now_ms() >= deadline_ms:
                names = ", ".join(f"{tp[0]}-{tp[1]}" for tp in sorted(set(times) - set(found)))
                raise RequestTimedOut(f"offsets of {names} were not found in time: {last}")
            failures += 1
            await anyio.sleep(self._backoff.pause_s(failures))

    async def _round(
        self,
        missing: Mapping[TopicPartition, int],
        found: dict[TopicPartition, OffsetAndTimestamp],
    ) -> str:
        """Ask each leader once; returns what went wrong, if anything did."""
        if any(self._topics.leader_of(tp) is None for tp in missing):
            try:
                await self._topics.refresh({tp[0] for tp in missing})
            except TransportError as err:
                return str(err)
        by_leader: dict[int, dict[TopicPartition, int]] = {}
        for tp, at in sorted(missing.items()):
            leader = self._topics.leader_of(tp)
            if leader is not None:
                by_leader.setdefault(leader, {})[tp] = at
        trouble: list[str] = []
        errors: list[Kip848Error] = []

        async def ask(leader: int, wanted: Mapping[TopicPartition, int]) -> None:
            try:
                trouble.extend(await self._ask(leader, wanted, found))
            except TransportError as err:
                trouble.append(str(err))
            except Kip848Error as err:
                errors.append(err)

        async with anyio.create_task_group() as group:
            for leader, wanted in by_leader.items():
                group.start_soon(ask, leader, wanted)
        if errors:
            raise errors[0]
        if trouble:
            try:
                await self._topics.refresh({tp[0] for tp in missing})
            except TransportError as err:
                trouble.append(str(err))
        return trouble[-1] if trouble else ""

    async def _ask(
        self,
        leader: int,
        wanted: Mapping[TopicPartition, int],
        found: dict[TopicPartition, OffsetAndTimestamp],
    ) -> list[str]:
        by_topic: dict[str, list[ListOffsetsRequestListOffsetsPartition]] = {}
        for tp, at in wanted.items():
            by_topic.setdefault(tp[0], []).append(
                ListOffsetsRequestListOffsetsPartition(partition_index=tp[1], timestamp=at)
            )
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self._isolation,
            topics=tuple(
                ListOffsetsRequestListOffsetsTopic(name=name, partitions=tuple(partitions))
                for name, partitions in by_topic.items()
            ),
            timeout_ms=self._request_timeout_ms,
        )
        answer = await self._transport.broker(leader, request, versions=_VERSIONS)
        trouble: list[str] = []
        for topic in answer.topics:
            for each in topic.partitions:
                tp = TopicPartition(topic.name, each.partition_index)
                code = each.error_code
                if code == 0:
                    found[tp] = OffsetAndTimestamp(each.offset, each.timestamp)
                elif is_retriable(code):
                    trouble.append(f"{tp.topic}-{tp.partition}: {error_name(code)}")
                else:
                    raise broker_error(code, error_name(code), f"{tp.topic}", api="ListOffsets")
        return trouble


class Positions:
    """Gives assigned partitions their position. ``spawn`` starts a task that lives as long as the
    consumer; ``commits`` is ``None`` without a group."""

    def __init__(
        self,
        fetch: FetchPath[Any],
        tracker: OffsetTracker,
        commits: Commits | None,
        lookup: OffsetLookup,
        errors: ErrorBox,
        clock: Clock,
        *,
        policy: str,
        patience_ms: int,
        spawn: Callable[..., None],
    ) -> None:
        self._fetch = fetch
        self._tracker = tracker
        self._commits = commits
        self._lookup = lookup
        self._errors = errors
        self._clock = clock
        self._policy = policy
        self._patience_ms = patience_ms
        self._spawn = spawn
        self._moved = anyio.Event()
        self._closed = False
        self._searching: dict[TopicPartition, Any] = {}
        self._moves: dict[TopicPartition, object] = {}

    def begin(self, partitions: Iterable[TopicPartition]) -> None:
        """Find a position, in the background, for each of them that has none."""
        states = {tp: self._fetch.live.state_of(tp) for tp in self._lacking(partitions)}
        new = {tp: state for tp, state in states.items() if self._searching.get(tp) is not state}
        if new:
            self._searching.update(new)
            self._spawn(self._initialise, new)

    def out_of_range(self, tp: TopicPartition, offset: int) -> bool:
        """The broker does not have ``offset``; returns whether another position will be found."""
        if self._policy == "none":
            return False
        _log.warning(
            "%s-%d: offset %d is out of range, reset to %s", tp[0], tp[1], offset, self._policy
        )
        self._fetch.clear_position(tp)
        self._spawn(self._reset, {tp: self._fetch.live.state_of(tp)})
        return True

    def set(self, tp: TopicPartition, offset: int, committed: int | None = None) -> None:
        """Continue at ``offset``, wherever an older wish leads."""
        self._moves.pop(tp, None)
        self._put(tp, offset, committed)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """These partitions are gone."""
        for tp in partitions:
            self._moves.pop(tp, None)
            self._errors.unblock(tp)
        self._stir()

    async def seek_to(self, partitions: Collection[TopicPartition], at: int) -> None:
        """Move to the beginning or end (``EARLIEST``, ``LATEST``) and wait until that is done.

        Positions stay as they are until then: a look-up that fails or is cancelled changes nothing.
        A younger seek wins, and so does the loss of the partition.
        """
        with self._moving(partitions) as still_meant:
            found = await self._lookup.find(dict.fromkeys(partitions, at), self._deadline_ms())
            for tp in filter(still_meant, found):
                self._put(tp, found[tp].offset, None)

    async def seek_to_committed(
        self,
        partitions: Collection[TopicPartition],
        look_up: Callable[[Collection[TopicPartition]], Awaitable[Committed]],
    ) -> Committed:
        """As ``seek_to``, to what ``look_up`` finds, where it finds something."""
        with self._moving(partitions) as still_meant:
            stored = await look_up(partitions)
            for tp in filter(still_meant, stored):
                found = stored[tp]
                if found is not None:
                    self._put(tp, found.offset, found.offset)
        return stored

    @contextmanager
    def _moving(
        self, partitions: Collection[TopicPartition]
    ) -> Generator[Callable[[TopicPartition], bool]]:
        """For a look-up: gives a test whether a partition is still to be moved by it."""
        move = object()
        states = {tp: self._fetch.live.state_of(tp) for tp in partitions}
        self._moves.update(dict.fromkeys(partitions, move))
        try:
            yield (
                lambda tp: (
                    self._moves.get(tp) is move and self._fetch.live.state_of(tp) is states[tp]
                )
            )
        finally:
            for tp in partitions:
                if self._moves.get(tp) is move:
                    del self._moves[tp]

    async def wait_for(self, tp: TopicPartition) -> int:
        """The position, as soon as there is one, which this makes sure of: inside the listener's
        call it has not been looked for yet. Raises ``NotAssigned``, also when the partition is
        taken away meanwhile, and ``NoOffsetForPartition``."""
        if not self._closed:
            self.begin((tp,))
        while True:
            if self._closed:
                raise ConsumerClosed("the consumer is closed")
            self._errors.check_fatal()
            if self._fetch.live.state_of(tp) is None:
                raise not_assigned(tp[0], tp[1])
            position = self._fetch.position(tp)
            if position is not None:
                return position
            error = self._errors.blocked(tp)
            if error is not None:
                raise error.with_traceback(None)
            await self._moved.wait()

    def close(self) -> None:
        """End every wait."""
        self._closed = True
        self._stir()

    def wake(self) -> None:
        """Let every wait look again whether it still makes sense."""
        self._stir()

    def _put(self, tp: TopicPartition, offset: int, committed: int | None) -> None:
        self._fetch.set_position(tp, offset)
        self._tracker.seek(tp, offset, committed=committed)
        self._errors.unblock(tp)
        self._stir()

    def _stir(self) -> None:
        self._moved.set()
        self._moved = anyio.Event()

    def _lacking(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        return [
            tp
            for tp in partitions
            if self._fetch.live.state_of(tp) is not None and self._fetch.position(tp) is None
        ]

    def _deadline_ms(self) -> int:
        return self._clock.now_ms() + self._patience_ms

    def _apply(
        self,
        states: Mapping[TopicPartition, Any],
        offsets: Mapping[TopicPartition, int],
        *,
        committed: bool = False,
    ) -> None:
        for tp, offset in offsets.items():
            same = self._fetch.live.state_of(tp) is states[tp] and states[tp] is not None
            if same and self._fetch.position(tp) is None:
                self._put(tp, offset, offset if committed else None)

    async def _initialise(self, states: Mapping[TopicPartition, Any]) -> None:
        async def attempt(lacking: list[TopicPartition]) -> list[TopicPartition]:
            if self._commits is None:
                return lacking
            stored = await self._commits.fetch_committed(lacking, self._deadline_ms())
            known = {tp: each.offset for tp, each in stored.items() if each is not None}
            self._apply(states, known, committed=True)
            return [tp for tp, each in stored.items() if each is None]

        try:
            without = await self._persist(states, attempt)
            if without:
                await self._reset({tp: states[tp] for tp in without})
        finally:
            for tp, state in states.items():
                if self._searching.get(tp) is state:
                    del self._searching[tp]

    async def _reset(self, states: Mapping[TopicPartition, Any]) -> None:
        if self._policy == "none":
            for tp in self._mine(states):
                self._errors.block(
                    tp,
                    NoOffsetForPartition(
                        f"{tp.topic}-{tp.partition} has no committed offset and auto_offset_reset "
                        "is 'none'; seek to an offset, or choose a policy"
                    ),
                )
            self._stir()
            return

        async def attempt(lacking: list[TopicPartition]) -> list[TopicPartition]:
            self._apply(states, await self._starts(lacking))
            return []

        await self._persist(states, attempt)

    async def _starts(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        deadline_ms = self._deadline_ms()
        at = {"earliest": EARLIEST, "latest": LATEST}.get(self._policy)
        if at is None:
            past = parse_duration_ms(self._policy.removeprefix("by_duration:"))
            at = int(time.time() * 1000) - past
        found = await self._lookup.find(dict.fromkeys(partitions, at), deadline_ms)
        none_so_young = [tp for tp, each in found.items() if each.offset == _NOT_FOUND]
        if none_so_young:
            found |= await self._lookup.find(dict.fromkeys(none_so_young, LATEST), deadline_ms)
        return {tp: each.offset for tp, each in found.items()}

    async def _persist(
        self, states: Mapping[TopicPartition, Any], attempt: Callable[..., Any]
    ) -> list[TopicPartition]:
        """Try until it works or nothing is left to try for; tell the user why it does not."""
        while True:
            lacking = self._mine(states)
            if not lacking:
                return []
            try:
                left: list[TopicPartition] = await attempt(lacking)
            except BrokerError as err:
                # an unknown member is fenced or gone, and its partitions will be, too
                if err.code != ErrorCode.UNKNOWN_MEMBER_ID:
                    self._errors.raise_once(err)
            except RequestTimedOut as err:
                _log.warning("no position yet: %s", err)
                continue
            except Kip848Error as err:
                self._errors.raise_once(err)
            else:
                return left
            await anyio.sleep(_RETRY_S)

    def _mine(self, states: Mapping[TopicPartition, Any]) -> list[TopicPartition]:
        """Those of the partitions that still are what they were, and still lack a position."""
        return [
            tp
            for tp, state in states.items()
            if state is not None
            and self._fetch.live.state_of(tp) is state
            and self._fetch.position(tp) is None
        ]
