"""An outgoing record batch, built by aiokafka's compiled builder and compressed here.

The builder makes the bytes once, when they are first requested: only then is the producer known.
Compressed records and another producer id, epoch or first sequence are written into the batch
afterwards, and the checksum is recomputed.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from crc32c import crc32c

from kip848_client.core.compression import CODEC_MASK, NAMES, pack, unpack
from kip848_client.errors import ConfigError

__all__ = ["AiokafkaBuilder", "builder_maker"]

_CODECS: Final[dict[str | None, int]] = {None: 0, **{each: i for i, each in enumerate(NAMES)}}
_HEADER_BYTES: Final = 61
_BEFORE_LENGTH: Final = 12
_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_MAGIC: Final = 2
_CRC: Final = struct.Struct(">I")
_CRC_AT: Final = 17
_ATTRIBUTES: Final = struct.Struct(">h")
_ATTRIBUTES_AT: Final = 21
_TRANSACTIONAL: Final = 0x10
_PRODUCER: Final = struct.Struct(">qhi")
"""Producer id, producer epoch, base sequence."""
_PRODUCER_AT: Final = 43

_Header = tuple[str, bytes | None]


class AiokafkaBuilder:
    """A ``BatchBuilder`` of the producer's core."""

    __slots__ = ("_add", "_builder", "_bytes", "_codec", "_limit_bytes", "records")

    def __init__(self, codec_number: int, limit_bytes: int) -> None:
        self._codec = codec_number
        self._limit_bytes = limit_bytes
        self._builder: Any = DefaultRecordBatchBuilder(_MAGIC, 0, 0, -1, -1, -1, limit_bytes)
        self._add = self._builder.append
        self._bytes: bytearray | None = None
        self.records = 0

    def append(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[_Header]
    ) -> bool:
        """Add a record; returns False if it does not fit. The first one always fits."""
        if headers.__class__ is not list:
            headers = list(headers)
        row = self.records
        if self._add(row, timestamp_ms, key, value, headers) is None:
            return False
        self.records = row + 1
        return True

    @property
    def size_bytes(self) -> int:
        """Size before compression."""
        size: int = self._builder.size()
        return size

    def seal(self) -> None:
        """Close the batch. It is compressed when the bytes are requested."""

    def bytes_for(
        self, producer: tuple[int, int], first_sequence: int, *, transactional: bool
    ) -> bytes:
        """Return the batch for this producer."""
        number, epoch = producer
        raw = self._bytes
        if raw is None:
            self._builder.set_producer_state(number, epoch, first_sequence)
            built: bytearray = self._builder.build()
            raw = self._bytes = self._packed(built)
            if raw is built and not transactional:
                return bytes(raw)
        (attributes,) = _ATTRIBUTES.unpack_from(raw, _ATTRIBUTES_AT)
        attributes = attributes & ~_TRANSACTIONAL | (_TRANSACTIONAL if transactional else 0)
        _ATTRIBUTES.pack_into(raw, _ATTRIBUTES_AT, attributes)
        _PRODUCER.pack_into(raw, _PRODUCER_AT, number, epoch, first_sequence)
        _CRC.pack_into(raw, _CRC_AT, crc32c(memoryview(raw)[_ATTRIBUTES_AT:]))
        return bytes(raw)

    def _packed(self, built: bytearray) -> bytearray:
        """Return the batch with its records compressed if that makes it smaller. The checksum is
        not valid yet."""
        if not self._codec:
            return built
        records = bytes(memoryview(built)[_HEADER_BYTES:])
        packed = pack(self._codec, records)
        if len(packed) >= len(records):
            return built
        raw = built[:_HEADER_BYTES]
        raw += packed
        _LENGTH.pack_into(raw, _LENGTH_AT, len(raw) - _BEFORE_LENGTH)
        raw[_ATTRIBUTES_AT + 1] |= self._codec
        return raw

    def split(self) -> Sequence[AiokafkaBuilder]:
        """Split into two batches of half the records each, or return itself for one record."""
        if self.records < 2:
            return (self,)
        whole = self.bytes_for((-1, -1), -1, transactional=False)
        # a record may need a few more bytes than before: its time delta has another base
        limit_bytes = 2 * max(self._limit_bytes, self.size_bytes)
        parts = [AiokafkaBuilder(self._codec, limit_bytes) for _ in range(2)]
        half = (self.records + 1) // 2
        for row, record in enumerate(DefaultRecordBatch(_unpacked(whole))):
            part = parts[row >= half]
            fits = part.append(record.timestamp, record.key, record.value, record.headers)
            assert fits, "half of a batch is larger than the batch"
        return tuple(parts)


def _unpacked(batch: bytes) -> bytes:
    """Decompress one of our batches. The checksum is not valid yet."""
    codec = batch[_ATTRIBUTES_AT + 1] & CODEC_MASK
    if not codec:
        return batch
    head = bytearray(batch[:_HEADER_BYTES])
    head[_ATTRIBUTES_AT + 1] &= ~CODEC_MASK
    return unpack(codec, batch[_HEADER_BYTES:], sys.maxsize, head=bytes(head)).data


def builder_maker(compression_type: str | None) -> Callable[[int], AiokafkaBuilder]:
    """Return a function that opens batches with this compression: ``None``, "none", "gzip",
    "snappy", "lz4", "zstd".

    Raises ``ConfigError`` for another name.
    """
    number = _CODECS.get(compression_type)
    if number is None:
        raise ConfigError(f"compression_type={compression_type!r} is not one of {', '.join(NAMES)}")
    return lambda size_bytes: AiokafkaBuilder(number, size_bytes)
