"""The way of a record from ``send`` into a batch: the hot path of a producer.

There is no task and no event a record. A step of the core follows when a batch is begun; then the
next ``send`` gives way to other tasks once, before it does anything, so that what is ready goes out
while an application sends without a pause.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from inspect import isawaitable
from typing import Any, Final

from kip848_client._arguments import checked_partition, checked_topic
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
from kip848_client.producing import Appended, Placed, Refused

__all__ = ["Partitioner", "Sending", "Serializer", "checked_serializer"]

Serializer = Callable[[Any], Any]
"""Makes bytes (or ``None``) of a key or a value, or a coroutine that returns them."""
Partitioner = Callable[[bytes | None, list[int], list[int]], int]
"""aiokafka's: gets the key, all partitions and those that can be written to."""

_INT64_MAX: Final = 2**63 - 1
_KNOWN_MAX: Final = 10_000

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
        self._count_of = core.partitions_of
        self._partition_for = core.partition_for
        self._append = core.append
        self._now_ms = engine.clock.now_ms
        self._loop = engine.loop
        self._batches = engine.producing.deliveries.batches
        self._known: dict[tuple[str, int], TopicPartition] = {}
        self._gives_way = False

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
            await asyncio.sleep(0)
        if self._key_serializer is not None:
            key = self._key_serializer(key)
        if key.__class__ is not bytes and key is not None:
            key = await _as_bytes(key, "key")
        if self._value_serializer is not None:
            value = self._value_serializer(value)
        if value.__class__ is not bytes and value is not None:
            value = await _as_bytes(value, "value")
        checked = _checked_headers(headers) if headers else []
        count = self._count_of(topic) if topic.__class__ is str else None
        if count is None:
            count = await self._learn(topic)
        if partition is None:
            partition = self._choose(topic, key, count)
        tp = self._known.get((topic, partition)) or self._checked(topic, partition, count)
        time_ms = int(time.time() * 1000) if timestamp_ms is None else _checked_time(timestamp_ms)
        if is_open is not None:
            is_open()
        try:
            placed = self._append(self._now_ms(), tp, time_ms, key, value, checked)
            if placed is None:
                placed = await self._append_later(tp, time_ms, key, value, checked, is_open)
        except Kip848Error as err:
            self._refused(err)
            raise
        return self._placed(placed, tp, time_ms)

    def _placed(
        self, placed: Placed, tp: TopicPartition, time_ms: int
    ) -> asyncio.Future[RecordMetadata]:
        """Know the record when its batch is done."""
        number, _, stir = placed
        batch = self._batches.get(number)
        if batch is None:
            batch = self._batches[number] = OnItsWay(tp)
        future: asyncio.Future[RecordMetadata] = self._loop.create_future()
        batch.futures.append(future)
        batch.times.append(time_ms)
        if stir:
            self._gives_way = True
            self._producing.post(Appended())
        return future

    def _choose(self, topic: str, key: bytes | None, count: int) -> int:
        if self._partitioner is None:
            return self._partition_for(topic, key)
        everything = list(range(count))
        return self._partitioner(key, everything, everything)

    async def _learn(self, topic: str) -> int:
        """How many partitions the topic has."""
        checked_topic(topic)
        while (count := self._count_of(topic)) is None:
            try:
                await self._producing.learn(topic, self._engine.config.max_block_ms)
            except Kip848Error as err:
                self._refused(err)
                raise
        return count

    async def count(self, topic: str) -> int:
        """How many partitions the topic has, asked for if need be."""
        checked_topic(topic)
        await self._producing.learn(topic, self._engine.config.max_block_ms)
        return await self._learn(topic)

    def _checked(self, topic: str, partition: object, count: int) -> TopicPartition:
        tp = checked_partition((topic, partition))
        if tp.partition >= count:
            raise ConfigError(
                f"{topic} has {count} partitions, from 0 to {count - 1}: there is no {tp.partition}"
            )
        if len(self._known) >= _KNOWN_MAX:
            self._known.clear()
        self._known[tp] = tp
        return tp

    async def _append_later(
        self,
        tp: TopicPartition,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]],
        is_open: Callable[[], None] | None,
    ) -> Placed:
        deadline_ms = self._engine.deadline_ms()
        placed: Placed | None = None
        while placed is None:
            await self._producing.room(deadline_ms)
            if is_open is not None:
                is_open()
            placed = self._append(self._now_ms(), tp, timestamp_ms, key, value, headers)
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


async def _as_bytes(value: Any, name: str) -> bytes | None:
    if isawaitable(value):
        awaited: Awaitable[Any] = value
        value = await awaited
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise ConfigError(
        f"the {name} of a record is bytes or None, not {shown(value)}; a {name}_serializer makes "
        "bytes of what you send"
    )


def _checked_time(timestamp_ms: object) -> int:
    wrong = isinstance(timestamp_ms, bool)
    if isinstance(timestamp_ms, int) and not wrong and 0 <= timestamp_ms <= _INT64_MAX:
        return timestamp_ms
    raise ConfigError(f"timestamp_ms is an int of ms since 1970, not {shown(timestamp_ms)}")


def _checked_headers(headers: Any) -> list[tuple[str, bytes | None]]:
    wrong = f"headers are a list of (str, bytes or None), not {shown(headers)}"
    if isinstance(headers, str | bytes):
        raise ConfigError(wrong)
    try:
        found = [(name, value) for name, value in headers]
    except (TypeError, ValueError):
        raise ConfigError(wrong) from None
    for name, value in found:
        if not isinstance(name, str) or not (value is None or isinstance(value, bytes)):
            raise ConfigError(wrong)
        try:
            name.encode()
        except UnicodeEncodeError as err:
            raise ConfigError(f"{wrong}: a name is no UTF-8: {err.reason}") from err
    return found
