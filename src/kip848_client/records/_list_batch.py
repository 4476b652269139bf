"""One record batch, read with aiokafka's compiled codec: for a build without our own extension;
and messages of before Kafka 0.11.

The codec's iterator is fast because each of its records dies at once. So none is kept here but the
one that a deserializer has refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

from kip848_client._aiokafka._codec import RawRecord, corrupt, decoded
from kip848_client._types import TopicPartition
from kip848_client.errors import RecordUnreadable
from kip848_client.fetching._model import BatchRef, Cursor
from kip848_client.records._legacy import legacy_records
from kip848_client.records._list_columns import ListColumns
from kip848_client.records._payload import Payload
from kip848_client.records._record import Decoding, Record
from kip848_client.records._unreadable import damaged, not_deserialized, too_large

__all__ = ["ListBatch"]

Build = Callable[[RawRecord], Record[Any, Any]]


class ListBatch:
    """The records of a batch from the cursor on. Each way of taking some moves the cursor, and goes
    on where the one before has stopped."""

    __slots__ = ("_batch", "_build", "_bytes_max", "_cursor", "_raws", "_refused")

    def __init__(
        self,
        raw: bytes,
        batch: BatchRef,
        cursor: Cursor,
        decoding: Decoding,
        payload: Payload | None = None,
    ) -> None:
        """``payload``: what was compressed, behind its header for magic 2. Raises whatever the
        codec raises for a damaged header, and ``BatchUnreadable`` for a beginning of messages: the
        last one's offset would be needed."""
        self._batch = batch
        self._cursor = cursor
        self._build = _builder(cursor.tp, decoding)
        is_cut = payload is not None and not payload.is_whole
        self._bytes_max = decoding.decompressed_bytes_max if is_cut else None
        self._raws: Iterator[RawRecord]
        if batch.magic < 2:
            if is_cut:
                raise self._failure()
            data = None if payload is None else payload.data
            self._raws = legacy_records(raw[batch.start : batch.end], data)
        else:
            self._raws = decoded(raw[batch.start : batch.end] if payload is None else payload.data)
        self._refused: RawRecord | None = None

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        """Records one by one. An iterator that has raised is over: ask for another one, which
        begins with the record that could not be read."""
        cursor, build = self._cursor, self._build
        position, end, epoch = cursor.consumed, self._batch.next_offset, self._batch.leader_epoch
        raw: RawRecord = None
        try:
            for raw in self._left():
                offset = raw.offset
                if offset < position:
                    continue
                if offset >= end:
                    raise self._misplaced(raw)  # noqa: TRY301 - it is the bytes that are wrong
                record = build(raw)
                cursor.consumed = position = offset + 1
                cursor.consumed_epoch = epoch
                yield record
        except BaseException as err:
            if raw is not None and raw.offset >= cursor.consumed:
                self._refused = raw
            if isinstance(err, RecordUnreadable) or not isinstance(err, Exception):
                raise
            failure = self._failure(err)
            raise failure from failure.__cause__

    def fill(self, parts: list[Any], limit: int) -> int:
        """See ``OpenBatch``."""
        if not parts:
            parts.append(ListColumns())
        columns: ListColumns = parts[-1]
        before = len(columns)
        try:
            self._append(columns, limit)
        except Exception as err:  # noqa: BLE001 - whatever damaged bytes raise
            if len(columns) == before:
                if not before:
                    parts.pop()
                failure = self._failure(err)
                raise failure from failure.__cause__
        return len(columns) - before

    def _append(self, columns: ListColumns, limit: int) -> None:
        position = self._cursor.consumed
        raws = self._left()
        first = next((raw for raw in raws if raw.offset >= position), None)
        if first is None:
            return
        batch, before = self._batch, len(columns)
        rest = chain((first,), raws)
        try:
            # of a message of before Kafka 0.11 nobody knows how many are in it
            if batch.magic >= 2 and batch.records == batch.next_offset - batch.base_offset:
                # nothing was compacted, so offsets follow each other
                at_most = min(limit, batch.next_offset - first.offset)
                columns.add(islice(rest, at_most), first.offset)
            else:
                self._append_with_gaps(columns, islice(rest, limit), position)
        finally:
            if batch.magic == 0:  # which had no timestamps
                columns.timestamps[before:] = [-1] * (len(columns) - before)
            if len(columns) > before:
                self._cursor.consumed = columns.next_offset
                self._cursor.consumed_epoch = batch.leader_epoch

    def _append_with_gaps(
        self, columns: ListColumns, raws: Iterator[RawRecord], position: int
    ) -> None:
        end = self._batch.next_offset
        for raw in raws:
            offset = raw.offset
            if offset < position:
                continue
            if offset >= end:
                self._refused = raw
                raise self._misplaced(raw)
            columns.add((raw,), offset)
            position = offset + 1

    @property
    def size_bytes(self) -> int:
        """See ``OpenBatch``."""
        return self._batch.end - self._batch.start

    def _failure(self, cause: Exception | None = None) -> RecordUnreadable:
        """What to tell of bytes that are no records: they may be where unpacking has stopped."""
        cursor = self._cursor
        if self._bytes_max is None:
            assert cause is not None
            return damaged(cursor.tp, cursor.consumed, cause)
        return too_large(cursor.tp, cursor.consumed, self._batch.next_offset, self._bytes_max)

    def _misplaced(self, raw: RawRecord) -> Exception:
        end = self._batch.next_offset
        return corrupt(f"a record has the offset {raw.offset}, and its batch ends before {end}")

    def _left(self) -> Iterator[RawRecord]:
        refused, self._refused = self._refused, None
        return self._raws if refused is None else chain((refused,), self._raws)


def _builder(tp: TopicPartition, decoding: Decoding) -> Build:
    """A function from a record of the codec's to ours. Raises ``RecordUnreadable``."""
    topic, partition = tp
    key_of, value_of = decoding.key_deserializer, decoding.value_deserializer
    make = tuple.__new__

    def build(raw: RawRecord) -> Record[Any, Any]:
        key, value, headers = raw.key, raw.value, raw.headers
        try:
            return make(
                Record,
                (
                    topic,
                    partition,
                    raw.offset,
                    raw.timestamp,
                    raw.timestamp_type,
                    key if key_of is None else key_of(key),
                    value if value_of is None else value_of(value),
                    raw.checksum,
                    -1 if key is None else len(key),
                    -1 if value is None else len(value),
                    tuple(headers) if headers else (),
                ),
            )
        except Exception as err:
            raise not_deserialized(tp, raw.offset, err) from err

    return build
