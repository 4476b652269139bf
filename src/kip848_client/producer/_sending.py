"""The path of a record from ``send`` into a batch: a producer's hot path.

There is no task and no event per record. When a batch is begun, a step of the core follows in the
next turn of the event loop. If an application sends without pausing, ``send`` lets other tasks run
from time to time, so that ready batches are sent: by then there are several, in one request.

If there is no memory, senders queue up. While the first one waits, all others wait too, so that
small records do not overtake a large one forever; and only the first one is woken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from threading import get_ident
from typing import Any, Final, Literal

from kip848_client.core.produce import Placed, Refused, Route
from kip848_client.core.short import short
from kip848_client.core.types import TopicPartition
from kip848_client.errors import (
    BrokerError,
    ConfigError,
    DeliveryTimedOut,
    Kip848Error,
    LocalProtocolError,
    RecordTooLarge,
    RequestTimedOut,
)
from kip848_client.producer._deliveries import OnItsWay, RecordMetadata
from kip848_client.producer._engine import Engine
from kip848_client.runtime._home import task_of
from kip848_client.runtime.arguments import checked_partition, checked_time_ms, checked_topic
from kip848_client.serialization import ContextSerializer, SerializationContext

__all__ = ["Partitioner", "Sending", "Serializer", "checked_serializer"]

Serializer = Callable[[Any], Any]
"""Returns the bytes (or ``None``) of a key or a value, or a coroutine that returns them."""
Partitioner = Callable[[bytes | None, list[int], list[int]], int]
"""As in aiokafka: takes the key, all partitions and the available ones, which may be none."""

_HOGGED_MS: Final = 1
"""How long other tasks and ready batches may have to wait."""
_TURNS: Final = 3
"""Turns of the event loop to yield: an answer arrives in the first, the task that waits for it
posts it in the second, and the next request is sent in the third."""
_Headers = list[tuple[str, bytes | None]]
_Record = tuple[int, bytes | None, bytes | None, _Headers]

_NO_HEADERS: Final[_Headers] = []

_REFUSED: Final = (RecordTooLarge, DeliveryTimedOut, RequestTimedOut, BrokerError)
"""Errors that prevent a record from being sent. A wrong argument does not count, because no record
was to be sent."""


class Sending:
    """Accepts the records of one producer. The ``is_open`` argument of its methods checks whether a
    block's transaction is still the open one."""

    def __init__(
        self,
        engine: Engine,
        key_serializer: Serializer | None,
        value_serializer: Serializer | None,
        partitioner: Partitioner | None,
    ) -> None:
        core = engine.core
        self._engine = engine
        self._producing = engine.producing
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._partitioner = partitioner
        self._core = core
        self._serializes = key_serializer is not None or value_serializer is not None
        self._is_plain = not self._serializes and partitioner is None
        self._routes = core.routes
        self._add = core.add
        self._home = engine.runtime.home
        self._loop = self._home.loop
        self.thread: Final = self._home.thread
        self._batches = engine.producing.deliveries.batches
        self._gives_way = False
        self._turn_ms = 0
        """When other tasks last ran."""
        self._line = asyncio.Lock()
        """The queue of callers that wait for memory."""
        self.transaction = 0
        """Changes with each transaction that begins."""

    async def send(  # noqa: PLR0912 - another call would cost as much as all of this
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Iterable[tuple[str, bytes | None]] | None,
        is_open: Callable[[], None] | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Put a record into a batch. ``is_open`` raises if it is not allowed any more."""
        if task_of(self._home.loop) is None or get_ident() != self.thread:
            self._home.check()  # inlined, because a call costs more
        transaction = self.transaction
        if self._gives_way:
            await self._give_way()
        checked = _checked_headers(headers) if headers else []
        if self._serializes:
            key, value, checked = await self._serialized(topic, key, value, checked)
        else:
            if key.__class__ is not bytes and key is not None:
                key = await _as_bytes(key, "key", None)
            if value.__class__ is not bytes and value is not None:
                value = await _as_bytes(value, "value", None)
        route = self._routes.get(topic) if topic.__class__ is str else None
        if route is None:
            route = await self._learn(topic)
        is_free = partition is None and self._partitioner is None
        if is_free:
            tp = route.of(key)
        else:
            tp = self._chosen(route, key, partition)
            if tp.partition >= len(route.partitions):
                await self._find(tp)
        time_ms = _now_ms() if timestamp_ms is None else _checked_time(timestamp_ms)
        if is_open is not None:
            is_open()
        if transaction != self.transaction:
            raise _too_late()
        try:
            number = self._add(tp, time_ms, key, value, checked)
            if number is None:
                turns = route if is_free and key is None else None
                record = (time_ms, key, value, checked)
                number, _, tp, _ = await self._begin(tp, record, turns, is_open)
        except Kip848Error as err:
            self._refused(err)
            raise
        batch = self._batches.get(number)
        if batch is None:
            self._producing.check()  # if the producer has ended, raise here: no result would follow
            batch = self._batches[number] = OnItsWay(tp)
        future: asyncio.Future[RecordMetadata] = self._loop.create_future()
        batch.futures.append(future)
        batch.times.append(time_ms)
        return future

    def put(
        self, topic: str, value: Any, key: Any, partition: int | None, timestamp_ms: int | None
    ) -> bool:
        """Put a record without headers into a batch, at once and without a future: the result of
        the transaction reports errors. Returns False if it is not that simple; then call ``send``.
        Raises the errors of ``send``."""
        if (
            self._gives_way
            or not self._is_plain
            or partition is not None
            or (key.__class__ is not bytes and key is not None)
            or (value.__class__ is not bytes and value is not None)
        ):
            return False
        route = self._routes.get(topic) if topic.__class__ is str else None
        if route is None:
            return False
        tp = route.of(key)
        time_ms = _now_ms() if timestamp_ms is None else _checked_time(timestamp_ms)
        number = self._add(tp, time_ms, key, value, _NO_HEADERS)
        if number is None:
            return False
        batch = self._batches.get(number)
        if batch is None:
            self._producing.check()
        else:
            batch.futures.append(None)
            batch.times.append(time_ms)
        return True

    async def _serialized(
        self, topic: str, key: Any, value: Any, headers: _Headers
    ) -> tuple[bytes | None, bytes | None, _Headers]:
        """The results of the serializers, which may have added headers."""
        key = await self._bytes_of(key, self._key_serializer, topic, "key", headers)
        value = await self._bytes_of(value, self._value_serializer, topic, "value", headers)
        return key, value, headers

    async def _bytes_of(
        self,
        given: Any,
        serializer: Serializer | None,
        topic: str,
        field: Literal["key", "value"],
        headers: _Headers,
    ) -> bytes | None:
        if isinstance(serializer, ContextSerializer):
            context = SerializationContext(_plain(checked_topic(topic)), field, headers)
            given = await serializer.serialize(given, context)
            headers[:] = _checked_headers(headers)
        elif serializer is not None:
            given = serializer(given)
        if given.__class__ is not bytes and given is not None:
            given = await _as_bytes(given, field, serializer)
        made: bytes | None = given
        return made

    async def begin_turn(self) -> None:
        """Let other tasks run now, so that the following records can go into one batch. Call
        ``keep_turn`` before each of them."""
        await self._give_way()

    def keep_turn(self) -> None:
        """Let no other task run before the next record."""
        self._gives_way = False

    async def _give_way(self) -> None:
        self._gives_way = False
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        self._turn_ms = self._engine.clock.now_ms()

    def _chosen(self, route: Route, key: bytes | None, partition: int | None) -> TopicPartition:
        """The partition chosen by the application."""
        known = route.partitions
        if partition is None:
            assert self._partitioner is not None
            # fresh lists, because a partitioner may change them
            led = [each.partition for each in route.led]
            chosen = self._partitioner(key, list(range(len(known))), led)
            try:
                return _existing(self._meant(known, chosen), len(known))
            except ConfigError as err:
                raise ConfigError(f"the partitioner has returned {short(chosen)}: {err}") from None
        return self._meant(known, partition)

    def _meant(self, known: Sequence[TopicPartition], partition: int) -> TopicPartition:
        if partition.__class__ is int and 0 <= partition < len(known):
            return known[partition]
        tp = checked_partition((known[0].topic, partition))
        return known[tp.partition] if tp.partition < len(known) else tp

    async def _find(self, tp: TopicPartition) -> None:
        """A partition that is not known may have been added since the last metadata."""
        _existing(tp, len((await self._learn(tp.topic, refresh=True)).partitions))

    async def _learn(self, topic: str, *, refresh: bool = False) -> Route:
        """The topic's route. With ``refresh``, brokers are asked in any case."""
        topic = _plain(checked_topic(topic))
        while (route := self._routes.get(topic)) is None or refresh:
            try:
                max_block_ms = self._engine.config.max_block_ms
                await self._producing.learn(topic, max_block_ms, refresh=refresh)
            except Kip848Error as err:
                self._refused(err)
                raise
            refresh = False
        return route

    async def count(self, topic: str) -> int:
        """The topic's number of partitions, requested if necessary."""
        self._home.check()
        checked_topic(topic)
        await self._producing.learn(_plain(topic), self._engine.config.max_block_ms)
        return len((await self._learn(topic)).partitions)

    async def _begin(
        self,
        tp: TopicPartition,
        record: _Record,
        turns: Route | None,
        is_open: Callable[[], None] | None,
    ) -> Placed:
        """Begin a batch if there is memory for it. ``turns``: the route, if the partition may
        change."""
        now_ms = self._engine.clock.now_ms()
        placed: Placed | None = None
        if not self._producing.is_hungry:
            placed = self._core.append(now_ms, tp, *record, turns)
        if placed is None:
            placed = await self._begin_later(tp, record, turns, is_open)
            now_ms = self._turn_ms
        self._gives_way = now_ms - self._turn_ms >= _HOGGED_MS
        if placed.notify:
            self._producing.notify()
        return placed

    async def _begin_later(
        self,
        tp: TopicPartition,
        record: _Record,
        turns: Route | None,
        is_open: Callable[[], None] | None,
    ) -> Placed:
        """Wait in the queue of callers without memory, then begin a batch."""
        meter = self._producing.meter
        since_ms = 0 if meter is None else meter.waits_for_room()
        try:
            return await self._stand_in_line(tp, record, turns, is_open)
        except DeliveryTimedOut:
            if meter is not None:
                meter.found_no_room()
            raise
        finally:
            if meter is not None:
                meter.goes_on(since_ms)

    async def _stand_in_line(
        self,
        tp: TopicPartition,
        record: _Record,
        turns: Route | None,
        is_open: Callable[[], None] | None,
    ) -> Placed:
        transaction = self.transaction
        try:
            async with asyncio.timeout(self._engine.config.max_block_ms / 1000), self._line:
                while True:
                    if is_open is not None:
                        is_open()
                    if transaction != self.transaction:
                        raise _too_late()
                    if turns is not None:
                        tp = turns.of(None)
                    now_ms = self._turn_ms = self._engine.clock.now_ms()
                    placed = self._core.append(now_ms, tp, *record, turns)
                    if placed is not None:
                        return placed
                    await self._producing.room()
        except TimeoutError:
            raise DeliveryTimedOut(
                "there was no room for another record within max_block_ms: records are sent more "
                "slowly than they come in; await what send() returns, or raise buffer_memory",
                maybe_written=False,
            ) from None

    def _refused(self, error: Kip848Error) -> None:
        """Report an error to the core: a transaction that lacks a record must not be committed."""
        if isinstance(error, _REFUSED) and not isinstance(error, LocalProtocolError):
            self._producing.post(Refused(error))


def _existing(tp: TopicPartition, count: int) -> TopicPartition:
    topic, number = tp
    if number < count:
        return tp
    raise ConfigError(
        f"{topic} has {count} partitions, from 0 to {count - 1}: there is no {number}"
    )


def _too_late() -> LocalProtocolError:
    return LocalProtocolError(
        "the transaction in which this was sent is over; the record waited for a serializer, for "
        "metadata or for room until after its end"
    )


def _now_ms() -> int:
    """The machine's clock. Raises ``LocalProtocolError`` before 1970, as Java does."""
    now_ms = int(time.time() * 1000)
    if now_ms < 0:
        raise LocalProtocolError(
            "this machine's clock is before 1970, and a record's timestamp cannot be negative: set "
            "the clock, or pass timestamp_ms with each record"
        )
    return now_ms


def checked_serializer(function: object, name: str) -> Any:
    """Return a function of one argument, or ``None``."""
    if function is not None and not callable(function):
        raise ConfigError(f"{name} is a function, or None; not {short(function)}")
    return function


async def _as_bytes(value: Any, name: str, serializer: Serializer | None) -> bytes | None:
    if isawaitable(value):
        awaited: Awaitable[Any] = value
        value = await awaited
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if serializer is not None:
        raise ConfigError(f"{name}_serializer has returned {short(value)}, not bytes or None")
    raise ConfigError(
        f"the {name} of a record is bytes or None, not {short(value)}; a {name}_serializer makes "
        "bytes of what you send"
    )


def _checked_time(timestamp_ms: object) -> int:
    return checked_time_ms(timestamp_ms, "timestamp_ms")


def _plain(text: str) -> str:
    """The plain string: a member of a string enumeration is also a ``str``."""
    return str.__str__(text)


def _checked_headers(headers: Any) -> _Headers:
    wrong = f"headers are a list of (str, bytes or None), not {short(headers)}"
    if isinstance(headers, str | bytes):
        raise ConfigError(wrong)
    try:
        given = [(name, value) for name, value in headers]
    except (TypeError, ValueError):
        raise ConfigError(wrong) from None
    found: _Headers = []
    for name, value in given:
        if not isinstance(name, str):
            raise ConfigError(wrong)
        if value is not None and not isinstance(value, bytes | bytearray | memoryview):
            raise ConfigError(wrong)
        try:
            name.encode()
        except UnicodeEncodeError as err:
            raise ConfigError(f"{wrong}: a name is not UTF-8: {err.reason}") from err
        found.append((_plain(name), None if value is None else bytes(value)))
    return found
