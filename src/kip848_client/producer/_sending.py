"""The way of a record from ``send`` into a batch: the hot path of a producer.

There is no task and no event a record. A step of the core follows, in the next turn of the loop,
when a batch is begun. Where an application sends without a pause, ``send`` gives way to other tasks
from time to time, so that what is ready goes out: by then it is several batches, in one request.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from typing import Any, Final

from kip848_client._arguments import checked_partition, checked_time_ms, checked_topic
from kip848_client._shown import shown
from kip848_client._types import TopicPartition
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
from kip848_client.producing import Placed, Refused, Route

__all__ = ["Partitioner", "Sending", "Serializer", "checked_serializer"]

Serializer = Callable[[Any], Any]
"""Makes bytes (or ``None``) of a key or a value, or a coroutine that returns them."""
Partitioner = Callable[[bytes | None, list[int], list[int]], int]
"""aiokafka's: gets the key, all partitions and those that can be written to, which may be none."""

_HOGGED_MS: Final = 1
"""So long other tasks may have to wait, and what is ready to be sent."""
_TURNS: Final = 3
"""Of the loop: an answer comes in the first, the task that waits for it posts it in the second, and
in the third what may follow is sent."""
_Record = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]

_REFUSED: Final = (RecordTooLarge, DeliveryTimedOut, RequestTimedOut, BrokerError)
"""What keeps a record from being sent. A wrong argument is nothing that was meant to be sent."""


class Sending:
    """Takes the records of one producer. ``is_open`` tells whether a block's transaction is still
    the one that is open."""

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
        self._routes = core.routes
        self._add = core.add
        self._loop = engine.loop
        self._batches = engine.producing.deliveries.batches
        self._gives_way = False
        self._turn_ms = 0
        """When other tasks had their turn."""

    async def send(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Iterable[tuple[str, bytes | None]] | None,
        is_open: Callable[[], None] | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        """Put a record into a batch. ``is_open`` raises where it may not be any more."""
        if self._gives_way:
            self._gives_way = False
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            self._turn_ms = self._engine.clock.now_ms()
        if self._key_serializer is not None:
            key = self._key_serializer(key)
        if key.__class__ is not bytes and key is not None:
            key = await _as_bytes(key, "key", self._key_serializer)
        if self._value_serializer is not None:
            value = self._value_serializer(value)
        if value.__class__ is not bytes and value is not None:
            value = await _as_bytes(value, "value", self._value_serializer)
        checked = _checked_headers(headers) if headers else []
        if topic.__class__ is not str:
            topic = _plain(checked_topic(topic))
        route = self._routes.get(topic)
        if route is None:
            route = await self._learn(topic)
        is_free = partition is None and self._partitioner is None
        tp = route.of(key) if is_free else self._chosen(topic, route, key, partition)
        time_ms = int(time.time() * 1000) if timestamp_ms is None else _checked_time(timestamp_ms)
        if is_open is not None:
            is_open()
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
            self._producing.check()  # where nothing is sent any more, nothing tells of it
            batch = self._batches[number] = OnItsWay(tp)
        future: asyncio.Future[RecordMetadata] = self._loop.create_future()
        batch.futures.append(future)
        batch.times.append(time_ms)
        return future

    def _chosen(
        self, topic: str, route: Route, key: bytes | None, partition: int | None
    ) -> TopicPartition:
        """Where the application wants it."""
        known = route.partitions
        if partition is None:
            assert self._partitioner is not None
            # lists of its own: a partitioner may change them
            led = [each.partition for each in route.led]
            chosen = self._partitioner(key, list(range(len(known))), led)
            try:
                return self._meant(topic, known, chosen)
            except ConfigError as err:
                raise ConfigError(f"the partitioner has returned {shown(chosen)}: {err}") from None
        return self._meant(topic, known, partition)

    def _meant(self, topic: str, known: Sequence[TopicPartition], partition: int) -> TopicPartition:
        if partition.__class__ is int and 0 <= partition < len(known):
            return known[partition]
        tp = checked_partition((topic, partition))
        if tp.partition < len(known):
            return known[tp.partition]
        raise ConfigError(
            f"{topic} has {len(known)} partitions, from 0 to {len(known) - 1}: there is no "
            f"{tp.partition}"
        )

    async def _learn(self, topic: str) -> Route:
        """Where its records go."""
        checked_topic(topic)
        while (route := self._routes.get(topic)) is None:
            try:
                await self._producing.learn(topic, self._engine.config.max_block_ms)
            except Kip848Error as err:
                self._refused(err)
                raise
        return route

    async def count(self, topic: str) -> int:
        """How many partitions the topic has, asked for if need be."""
        topic = _plain(checked_topic(topic))
        await self._producing.learn(topic, self._engine.config.max_block_ms)
        return len((await self._learn(topic)).partitions)

    async def _begin(
        self,
        tp: TopicPartition,
        record: _Record,
        turns: Route | None,
        is_open: Callable[[], None] | None,
    ) -> Placed:
        """Begin a batch, when there is room for it. ``turns``: it may go elsewhere."""
        now_ms = self._engine.clock.now_ms()
        deadline_ms = now_ms + self._engine.config.max_block_ms
        while (placed := self._core.append(now_ms, tp, *record, turns)) is None:
            await self._producing.room(deadline_ms)
            if is_open is not None:
                is_open()
            if turns is not None:
                tp = turns.of(None)
            now_ms = self._turn_ms = self._engine.clock.now_ms()
        self._gives_way = now_ms - self._turn_ms >= _HOGGED_MS
        if placed.stir:
            self._producing.stir()
        return placed

    def _refused(self, error: Kip848Error) -> None:
        """A transaction that lacks a record must not be committed."""
        if isinstance(error, _REFUSED) and not isinstance(error, LocalProtocolError):
            self._producing.post(Refused(error))


def checked_serializer(function: object, name: str) -> Any:
    """A function of one argument, or ``None``."""
    if function is not None and not callable(function):
        raise ConfigError(f"{name} is a function, or None; not {shown(function)}")
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
        raise ConfigError(f"{name}_serializer has returned {shown(value)}, not bytes or None")
    raise ConfigError(
        f"the {name} of a record is bytes or None, not {shown(value)}; a {name}_serializer makes "
        "bytes of what you send"
    )


def _checked_time(timestamp_ms: object) -> int:
    return checked_time_ms(timestamp_ms, "timestamp_ms")


def _plain(text: str) -> str:
    """The text alone: a member of an enumeration is a ``str``, too."""
    return str.__str__(text)


def _checked_headers(headers: Any) -> list[tuple[str, bytes | None]]:
    wrong = f"headers are a list of (str, bytes or None), not {shown(headers)}"
    if isinstance(headers, str | bytes):
        raise ConfigError(wrong)
    try:
        given = [(name, value) for name, value in headers]
    except (TypeError, ValueError):
        raise ConfigError(wrong) from None
    found: list[tuple[str, bytes | None]] = []
    for name, value in given:
        if not isinstance(name, str):
            raise ConfigError(wrong)
        if value is not None and not isinstance(value, bytes | bytearray | memoryview):
            raise ConfigError(wrong)
        try:
            name.encode()
        except UnicodeEncodeError as err:
            raise ConfigError(f"{wrong}: a name is no UTF-8: {err.reason}") from err
        found.append((_plain(name), None if value is None else bytes(value)))
    return found
