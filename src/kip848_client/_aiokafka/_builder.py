"""One record batch on its way out, built by aiokafka's compiled builder.

The builder makes the bytes once, when they are first asked for: that is when it learns who sends
them. Another producer id, epoch or first sequence is written into the header afterwards, and the
checksum made anew.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from aiokafka import codec
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from crc32c import crc32c

from kip848_client.errors import ConfigError

__all__ = ["AiokafkaBuilder", "builder_maker"]

_CODECS: Final[dict[str | None, tuple[int, Callable[[], bool]]]] = {
    None: (0, lambda: True),
    "none": (0, lambda: True),
    "gzip": (1, codec.has_gzip),
    "snappy": (2, codec.has_snappy),
    "lz4": (3, codec.has_lz4),
    "zstd": (4, codec.has_zstd),
}
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
        self._builder: Any = DefaultRecordBatchBuilder(
            _MAGIC, codec_number, 0, -1, -1, -1, limit_bytes
        )
        self._add = self._builder.append
        self._bytes: bytearray | None = None
        self.records = 0

    def append(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[_Header]
    ) -> bool:
        """Add a record; False when it does not fit any more. The first one always fits."""
        if headers.__class__ is not list:
            headers = list(headers)
        row = self.records
        if self._add(row, timestamp_ms, key, value, headers) is None:
            return False
        self.records = row + 1
        return True

    @property
    def size_bytes(self) -> int:
        """Before compression."""
        size: int = self._builder.size()
        return size

    def seal(self) -> None:
        """No more records. They are compressed when the bytes are asked for."""

    def bytes_for(
        self, producer: tuple[int, int], first_sequence: int, *, transactional: bool
    ) -> bytes:
        """The batch for this producer."""
        number, epoch = producer
        raw = self._bytes
        if raw is None:
            self._builder.set_producer_state(number, epoch, first_sequence)
            built: bytearray = self._builder.build()
            raw = self._bytes = built
            if not transactional:
                return bytes(raw)
        (attributes,) = _ATTRIBUTES.unpack_from(raw, _ATTRIBUTES_AT)
        attributes = attributes & ~_TRANSACTIONAL | (_TRANSACTIONAL if transactional else 0)
        _ATTRIBUTES.pack_into(raw, _ATTRIBUTES_AT, attributes)
        _PRODUCER.pack_into(raw, _PRODUCER_AT, number, epoch, first_sequence)
        _CRC.pack_into(raw, _CRC_AT, crc32c(memoryview(raw)[_ATTRIBUTES_AT:]))
        return bytes(raw)

    def split(self) -> Sequence[AiokafkaBuilder]:
        """Two batches of half the records each, or itself for one record."""
        if self.records < 2:
            return (self,)
        whole = self.bytes_for((-1, -1), -1, transactional=False)
        # a record may need some bytes more than before: its time is told from another first one
        limit_bytes = 2 * max(self._limit_bytes, self.size_bytes)
        parts = [AiokafkaBuilder(self._codec, limit_bytes) for _ in range(2)]
        half = (self.records + 1) // 2
        for row, record in enumerate(DefaultRecordBatch(whole)):
            part = parts[row >= half]
            fits = part.append(record.timestamp, record.key, record.value, record.headers)
            assert fits, "half of a batch is larger than the batch"
        return tuple(parts)


def builder_maker(compression_type: str | None) -> Callable[[int], AiokafkaBuilder]:
    """What opens batches that are compressed so: ``None``, "none", "gzip", "snappy", "lz4", "zstd".

    Raises ``ConfigError`` for another name, or where the library is missing.
    """
    if compression_type not in _CODECS:
        names = ", ".join(str(each) for each in _CODECS if each)
        raise ConfigError(f"compression_type={compression_type!r} is not one of {names}")
    number, is_there = _CODECS[compression_type]
    if not is_there():
        raise ConfigError(
            f"compression_type={compression_type!r} needs a library that is not installed; "
            f"pip install 'aiokafka[{compression_type}]'"
        )
    return lambda size_bytes: AiokafkaBuilder(number, size_bytes)
