"""Record batches of format 2 (KIP-98): read, checked and restamped without copying records.

A broker keeps batches as the bytes that the producer sent. It changes only the header: the base
offset and the leader epoch, which the checksum does not cover, and the timestamps' type and
maximum, which it does. Compressed batches are decompressed to check them. Kafka reads them as
streams of any size. Here a batch that unpacks to more than 64 MB is accepted without checking its
records.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import crc32c

from kip848_client.core.compression import (
    CODEC_MASK,
    CorruptPayload,
    UnknownCodec,
    unpack,
    unpack_small,
)

__all__ = [
    "HEADER_BYTES",
    "LOG_OVERHEAD_BYTES",
    "NO_PRODUCER_ID",
    "NO_TIMESTAMP",
    "BatchError",
    "BatchHeader",
    "RecordFields",
    "UnreadableBatchError",
    "checksum_is_right",
    "read_header",
    "records_of",
    "restamped",
    "with_base_offset",
]

HEADER_BYTES: Final = 61
LOG_OVERHEAD_BYTES: Final = 12
"""Base offset and length, which precede the part that ``length`` counts."""
NO_PRODUCER_ID: Final = -1
NO_TIMESTAMP: Final = -1

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_CRC_AT: Final = 17
_CRC_FROM: Final = 21
_MAX_TIMESTAMP_AT: Final = 35
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_UNPACKED_BYTES_MAX: Final = 64 << 20


class BatchError(ValueError):
    """A batch's records contradict its header, or themselves."""


class UnreadableBatchError(BatchError):
    """A compressed batch could not be opened."""


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """The fixed part of a batch; ``length`` counts what follows the first 12 bytes."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def size_bytes(self) -> int:
        """The whole batch."""
        return self.length + LOG_OVERHEAD_BYTES

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & CODEC_MASK

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch is a transaction marker."""
        return bool(self.attributes & _CONTROL)

    @property
    def is_log_append_time(self) -> bool:
        """Whether all records have the batch's maximum as their timestamp."""
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last record; sequences wrap after 2147483647."""
        return (self.base_sequence + self.count - 1) & 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class RecordFields:
    """One record, relative to its batch. ``None`` keys and values are Kafka's nulls."""

    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def read_header(data: bytes, position: int = 0) -> BatchHeader:
    """The header at a position. Raises ``BatchError`` when there are not enough bytes for one."""
    try:
        return BatchHeader(*_HEADER.unpack_from(data, position))
    except struct.error as err:
        raise BatchError("the bytes end inside a batch header") from err


def checksum_is_right(header: BatchHeader, data: bytes) -> bool:
    """Whether a batch (without anything after it) has the checksum it claims."""
    checksum: int = crc32c.crc32c(data[_CRC_FROM : header.size_bytes])
    return checksum == header.crc


def with_base_offset(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The batch at its place in a log."""
    return struct.pack(">q4si", base_offset, data[8:12], leader_epoch) + data[16:]


def restamped(data: bytes, *, log_append_time: bool, max_timestamp: int) -> bytes:
    """The batch with another timestamp type and maximum, and the checksum that goes with them."""
    changed = bytearray(data)
    (attributes,) = struct.unpack_from(">h", changed, _CRC_FROM)
    attributes &= ~_LOG_APPEND_TIME
    if log_append_time:
        attributes |= _LOG_APPEND_TIME
    struct.pack_into(">h", changed, _CRC_FROM, attributes)
    struct.pack_into(">q", changed, _MAX_TIMESTAMP_AT, max_timestamp)
    struct.pack_into(">I", changed, _CRC_AT, crc32c.crc32c(bytes(changed[_CRC_FROM:])))
    return bytes(changed)


def records_of(header: BatchHeader, data: bytes) -> Iterator[RecordFields] | None:
    """The records of a batch, read lazily; ``None`` if they unpack to too much.

    Raises ``UnreadableBatchError`` when the batch cannot be opened and ``BatchError``, possibly in
    the middle, when the records do not add up to what the header says.
    """
    payload = data[HEADER_BYTES : header.size_bytes]
    if header.compression:
        opened = _unpacked(header.compression, payload)
        if opened is None:
            return None
        payload = opened
    return _records(payload, header.count)


def _records(payload: bytes, count: int) -> Iterator[RecordFields]:
    position = 0
    for _ in range(count):
        try:
            record, position = _record(payload, position)
        except IndexError as err:
            raise BatchError("the bytes end inside a record") from err
        yield record
    if position != len(payload):
        raise BatchError("bytes remain after the last record")


def _record(payload: bytes, position: int) -> tuple[RecordFields, int]:
    length, position = _varint(payload, position)
    stop = position + length
    if length < 0 or stop > len(payload):
        raise BatchError("a record is longer than its batch")
    timestamp_delta, position = _varint(payload, position + 1, 10)
    offset_delta, position = _varint(payload, position)
    key, position = _data(payload, position, stop)
    value, position = _data(payload, position, stop)
    header_count, position = _varint(payload, position)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(header_count):
        name, position = _data(payload, position, stop)
        header_value, position = _data(payload, position, stop)
        if name is None:
            raise BatchError("a record header without a name")
        # brokers accept any bytes and return them unchanged: see batch_writer
        headers.append((name.decode("utf-8", "surrogateescape"), header_value))
    if position != stop or header_count < 0:
        raise BatchError("a record differs from its length field")
    return RecordFields(timestamp_delta, offset_delta, key, value, tuple(headers)), stop


def _data(payload: bytes, position: int, stop: int) -> tuple[bytes | None, int]:
    size, position = _varint(payload, position)
    if size < 0:
        return None, position
    end = position + size
    if end > stop:
        raise BatchError("a field is longer than its record")
    return payload[position:end], end


def _varint(data: bytes, position: int, bytes_max: int = 5) -> tuple[int, int]:
    """A signed (zigzag) variable-length integer. Of five bytes, 32 bits count, as in Java."""
    byte = data[position]
    position += 1
    if byte <= 0x7F:
        return (byte >> 1) ^ -(byte & 1), position
    raw = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        if shift >= 7 * bytes_max:
            raise BatchError(f"a variable-length integer of more than {bytes_max} bytes")
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        shift += 7
    raw &= 0xFFFFFFFF if bytes_max == 5 else 0xFFFFFFFFFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), position


def _unpacked(codec: int, payload: bytes) -> bytes | None:
    try:
        data = unpack_small(codec, payload, _UNPACKED_BYTES_MAX)
        if data is not None:
            return data
        data, is_whole = unpack(codec, payload, _UNPACKED_BYTES_MAX)
    except (CorruptPayload, UnknownCodec) as err:
        raise UnreadableBatchError(f"cannot decompress the batch: {err}") from err
    return data if is_whole else None
