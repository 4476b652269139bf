"""``RecordBatchView``: many records of one partition, without an object per record."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

from kip848_client.core.types import TopicPartition
from kip848_client.errors import LocalProtocolError
from kip848_client.records._arrow import record_batch
from kip848_client.records._columns import Columns, Gathered
from kip848_client.records._record import Decoding, Headers, Record, is_cancelled, raw_record
from kip848_client.records._unreadable import not_deserialized

__all__ = ["RecordBatchView"]

K = TypeVar("K")
V = TypeVar("V")


class RecordBatchView(Generic[K, V]):
    """A run of records of one partition, in the order of their offsets, as columns.

    ``Consumer.getbatches`` makes it. It holds a copy, and stays as it is whatever becomes of the
    partition. ``keys`` and ``values`` are bytes as Kafka stores them (``None`` for null).
    Deserializers apply to ``records`` and ``records_async`` alone.

    Args:
        tp: Topic and partition.
        gathered: The records.
        decoding: The consumer's deserializers.
    """

    __slots__ = ("_decoding", "_parts", "next_offset", "timestamp_type", "tp")

    def __init__(self, tp: TopicPartition, gathered: Gathered, decoding: Decoding) -> None:
        self.tp = tp
        self._parts = tuple(gathered.parts)
        self._decoding = decoding
        self.next_offset = gathered.next_offset
        """The offset to continue at, after all records: what a commit stores."""
        self.timestamp_type = gathered.timestamp_type
        """0: timestamps are the producers' (CreateTime); 1: the broker's (LogAppendTime)."""

    def __len__(self) -> int:
        """How many records."""
        return sum(map(len, self._parts))

    def __repr__(self) -> str:
        where = f"{self.topic}-{self.partition}"
        return f"<RecordBatchView {where}: {len(self)} records before {self.next_offset}>"

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self.tp.topic

    @property
    def partition(self) -> int:
        """The number of the partition."""
        return self.tp.partition

    @property
    def offsets(self) -> Sequence[int]:
        """The offset of each record; there may be gaps."""
        return self._joined(lambda part: part.all_offsets())

    @property
    def timestamps(self) -> Sequence[int]:
        """Milliseconds since 1970, of the kind that ``timestamp_type`` says."""
        return self._joined(lambda part: part.all_timestamps())

    @property
    def keys(self) -> Sequence[bytes | None]:
        """The bytes of each key."""
        return self._joined(lambda part: part.all_keys())

    @property
    def values(self) -> Sequence[bytes | None]:
        """The bytes of each value."""
        return self._joined(lambda part: part.all_values())

    @property
    def headers(self) -> Sequence[Headers]:
        """The headers of each record; an empty tuple where there are none."""
        return self._joined(lambda part: part.all_headers())

    def records(self) -> Iterator[Record[K, V]]:
        """Make a ``Record`` of each, one at a time, with key and value deserialized.

        Returns:
            An iterator. It raises ``RecordUnreadable`` when a deserializer raises. That moves no
            position: all records of the view count as delivered.

        Raises:
            LocalProtocolError: A deserializer has to be awaited; use ``records_async``.
        """
        if self._decoding.is_async:
            raise LocalProtocolError("a deserializer is to be awaited; use records_async()")
        return self._made_by(self._decoding)

    async def records_async(self) -> AsyncIterator[Record[K, V]]:
        """Make records as ``records`` does, for deserializers of any kind.

        Yields:
            Each record, with key and value deserialized.

        Raises:
            RecordUnreadable: A deserializer raised.
        """
        for raw in self._made_by(Decoding()):
            try:
                key, value = await self._decoding.deserialized(raw)
            except (Exception, CancelledError) as err:
                if is_cancelled(err):
                    raise
                raise not_deserialized(raw, err) from err
            yield Record(*raw[:5], key, value, *raw[7:])

    def _made_by(self, decoding: Decoding) -> Iterator[Record[Any, Any]]:
        topic, partition = self.tp
        kind = self.timestamp_type
        key_of, value_of = decoding.key_deserializer, decoding.value_deserializer
        rows = zip(self.offsets, self.timestamps, self.keys, self.values, self.headers, strict=True)
        for offset, timestamp, key, value, headers in rows:
            sizes = (None, -1 if key is None else len(key), -1 if value is None else len(value))
            where = (topic, partition, offset, timestamp, kind)
            try:
                made_key = key if key_of is None else key_of(key)
                made_value = value if value_of is None else value_of(value)
            except (Exception, CancelledError) as err:
                raw = raw_record(self.tp, offset, timestamp, kind, key, value, headers)
                raise not_deserialized(raw, err) from err
            yield Record(*where, made_key, made_value, *sizes, headers)

    def to_arrow(self) -> Any:
        """Make a ``pyarrow.RecordBatch`` with the columns of Spark's Kafka source.

        They are key and value (binary), topic (string), partition (int32), offset (int64),
        timestamp (in microseconds, UTC), timestampType (int32), and headers (list of key and value;
        null where there are none).

        Returns:
            The batch, one row per record.

        Raises:
            ConfigError: pyarrow is not installed; the extra ``arrow`` brings it.
            OverflowError: The keys or values are more than the 2 GB that a column can have.
        """
        return record_batch(self.tp, self.timestamp_type, self._parts)

    def _joined(self, column: Callable[[Columns], Sequence[Any]]) -> Sequence[Any]:
        if len(self._parts) == 1:
            return column(self._parts[0])
        return list(chain.from_iterable(map(column, self._parts)))
