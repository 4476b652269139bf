"""Reads the records of a batch in plain Python, exactly as the extension and Java's consumer do.

It is three times as slow as aiokafka's codec, so it is used only for batches that the codec cannot
read, or reads differently from Java: see ``_list_batch``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kip848_client.core.fetch._model import BatchRef
from kip848_client.core.types import TopicPartition
from kip848_client.records._header_names import header_name
from kip848_client.records._record import RawRecord, raw_record
from kip848_client.records._unreadable import odd
from kip848_client.runtime.net._codec import corrupt

__all__ = ["PlainRecord", "PlainRecords", "attributes_are_small"]

_LOG_APPEND_TIME: Final = 0x08
_VARINT_BYTES_MAX: Final = 5
_VARLONG_BYTES_MAX: Final = 10
_HEADER_BYTES_MIN: Final = 2

_Headers = tuple[tuple[str, Any], ...]


class PlainRecord(NamedTuple):
    """A record with the field names of aiokafka's codec."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: _Headers
    checksum: None = None


class _Odd(Exception):
    """The fields of a record are invalid."""


class PlainRecords:
    """An iterator of ``PlainRecord`` from an offset on.

    Raises ``RecordUnreadable`` at an invalid record, on every call; to read the records after it,
    start an iterator after it. Raises the codec's error if the bytes are not records.
    """

    def __init__(self, payload: bytes, batch: BatchRef, tp: TopicPartition, position: int) -> None:
        self._data = payload
        self._batch = batch
        self._tp = tp
        self._position = position
        """The offset of the first record to return."""
        self._at = 0
        self._left = batch.records
        self._place = batch.base_offset
        """The offset after the passed records: that of an invalid record, if one follows."""
        self._append_time = batch.max_timestamp if batch.attributes & _LOG_APPEND_TIME else None

    def __iter__(self) -> Iterator[PlainRecord]:
        return self

    def __next__(self) -> PlainRecord:
        while self._left > 0:
            start, end = self._bounds()
            record, why = None, ""
            try:
                record = self._record(start, end)
            except _Odd as err:
                why = str(err)
            if record is None or record.offset >= self._batch.next_offset:
                if self._position <= self._place < self._batch.next_offset:
                    raise self._refused(end, record, why)
                self._pass(end, self._place)
                continue
            self._pass(end, record.offset)
            if record.offset >= self._position:
                self._position = record.offset + 1
                return record
        if self._at != len(self._data):
            raise corrupt("there are bytes after the last record")
        raise StopIteration

    def _refused(self, end: int, record: PlainRecord | None, why: str) -> Exception:
        raw: RawRecord | None = None
        if record is not None:
            why = "its offset is beyond the end of its batch"
            raw = raw_record(self._tp, self._place, *record[1:6])
        return odd(self._tp, self._place, why, self._data[self._at : end], raw)

    def _pass(self, end: int, offset: int) -> None:
        self._at = end
        self._left -= 1
        if self._place <= offset < self._batch.next_offset:
            self._place = offset + 1

    def _bounds(self) -> tuple[int, int]:
        """The start and end of the record's fields."""
        data = self._data
        try:
            length, start = _varint(data, self._at, len(data))
        except _Odd:
            length, start = -1, self._at
        if not 0 <= length <= len(data) - start:
            raise corrupt("a record is longer than its batch")
        return start, start + length

    def _record(self, start: int, end: int) -> PlainRecord:
        data, batch = self._data, self._batch
        if start == end:
            raise _Odd("a field of the record does not fit into it")
        since, at = _varlong(data, start + 1, end)  # after the attributes, which are unused
        delta, at = _varint(data, at, end)
        key, at = _bytes(data, at, end)
        value, at = _bytes(data, at, end)
        headers, at = _headers(data, at, end)
        if at != end:
            raise _Odd("the record is longer than its fields")
        timestamp, kind = self._append_time, 1
        if timestamp is None:
            timestamp, kind = _signed(batch.base_timestamp + since, 64), 0
        return PlainRecord(batch.base_offset + delta, timestamp, kind, key, value, headers)


def attributes_are_small(payload: bytes, at: int, records: int) -> bool:
    """Whether each of ``count`` records from ``at`` on has attributes that fit into a one-byte
    varint, which aiokafka's codec expects. Also false if the bytes are not records."""
    try:
        for _ in range(records):
            size = payload[at]
            at += 1
            if size >= 0x80:
                more = payload[at]
                at += 1
                size += (more - 1) << 7
                if more >= 0x80:
                    size, at = _unsigned(payload, at - 2, len(payload), _VARINT_BYTES_MAX)
            if payload[at] >= 0x80:
                return False
            at += size >> 1
    except (_Odd, IndexError):
        return False
    return True


def _headers(data: bytes, at: int, end: int) -> tuple[_Headers, int]:
    count, at = _varint(data, at, end)
    if not 0 <= count <= (end - at) // _HEADER_BYTES_MIN:
        raise _Odd("a field of the record does not fit into it")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = _bytes(data, at, end)
        if name is None:
            raise _Odd("a field of the record does not fit into it")
        value, at = _bytes(data, at, end)
        headers.append((header_name(name), value))
    return tuple(headers), at


def _bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """Length-prefixed bytes. A negative length is null."""
    length, at = _varint(data, at, end)
    if length > end - at:
        raise _Odd("a field of the record does not fit into it")
    return (None, at) if length < 0 else (data[at : at + length], at + length)


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """As in Java, bits beyond 32 are lost: five bytes have 35 bits."""
    found, at = _unsigned(data, at, end, _VARINT_BYTES_MAX)
    found &= 0xFFFF_FFFF
    return found >> 1 ^ -(found & 1), at


def _varlong(data: bytes, at: int, end: int) -> tuple[int, int]:
    found, at = _unsigned(data, at, end, _VARLONG_BYTES_MAX)
    found &= 0xFFFF_FFFF_FFFF_FFFF
    return found >> 1 ^ -(found & 1), at


def _unsigned(data: bytes, at: int, end: int, bytes_max: int) -> tuple[int, int]:
    found = 0
    for index in range(min(bytes_max, end - at)):
        byte = data[at + index]
        found |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return found, at + index + 1
    raise _Odd("a field of the record does not fit into it")


def _signed(number: int, bits: int) -> int:
    """Wrap to a signed integer of this many bits, as the producer does."""
    half = 1 << bits - 1
    return (number + half) % (2 * half) - half
