"""Record batches that no careful producer writes, made byte by byte, and what Java reads of them.

``TAKEN`` are batches that Kafka's brokers take, with the number of records that Java's consumer
reads of each: asked on Kafka 4.4.0. ``JavaConsumer.java`` beside is that consumer.
"""

from __future__ import annotations

import gzip
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

from crc32c import crc32c

from tests.support.kafka_jars import find_java, kafka_libs

__all__ = [
    "FIRST_MS",
    "TAKEN",
    "Odd",
    "Read",
    "field",
    "raw_batch",
    "raw_record",
    "read_by_java",
    "varint",
]

FIRST_MS: Final = 1_764_111_600_000
_CONSUMER: Final = Path(__file__).parent / "JavaConsumer.java"
_AFTER_CRC: Final = struct.Struct(">hiqqqhii")


def varint(number: int, size: int = 1) -> bytes:
    """A number as a record has it, in at least so many bytes."""
    left = (number << 1) ^ (number >> 63)
    found = bytearray()
    while left > 0x7F or len(found) < size - 1:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes(found) + bytes([left])


def field(data: bytes | None) -> bytes:
    """Bytes with their length before them."""
    return varint(-1) if data is None else varint(len(data)) + data


def raw_record(
    delta: int | bytes,
    value: bytes = field(b"v"),
    key: bytes = field(b"k"),
    *,
    attributes: int = 0,
    since: bytes = b"\0",
    headers: Iterable[bytes] = (),
    header_count: int | None = None,
    tail: bytes = b"",
) -> bytes:
    """A record; whatever is bytes is written as it is, the length of a field included."""
    pairs = list(headers)
    body = bytes([attributes]) + since + (varint(delta) if isinstance(delta, int) else delta)
    body += key + value + varint(len(pairs) if header_count is None else header_count)
    body += b"".join(pairs) + tail
    return varint(len(body)) + body


def raw_batch(
    payload: bytes,
    records: int,
    *,
    codec: int = 0,
    base: int = 0,
    attributes: int = 0,
    first_ms: int = FIRST_MS,
    later_ms: int = 0,
    span: int | None = None,
) -> bytes:
    """A batch of format 2 around records; codec 0 or 1 (gzip). Its latest timestamp is
    ``later_ms`` after the first."""
    packed = gzip.compress(payload, mtime=0) if codec else payload
    last = (records if span is None else span) - 1
    times = first_ms, first_ms + later_ms
    body = _AFTER_CRC.pack(attributes | codec, last, *times, -1, -1, -1, records) + packed
    head = struct.pack(">ibI", 5, 2, crc32c(body))
    return struct.pack(">qi", base, len(head) + len(body)) + head + body


class Odd(NamedTuple):
    """Three records, of which the one in the middle is odd."""

    payload: bytes
    read: int = 3
    """By Java's consumer."""
    compressible: bool = True
    """Whether brokers take it compressed, too."""


def _middle(*records: bytes, read: int = 3, compressible: bool = True) -> Odd:
    first, last = raw_record(0, field(b"first")), raw_record(2, field(b"last"))
    return Odd(first + b"".join(records) + last, read, compressible)


def _header(name: bytes, content: bytes = field(b"x")) -> list[bytes]:
    return [field(name) + content]


TAKEN: Final[dict[str, Odd]] = {
    "attributes 0x80": _middle(raw_record(1, attributes=0x80)),
    "attributes 0xff": _middle(raw_record(1, attributes=0xFF)),
    "attributes 0x01": _middle(raw_record(1, attributes=1)),
    "key of length -2": _middle(raw_record(1, key=varint(-2))),
    "key of length -2**31": _middle(raw_record(1, key=varint(-(1 << 31)))),
    "value of length -5": _middle(raw_record(1, varint(-5))),
    "header without a value, of length -7": _middle(
        raw_record(1, headers=_header(b"n", varint(-7)))
    ),
    "header name: Latin-1": _middle(raw_record(1, headers=_header(b"caf\xe9"))),
    "header name: no byte of UTF-8": _middle(raw_record(1, headers=_header(b"\xff\xfe\x80"))),
    "header name: half a surrogate": _middle(raw_record(1, headers=_header(b"a\xed\xa0\x80b"))),
    "header name: overlong": _middle(raw_record(1, headers=_header(b"\xc0\x80\xe0\x80\x80"))),
    "header name: cut": _middle(raw_record(1, headers=_header(b"\xf0\x9f\x98"))),
    "header name: NUL, empty, twice": _middle(
        raw_record(1, headers=_header(b"a\0b") + _header(b"") + _header(b""))
    ),
    "length of the key in 5 bytes": _middle(raw_record(1, key=varint(1, 5) + b"k")),
    "offset in 5 bytes": _middle(raw_record(varint(1, 5))),
    "timestamp in 10 bytes": _middle(raw_record(1, since=varint(5, 10))),
    "offset with bits beyond 32": _middle(raw_record(b"\x82\x80\x80\x80\x70")),
    "length with bits beyond 32": _middle(raw_record(1, key=b"\x82\x80\x80\x80\x70k")),
    "the same offset twice": _middle(raw_record(0), read=2, compressible=False),
    "an offset before the batch": _middle(raw_record(-1), read=2, compressible=False),
    "all nulls": _middle(raw_record(1, field(None), field(None))),
}


class Read(NamedTuple):
    """A record as a consumer has it."""

    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def read_by_java(version: str, bootstrap: str, topic: str) -> list[Read]:
    """All records of partition 0, by the consumer of this release. Raises
    ``KafkaUnavailableError`` where there is no Java."""
    libs = kafka_libs(version)
    command = [find_java(), "-cp", f"{libs}/*", str(_CONSUMER), bootstrap, topic]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if found.returncode:
        raise RuntimeError(f"the Java consumer failed:\n{found.stderr[-2000:]}")
    return [_read(line) for line in found.stdout.splitlines()]


def _read(line: str) -> Read:
    offset, timestamp, kind, key, value, *headers = line.split(" ")
    pairs = (each.split("=") for each in headers)
    named = tuple((_utf16(name), _bytes(content)) for name, content in pairs)
    return Read(int(offset), int(timestamp), int(kind), _bytes(key), _bytes(value), named)


def _utf16(text: str) -> str:
    return bytes.fromhex(text).decode("utf-16-be")


def _bytes(text: str) -> bytes | None:
    return None if text == "null" else bytes.fromhex(text)
