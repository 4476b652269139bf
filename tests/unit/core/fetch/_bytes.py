"""Record batches with any header, byte by byte; shared by the tests of fetching."""

from __future__ import annotations

import struct
from typing import Final

__all__ = [
    "ABORT",
    "COMMIT",
    "CONTROL",
    "TRANSACTIONAL",
    "batch",
    "marker",
    "message",
]

TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
ABORT: Final = 0
COMMIT: Final = 1


def batch(
    base: int,
    offsets: int = 1,
    *,
    records: int | None = None,
    epoch: int = 0,
    attributes: int = 0,
    producer: int = -1,
    body: bytes = b"records",
    magic: int = 2,
    length: int | None = None,
    times: tuple[int, int] = (100, 200),
) -> bytes:
    """A batch that takes ``offsets`` offsets from ``base`` on; its CRC is never looked at here."""
    count = offsets if records is None else records
    return (
        struct.pack(">qi", base, 49 + len(body) if length is None else length)
        + struct.pack(">ibI", epoch, magic, 0xDEADBEEF)
        + struct.pack(">hiqqqhii", attributes, offsets - 1, *times, producer, 3, 7, count)
        + body
    )


def marker(base: int, producer: int, kind: int, *, key: bytes | None = None) -> bytes:
    """The batch with which a transaction ends."""
    name = struct.pack(">hh", 0, kind) if key is None else key
    record = bytes((0, 0, 0, len(name) * 2)) + name + bytes((12, 0, 0, 0, 0, 0, 0, 0))
    body = bytes((len(record) * 2,)) + record
    return batch(base, attributes=TRANSACTIONAL | CONTROL, producer=producer, body=body)


def message(
    offset: int, magic: int, *, attributes: int = 0, timestamp: int = 50, value: bytes = b"old"
) -> bytes:
    """A message of before Kafka 0.11."""
    body = struct.pack(">Ibb", 0, magic, attributes)
    if magic:
        body += struct.pack(">q", timestamp)
    body += struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qi", offset, len(body)) + body
