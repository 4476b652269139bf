"""Reads one record batch without our own extension: in a build without it, for batches that are too
large for it, and for formats before Kafka 0.11.

aiokafka's compiled codec reads ordinary records as Java does. It differs in three ways: it fails at
a header name that is not UTF-8; it reads a record's attributes as a varint instead of one byte; and
it accepts what no broker stores (numbers with too many bytes, a negative number of headers). If it
fails or may be wrong, the batch is read again in plain Python, from the cursor on: see ``_plain``.

The codec's iterator is fast because each of its records is freed at once. So none is kept here
except one that a deserializer has refused.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, Final

from kip848_client.core.fetch._model import BATCH_HEADER_BYTES, BatchRef, Cursor
from kip848_client.core.types import TopicPartition
from kip848_client.errors import RecordUnreadable
from kip848_client.records._legacy import legacy_records
from kip848_client.records._list_columns import ListColumns
from kip848_client.records._payload import Payload, uncompressed_header
from kip848_client.records._plain import PlainRecords, attributes_are_small
from kip848_client.records._record import Decoding, Record, raw_record
from kip848_client.records._unreadable import damaged, not_deserialized, too_large
from kip848_client.runtime.net._codec import RawRecord, corrupt, decoded

__all__ = ["ListBatch"]

_Deserialized = Callable[[RawRecord, int], tuple[Any, Any]]
_LOG_APPEND_TIME: Final = 0x08
_NEVER: Final = 1 << 63
_COUNTED: Final = [*range(1024)]


class _Doubt(Exception):
    """The codec may have read the batch wrongly."""


class ListBatch:
    """The records of a batch from the cursor on. Each way of taking some moves the cursor, and
    continues where the previous one stopped."""

    __slots__ = (
        "_base",
        "_batch",
        "_bytes_max",
        "_cursor",
        "_data",
        "_deserialized",
        "_is_last_word",
        "_latest",
        "_raws",
        "_refused",
        "_started",
    )

    def __init__(
        self,
        raw: bytes,
        batch: BatchRef,
        cursor: Cursor,
        decoding: Decoding,
        payload: Payload | None = None,
    ) -> None:
        """``payload``: the unpacked records, after a header for magic 2. Raises any error of the
        codec for a damaged header, and ``BatchUnreadable`` for truncated messages, because the last
        one's offset would be needed."""
        self._batch = batch
        self._cursor = cursor
        self._deserialized = _deserializing(cursor.tp, decoding)
        self._refused: RawRecord | None = None
        self._started = False
        self._data = b""
        """The codec's records."""
        self._latest = _NEVER
        """A record with a later timestamp was misread."""
        self._base = 0
        """Added to the codec's offsets."""
        self._is_last_word = batch.magic < 2
        """Whether the batch cannot be read in another way."""
        self._raws: Iterator[RawRecord]
        is_cut = payload is not None and not payload.is_whole
        self._bytes_max = decoding.decompressed_bytes_max if is_cut else None
        if batch.magic < 2:
            if is_cut:
                raise self._failure()
            data = None if payload is None else payload.data
            self._raws = legacy_records(raw[batch.start : batch.end], data)
            return
        self._base = batch.base_offset
        if payload is None:
            records = memoryview(raw)[batch.start + BATCH_HEADER_BYTES : batch.end]
            self._open(b"".join((uncompressed_header(raw, batch), records)))
        else:
            self._open(payload.data)

    def _open(self, data: bytes) -> None:
        """The codec reads the attributes of a record as a varint. If they are more than 0x7f, the
        varint includes the timestamp, the offset is read as the timestamp, and the length of the
        key as the offset.

        Then the timestamp is the batch's first timestamp plus the offset within the batch. Except
        for the first few records, that is later than the latest timestamp in the batch header. So
        we check the bytes of those few, or of all records if the codec takes the timestamps from
        the header (broker's time)."""
        batch = self._batch
        self._data = data
        self._raws = decoded(data)
        few = batch.records
        if not batch.attributes & _LOG_APPEND_TIME:
            few = min(few, batch.max_timestamp - batch.base_timestamp + 1)
        self._latest = batch.max_timestamp if few < batch.records else _NEVER
        if not attributes_are_small(self._data, BATCH_HEADER_BYTES, few):
            self._read_plainly()

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        """Iterate over records. An iterator that has raised is exhausted: ask for another one,
        which begins with the unreadable record."""
        cursor, batch = self._cursor, self._batch
        deserialized, make = self._deserialized, tuple.__new__
        topic, partition = cursor.tp
        position, end, epoch = cursor.consumed, batch.next_offset, batch.leader_epoch
        base, latest, is_quick = self._base, self._latest, not self._is_last_word
        raw: RawRecord = None
        try:
            for raw in self._left():
                offset, timestamp = base + raw.offset, raw.timestamp
                if is_quick and timestamp > latest:
                    raise _Doubt  # noqa: TRY301 - as if the codec had raised it
                if offset < position:
                    continue
                if offset >= end:
                    raise self._misplaced(raw)  # noqa: TRY301 - it is the bytes that are wrong
                key, value, headers = raw.key, raw.value, raw.headers
                key_size = -1 if key is None else len(key)
                value_size = -1 if value is None else len(value)
                if deserialized is not None:
                    key, value = deserialized(raw, offset)
                record = make(
                    Record,
                    (
                        topic,
                        partition,
                        offset,
                        timestamp,
                        raw.timestamp_type,
                        key,
                        value,
                        raw.checksum,
                        key_size,
                        value_size,
                        tuple(headers) if headers else (),
                    ),
                )
                cursor.consumed = position = offset + 1
                cursor.consumed_epoch = epoch
                yield record
        except RecordUnreadable:
            self._keep(raw)
            raise
        except Exception as err:  # noqa: BLE001 - damaged bytes raise any error
            if self._is_last_word:
                self._keep(raw)
                failure = self._failure(err)
                raise failure from failure.__cause__
        except BaseException:
            self._keep(raw)
            raise
        else:
            return
        self._read_plainly()
        yield from self

    def fill(self, parts: list[Any], limit: int) -> int:
        """See ``OpenBatch``."""
        if not parts:
            parts.append(ListColumns())
        columns: ListColumns = parts[-1]
        before = len(columns)
        try:
            try:
                self._append(columns, limit)
            except Exception:
                if self._is_last_word:
                    raise
                self._read_plainly()
                self._append(columns, limit - (len(columns) - before))
        except Exception as err:
            if len(columns) == before:
                if not before:
                    parts.pop()
                if isinstance(err, RecordUnreadable):
                    raise
                failure = self._failure(err)
                raise failure from failure.__cause__
        return len(columns) - before

    def _append(self, columns: ListColumns, limit: int) -> None:
        batch, before = self._batch, len(columns)
        try:
            if not self._is_last_word and batch.records == batch.next_offset - batch.base_offset:
                self._append_in_order(columns, limit)
            else:
                self._append_one_by_one(columns, limit)
        except BaseException:
            columns.cut()
            raise
        finally:  # also if bytes are damaged: keep the records before them
            if len(columns) > before:
                self._cursor.consumed = columns.next_offset
                self._cursor.consumed_epoch = batch.leader_epoch

    def _append_in_order(self, columns: ListColumns, limit: int) -> None:
        """Without compaction, offsets are consecutive. This is checked afterwards, so take all
        records or none."""
        base, position = self._batch.base_offset, self._cursor.consumed
        first = max(base, position)
        skipped = 0 if self._started else first - base
        raws = self._left()
        if skipped or limit < self._batch.records:
            raws = islice(raws, skipped, skipped + limit)
        timestamps, keys, values = columns.timestamps, columns.keys, columns.values
        numbers: list[int] = []
        before = len(values)
        for raw in raws:
            if raw.headers:
                columns.headers[len(values)] = tuple(raw.headers)
            # CPython 3.11 and later append so without a call; a bound method is slower
            numbers.append(raw.offset)
            timestamps.append(raw.timestamp)
            keys.append(raw.key)
            values.append(raw.value)
        begin, end = first - base, first - base + len(numbers)
        wanted = _COUNTED[begin:end] if end <= len(_COUNTED) else [*range(begin, end)]
        is_right = numbers == wanted
        if is_right and self._latest != _NEVER and numbers:
            is_right = max(timestamps[before:]) <= self._latest
        if not is_right:
            raise _Doubt
        columns.add_offsets(range(first, base + end))

    def _append_one_by_one(self, columns: ListColumns, limit: int) -> None:
        position, end = self._cursor.consumed, self._batch.next_offset
        base, latest, is_quick = self._base, self._latest, not self._is_last_word
        for raw in self._left() if limit > 0 else ():
            offset = base + raw.offset
            if is_quick and raw.timestamp > latest:
                raise _Doubt
            if offset < position:
                continue
            if offset >= end:
                self._refused = raw
                raise self._misplaced(raw)
            columns.add(raw, offset)
            position = offset + 1
            limit -= 1
            if not limit:
                return

    @property
    def size_bytes(self) -> int:
        """See ``OpenBatch``."""
        return self._batch.end - self._batch.start

    def _read_plainly(self) -> None:
        """Read the remaining records in another way."""
        batch, cursor = self._batch, self._cursor
        payload = self._data[BATCH_HEADER_BYTES:]
        self._raws = PlainRecords(payload, batch, cursor.tp, cursor.consumed)
        self._base = 0
        self._refused = None
        self._is_last_word = True

    def _misplaced(self, raw: RawRecord) -> Exception:
        end = self._batch.next_offset
        offset = self._base + raw.offset
        return corrupt(f"a record has the offset {offset}, and its batch ends before {end}")

    def _failure(self, cause: Exception | None = None) -> RecordUnreadable:
        """The error for bytes that are not records; unpacking may have stopped there."""
        tp, offset, behind = self._cursor.tp, self._cursor.consumed, self._batch.next_offset
        if self._bytes_max is None:
            assert cause is not None
            return damaged(tp, offset, cause, behind)
        return too_large(tp, offset, behind, self._bytes_max)

    def _left(self) -> Iterator[RawRecord]:
        self._started = True
        refused, self._refused = self._refused, None
        return self._raws if refused is None else chain((refused,), self._raws)

    def _keep(self, raw: RawRecord | None) -> None:
        if raw is not None and self._base + raw.offset >= self._cursor.consumed:
            self._refused = raw


def _deserializing(tp: TopicPartition, decoding: Decoding) -> _Deserialized | None:
    """A function from a codec's record to its key and value, if there is a deserializer."""
    key_of, value_of = decoding.key_deserializer, decoding.value_deserializer
    if key_of is None and value_of is None:
        return None

    def deserialized(raw: RawRecord, offset: int) -> tuple[Any, Any]:
        key, value = raw.key, raw.value
        try:
            return (
                key if key_of is None else key_of(key),
                value if value_of is None else value_of(value),
            )
        except (Exception, CancelledError) as err:  # the task cannot be cancelled here
            record = raw_record(
                tp, offset, raw.timestamp, raw.timestamp_type, key, value, tuple(raw.headers)
            )
            raise not_deserialized(record, err) from err

    return deserialized
