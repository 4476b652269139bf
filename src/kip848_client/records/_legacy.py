"""Messages from before Kafka 0.11 (magic 0 and 1). Upgraded clusters have them in old segments, and
Kafka 4 serves them unchanged.

A compressed message is a wrapper: its value is a sequence of other messages. The rules are those of
Kafka's Java consumer: a wrapper inside of a wrapper is refused, and a truncated message at the end
is ignored.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final, NamedTuple

from kip848_client.core.compression import CODEC_MASK
from kip848_client.runtime.net._codec import corrupt

__all__ = ["LegacyRecord", "legacy_checksum_is_right", "legacy_records", "wrapped"]

_HEADER: Final = struct.Struct(">qiIbb")
"""Offset, length, CRC, magic, attributes."""
_BEFORE_LENGTH: Final = 12
_CRC_AT: Final = 12
_AFTER_CRC: Final = 16
_LENGTH_MIN: Final = 14
_TIMESTAMP: Final = struct.Struct(">q")
_SIZE: Final = struct.Struct(">i")
_LOG_APPEND_TIME: Final = 0x08


class LegacyRecord(NamedTuple):
    """A message, with the fields of the codec's records."""

    offset: int
    timestamp: int | None
    timestamp_type: int | None
    """``None`` for magic 0, which had neither."""
    key: bytes | None
    value: bytes | None
    checksum: int
    headers: tuple[tuple[str, bytes], ...] = ()


class _Message(NamedTuple):
    record: LegacyRecord
    attributes: int
    end: int


def legacy_checksum_is_right(message: bytes) -> bool:
    """Whether a message's checksum is correct. Messages inside of a wrapper are not checked."""
    said = int.from_bytes(message[_CRC_AT:_AFTER_CRC])
    return zlib.crc32(memoryview(message)[_AFTER_CRC:]) == said


def wrapped(message: bytes) -> bytes:
    """The compressed value of a wrapper."""
    value = _message(message, 0).record.value
    if value is None:
        raise corrupt("a compressed message has no value")
    return value


def legacy_records(message: bytes, payload: bytes | None) -> Iterator[LegacyRecord]:
    """The records of a message: the message itself, or those in its unpacked ``payload``. Raises
    the error that ``corrupt`` returns if the bytes are not messages."""
    outer = _message(message, 0).record
    if payload is None:
        yield outer
        return
    inner = list(_inner(payload))
    if not inner:
        raise corrupt("a compressed message contains no messages")
    # the messages in a wrapper of magic 1 count from 0, and the wrapper has the offset of the last
    # one
    base = 0 if outer.timestamp_type is None else outer.offset - inner[-1].offset
    if base < 0:
        raise corrupt(f"the compressed message at {outer.offset} contains more offsets than it can")
    for record in inner:
        by_broker = outer.timestamp_type and record.timestamp is not None
        yield record._replace(
            offset=base + record.offset,
            timestamp=outer.timestamp if by_broker else record.timestamp,
            timestamp_type=outer.timestamp_type,
        )


def _inner(payload: bytes) -> Iterator[LegacyRecord]:
    at = 0
    while len(payload) - at >= _BEFORE_LENGTH:
        (length,) = _SIZE.unpack_from(payload, at + 8)
        if length < _LENGTH_MIN:
            raise corrupt(f"a message has a length of {length} bytes")
        if at + _BEFORE_LENGTH + length > len(payload):
            return
        record, attributes, at = _message(payload, at)
        if attributes & CODEC_MASK:
            raise corrupt("a compressed message inside of a compressed message")
        yield record


def _message(data: bytes, start: int) -> _Message:
    """The complete message that starts at ``start``."""
    try:
        offset, length, checksum, magic, attributes = _HEADER.unpack_from(data, start)
        at = start + _HEADER.size
        timestamp = kind = None
        if magic:
            (timestamp,) = _TIMESTAMP.unpack_from(data, at)
            at += _TIMESTAMP.size
            kind = 1 if attributes & _LOG_APPEND_TIME else 0
        end = start + _BEFORE_LENGTH + length
        key, at = _bytes(data, at, end)
        value, at = _bytes(data, at, end)
    except struct.error as err:
        raise corrupt("a message ends within a field") from err
    if magic not in (0, 1):
        raise corrupt(f"a message of magic {magic} among messages of magic 0 and 1")
    return _Message(LegacyRecord(offset, timestamp, kind, key, value, checksum), attributes, end)


def _bytes(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    (size,) = _SIZE.unpack_from(data, at)
    at += _SIZE.size
    if size < 0:
        return None, at
    if at + size > end:
        raise corrupt("a field of a message does not fit into it")
    return data[at : at + size], at + size
