"""``Record``, and the deserialization of keys and values.

``Record`` is a named tuple because one is made for every message: it is immutable, has no
``__dict__`` and takes 0.14 us to build where a frozen dataclass takes 1.3 us.
"""

from __future__ import annotations

from asyncio import CancelledError, current_task
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import isawaitable, iscoroutinefunction
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from kip848_client.core.types import TopicPartition
from kip848_client.serialization import ContextDeserializer, SerializationContext

__all__ = [
    "Decoding",
    "Deserializer",
    "Headers",
    "RawRecord",
    "Record",
    "is_async",
    "is_cancelled",
    "raw_record",
]

RawRecord: TypeAlias = "Record[bytes | None, bytes | None]"
"""A record before its deserializers."""

K = TypeVar("K")
V = TypeVar("V")

Deserializer = Callable[[Any], Any]
"""Converts the bytes of a key or value (``None`` for a null one) to the application's object, or to
a coroutine that returns it: see ``is_async``."""

Headers = tuple[tuple[str, bytes], ...]


class Record(NamedTuple, Generic[K, V]):
    """One message, with the fields of ``aiokafka.ConsumerRecord``.

    Attributes:
        topic: Name of the topic.
        partition: Number of the partition.
        offset: The record's place in the partition. Commit ``offset + 1`` when it is done.
        key: Bytes or ``None``; with a ``key_deserializer`` what that returned.
        value: Bytes or ``None``; with a ``value_deserializer`` what that returned.
        serialized_value_size: Bytes of the value before it was deserialized; -1 for a null value.
        headers: Pairs of a name and bytes, in order; names may repeat.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds since 1970, of the kind that ``timestamp_type`` says."""
    timestamp_type: int
    """0: set by the producer (CreateTime); 1: set by the broker (LogAppendTime)."""
    key: K
    value: V
    checksum: int | None
    """Always ``None`` for records in the format that Kafka 4 stores."""
    serialized_key_size: int
    """Bytes of the key before it was deserialized; -1 for a null key."""
    serialized_value_size: int
    headers: tuple[tuple[str, bytes], ...]


def raw_record(
    tp: TopicPartition,
    offset: int,
    timestamp: int,
    timestamp_type: int,
    key: bytes | None,
    value: bytes | None,
    headers: Headers,
) -> RawRecord:
    """A raw record, made from its fields."""
    key_size = -1 if key is None else len(key)
    value_size = -1 if value is None else len(value)
    times = (timestamp, timestamp_type)
    return Record(*tp, offset, *times, key, value, None, key_size, value_size, headers)


@dataclass(frozen=True, slots=True)
class Decoding:
    """The user's settings for reading records."""

    check_crcs: bool = True
    key_deserializer: Deserializer | None = None
    """Gets ``None`` for a null key, as in aiokafka."""
    value_deserializer: Deserializer | None = None
    compiled: bool = True
    """Whether our extension reads records, where it was built."""
    decompressed_bytes_max: int = 128 << 20
    """How many bytes a compressed batch may unpack to (``max_decompressed_batch_bytes``)."""

    @property
    def is_async(self) -> bool:
        """Whether a deserializer is to be awaited."""
        return is_async(self.key_deserializer) or is_async(self.value_deserializer)

    async def deserialized(self, raw: Record[bytes | None, bytes | None]) -> tuple[Any, Any]:
        """Return key and value of a record, if ``is_async``. Raises what a deserializer does."""
        key = _called(self.key_deserializer, raw.key, raw, "key")
        if isawaitable(key):
            key = await key
        value = _called(self.value_deserializer, raw.value, raw, "value")
        if isawaitable(value):
            value = await value
        return key, value


def _called(
    deserializer: Deserializer | None,
    data: bytes | None,
    raw: Record[Any, Any],
    field: Literal["key", "value"],
) -> Any:
    if deserializer is None:
        return data
    if isinstance(deserializer, ContextDeserializer):
        context = SerializationContext(raw.topic, field, list(raw.headers))
        return deserializer.deserialize(data, context)
    return deserializer(data)


def is_cancelled(error: BaseException) -> bool:
    """Whether ``error`` means that the calling task was cancelled. User code can also raise a
    ``CancelledError`` of something that it awaited; that is an ordinary error."""
    if not isinstance(error, CancelledError):
        return False
    task = current_task()
    return task is not None and task.cancelling() > 0


def is_async(function: object) -> bool:
    """Whether a function is to be awaited: it is ``async def``, or an object whose ``__call__`` is.

    This is checked once, and not for each return value, which would cost time with each record."""
    while isinstance(function, partial):
        function = function.func
    return iscoroutinefunction(function) or iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004 - not a test of callability
    )
