"""Converts our columns to Arrow, with the columns of Spark's Kafka source.

pyarrow takes 0.1 s to import, so it is imported on first use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, Final

from kip848_client.core.extras import installation
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.records._columns import Columns

__all__ = [
    "counted",
    "header_type",
    "in_microseconds",
    "in_one",
    "pyarrow",
    "record_batch",
    "timestamp_type",
]

_MILLISECONDS_MAX: Final = (2**63 - 1) // 1000
"""More milliseconds do not fit into an int64 of microseconds."""
_KEPT_BYTES_MAX: Final = 64 << 20
"""Limit for each kind of column that is cached for the next batch."""


@cache
def pyarrow() -> Any:
    """Import pyarrow. Raises ``ConfigError`` if it is not installed."""
    try:
        import pyarrow as pa
    except ImportError as err:
        raise ConfigError(
            f"to_arrow() needs pyarrow, which is not installed: {installation('arrow')}"
        ) from err
    return pa


@cache
def header_type() -> Any:
    """The Arrow type of headers."""
    pa = pyarrow()
    pair = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    return pa.list_(pa.field("element", pair))


@cache
def timestamp_type() -> Any:
    """The type of timestamps in Arrow, and in Spark."""
    return pyarrow().timestamp("us", tz="UTC")


@cache
def _schema() -> Any:
    pa = pyarrow()
    return pa.schema(
        [
            pa.field("key", pa.binary()),
            pa.field("value", pa.binary()),
            pa.field("topic", pa.string()),
            pa.field("partition", pa.int32()),
            pa.field("offset", pa.int64()),
            pa.field("timestamp", timestamp_type()),
            pa.field("timestampType", pa.int32()),
            pa.field("headers", header_type()),
        ]
    )


def record_batch(tp: TopicPartition, timestamp_type: int, parts: Iterable[Columns]) -> Any:
    """Return a ``pyarrow.RecordBatch`` of all parts; several are copied together."""
    pa = pyarrow()
    batches = [_of_one(tp, timestamp_type, part) for part in parts]
    if len(batches) == 1:
        return batches[0]
    if not batches:
        return pa.RecordBatch.from_pylist([], schema=_schema())
    return in_one(pa.Table.from_batches(batches).combine_chunks().to_batches())


def in_one(pieces: Sequence[Any]) -> Any:
    """Return the only piece. Arrow makes several if one would be too large: raises
    ``OverflowError``."""
    if len(pieces) == 1:
        return pieces[0]
    raise OverflowError(
        "these records have more than 2 GB of keys, values or headers, and a column of Arrow's "
        "cannot: ask for fewer of them (max_records)"
    )


def in_microseconds(milliseconds: Sequence[int]) -> Any:
    """Return timestamps in Spark's type. A time that does not fit into microseconds becomes null:
    another number would be a wrong time, and an error would hide the other records."""
    pa = pyarrow()
    in_ms = pa.timestamp("ms", tz="UTC")
    try:
        return pa.array(milliseconds, pa.int64()).view(in_ms).cast(timestamp_type())
    except pa.ArrowInvalid:
        sayable = range(-_MILLISECONDS_MAX, _MILLISECONDS_MAX + 1)
        found = [each if each in sayable else None for each in milliseconds]
        return pa.array(found, pa.int64()).view(in_ms).cast(timestamp_type())


def counted(numbers: range) -> Any:
    """Return an int64 array of these, without an object for each."""
    pa = pyarrow()
    compute: Any = import_module("pyarrow.compute")
    from_zero = _kept(_from_zero, len(numbers), 8)
    return compute.add(from_zero, pa.scalar(numbers.start, pa.int64()))


def _of_one(tp: TopicPartition, timestamp_type: int, part: Columns) -> Any:
    pa = pyarrow()
    count = len(part)
    key, value, offset, timestamp, headers = part.arrow()
    return pa.RecordBatch.from_arrays(
        [
            key,
            value,
            _kept(_topic, count, 4 + len(tp.topic), tp.topic),
            _kept(_number, count, 4, tp.partition),
            offset,
            timestamp,
            _kept(_number, count, 4, timestamp_type),
            pa.nulls(count, header_type()) if headers is None else headers,
        ],
        schema=_schema(),
    )


def _kept(make: Any, count: int, row_bytes: int, *of_what: Any) -> Any:
    """Return a column of ``count`` rows that is nearly the same in every batch: a slice of a longer
    one, which is cached unless that would take much memory."""
    longer = 1 << (count - 1).bit_length()
    if longer * row_bytes > _KEPT_BYTES_MAX // make.cache_parameters()["maxsize"]:
        return make.__wrapped__(*of_what, count)
    return make(*of_what, longer).slice(0, count)


@lru_cache(maxsize=16)
def _topic(topic: str, count: int) -> Any:
    """The same text many times: building it takes as long as half of everything else."""
    pa = pyarrow()
    return pa.repeat(pa.scalar(topic, pa.string()), count)


@lru_cache(maxsize=16)
def _from_zero(count: int) -> Any:
    pa = pyarrow()
    return pa.array(range(count), pa.int64())


@lru_cache(maxsize=64)
def _number(number: int, count: int) -> Any:
    pa = pyarrow()
    return pa.repeat(pa.scalar(number, pa.int32()), count)
