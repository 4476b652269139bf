"""aiokafka's compiled codec: the records of one batch, and the bytes that are compressed in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, Final

from aiokafka import codec
from aiokafka.errors import CorruptRecordException, UnsupportedCodecError
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.legacy_records import LegacyRecordBatch

from kip848_client._aiokafka._errors import translated
from kip848_client.errors import Kip848Error

__all__ = [
    "CODECS_HERE",
    "RawRecord",
    "compressed",
    "corrupt",
    "decoded",
    "legacy_crc_is_right",
    "unpacked",
    "why_undecodable",
]

RawRecord = Any
"""A record as the codec gives it: offset, timestamp, timestamp_type, key, value, headers,
checksum."""

_CODECS: Final[dict[int, tuple[str, Callable[[], bool], Callable[[bytes], bytes]]]] = {
    1: ("gzip", codec.has_gzip, codec.gzip_decode),
    2: ("snappy", codec.has_snappy, codec.snappy_decode),
    3: ("lz4", codec.has_lz4, codec.lz4_decode),
    4: ("zstd", codec.has_zstd, codec.zstd_decode),
}
_ENCODERS: Final[dict[int, Callable[[bytes], bytes]]] = {
    0: bytes,
    1: codec.gzip_encode,
    2: codec.snappy_encode,
    3: codec.lz4_encode,
    4: codec.zstd_encode,
}

CODECS_HERE: Final = (0, *(number for number, (_, is_there, _) in _CODECS.items() if is_there()))
"""The compressions that there are libraries for, by Kafka's numbers."""


def decoded(batch: bytes, magic: int) -> Iterator[RawRecord]:
    """The records of a batch, one at a time. Raises whatever reading damaged bytes raises."""
    if magic >= 2:
        # aiokafka's batch is its own iterator and begins anew at each iter(); chain asks once
        return chain(DefaultRecordBatch(batch))
    return iter(LegacyRecordBatch(batch, magic))


def legacy_crc_is_right(batch: bytes, magic: int) -> bool:
    """Whether a batch in a format before that of Kafka 0.11 has the checksum that it names."""
    right: bool = LegacyRecordBatch(batch, magic).validate_crc()
    return right


def unpacked(payload: bytes, attributes: int) -> bytes:
    """What is compressed in a batch: ``payload`` is all of it after its header. Raises whatever
    the compression's library raises for damaged bytes."""
    number = attributes & 0x07
    if number == 0:
        return payload
    if number not in _CODECS:
        raise UnsupportedCodecError(f"Unknown compression codec {number:#04x}")
    name, is_there, decode = _CODECS[number]
    if not is_there():
        raise UnsupportedCodecError(f"Libraries for {name} compression codec not found")
    return decode(payload)


def compressed(payload: bytes, number: int) -> bytes:
    """``payload`` as ``unpacked`` takes it, by one of ``CODECS_HERE``."""
    return bytes(_ENCODERS[number](payload))


def corrupt(why: str) -> Exception:
    """What to raise for bytes that the codec does not see, or would not mind."""
    error: Exception = CorruptRecordException(why)
    return error


def why_undecodable(error: Exception, where: str) -> Kip848Error:
    """What to tell of an error that came out of reading damaged bytes."""
    return translated(error, where)
