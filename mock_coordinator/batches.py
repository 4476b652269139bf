"""Record batches for tests: writing one, and reading back what a partition holds."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import crc32c

from kip848_client.errors import WireError
from mock_coordinator.core.log import PartitionLog
from mock_coordinator.core.record_batch import NO_PRODUCER_ID, read_header, records_of

__all__ = ["NewRecord", "StoredRecord", "encode_batch", "stored_records"]


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to be written. ``timestamp_ms`` since 1970; ``None`` means the broker's time."""

    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record in a partition."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


_BODY: Final = struct.Struct(">hiqqqhii")
_HEAD: Final = struct.Struct(">qiibI")
_HEAD_AFTER_LENGTH: Final = 9


def encode_batch(
    records: Sequence[NewRecord],
    now_ms: int,
    *,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    attributes: int = 0,
) -> bytes:
    """An uncompressed batch of format 2, as a producer sends it. Raises ``ValueError`` for none."""
    if not records:
        raise ValueError("a batch needs at least one record")
    times = [now_ms if r.timestamp_ms is None else r.timestamp_ms for r in records]
    base = times[0]
    payload = b"".join(
        _record(index, record, at - base)
        for index, (record, at) in enumerate(zip(records, times, strict=True))
    )
    body = (
        _BODY.pack(
            attributes,
            len(records) - 1,
            base,
            max(times),
            producer_id,
            producer_epoch,
            base_sequence,
            len(records),
        )
        + payload
    )
    length = _HEAD_AFTER_LENGTH + len(body)
    return _HEAD.pack(0, length, -1, 2, crc32c.crc32c(body)) + body


def stored_records(topic: str, partition: int, log: PartitionLog) -> Iterator[StoredRecord]:
    """What producers wrote to a partition, oldest first, aborted transactions and all; their
    markers are no records. Raises ``WireError`` for a codec that is missing."""
    for batch in log.batches:
        header = read_header(batch.data)
        if header.is_control:
            continue
        records = records_of(header, batch.data)
        if records is None:
            raise WireError(
                f"{topic}-{partition} holds a batch with compression type {header.compression}; "
                "install cramjam to read it"
            )
        for record in records:
            at = header.max_timestamp
            if not header.is_log_append_time:
                at = header.base_timestamp + record.timestamp_delta
            offset = batch.base_offset + record.offset_delta
            yield StoredRecord(
                topic, partition, offset, at, record.key, record.value, record.headers
            )


def _record(index: int, record: NewRecord, timestamp_delta: int) -> bytes:
    body = b"\0" + _varint(timestamp_delta) + _varint(index)
    body += _data(record.key) + _data(record.value) + _varint(len(record.headers))
    for name, value in record.headers:
        body += _data(name.encode()) + _data(value)
    return _varint(len(body)) + body


def _data(value: bytes | None) -> bytes:
    return _varint(-1) if value is None else _varint(len(value)) + value


def _varint(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    out = bytearray()
    while raw > 0x7F:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)
