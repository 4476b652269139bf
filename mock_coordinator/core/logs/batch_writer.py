"""Writes record batches of format 2 (KIP-98), uncompressed."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import crc32c

from mock_coordinator.core.logs.record_batch import NO_PRODUCER_ID, BatchHeader, RecordFields

__all__ = ["NewRecord", "encode_batch", "thinned_batch"]


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to write, for ``MockBroker.produce``.

    Attributes:
        value: The value; ``None`` for a tombstone.
        key: The key, or ``None``.
        timestamp_ms: Milliseconds since 1970. ``None``: the time of writing.
        headers: Names and values.
    """

    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


_BODY: Final = struct.Struct(">hiqqqhii")
_HEAD: Final = struct.Struct(">qiibI")
_HEAD_AFTER_LENGTH: Final = 9
_ONE_BYTE: Final = tuple(bytes((byte,)) for byte in range(0x80))
_NO_EPOCH: Final = -1
_NO_SEQUENCE: Final = -1
_SHORT: Final = tuple(bytes((number << 1,)) for number in range(64))
"""The numbers that take one byte: most lengths and differences do."""


def encode_batch(
    records: Sequence[NewRecord],
    now_ms: int,
    *,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = _NO_EPOCH,
    base_sequence: int = _NO_SEQUENCE,
    attributes: int = 0,
) -> bytes:
    """An uncompressed batch of format 2, as a producer sends it. Raises ``ValueError`` for none."""
    if not records:
        raise ValueError("a batch needs at least one record")
    times = [now_ms if r.timestamp_ms is None else r.timestamp_ms for r in records]
    base = times[0]
    payload = b"".join(
        _record(index, at - base, record.key, record.value, record.headers)
        for index, (record, at) in enumerate(zip(records, times, strict=True))
    )
    fields = (
        attributes,
        len(records) - 1,
        base,
        max(times),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    return _framed(0, _NO_EPOCH, _BODY.pack(*fields) + payload)


def thinned_batch(header: BatchHeader, records: Iterable[RecordFields]) -> bytes:
    """What compaction leaves of a batch: some of its records, at their offsets. The batch belongs
    to no producer any more, because the transaction that it was part of is decided."""
    kept = list(records)
    payload = b"".join(
        _record(r.offset_delta, r.timestamp_delta, r.key, r.value, r.headers) for r in kept
    )
    fields = (
        0,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        NO_PRODUCER_ID,
        _NO_EPOCH,
        _NO_SEQUENCE,
        len(kept),
    )
    return _framed(header.base_offset, header.leader_epoch, _BODY.pack(*fields) + payload)


def _framed(base_offset: int, leader_epoch: int, body: bytes) -> bytes:
    length = _HEAD_AFTER_LENGTH + len(body)
    return _HEAD.pack(base_offset, length, leader_epoch, 2, crc32c.crc32c(body)) + body


def _record(
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> bytes:
    body = b"\0" + _varint(timestamp_delta) + _varint(offset_delta)
    body += _data(key) + _data(value) + _varint(len(headers))
    for name, header in headers:
        body += _data(name.encode("utf-8", "surrogateescape")) + _data(header)
    return _varint(len(body)) + body


def _data(value: bytes | None) -> bytes:
    return _varint(-1) if value is None else _varint(len(value)) + value


def _varint(value: int) -> bytes:
    if 0 <= value < len(_SHORT):
        return _SHORT[value]
    raw = (value << 1) ^ (value >> 63)
    if raw <= 0x7F:
        return _ONE_BYTE[raw]
    out = bytearray()
    while raw > 0x7F:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)
