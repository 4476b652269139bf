"""Record batches as a broker stores them, and slices of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from crc32c import crc32c

from kip848_client.core.fetch._model import BatchRef, Cursor, Slice
from kip848_client.core.types import TopicId, TopicPartition

__all__ = ["TP", "Row", "batch", "refs", "resealed", "slice_of"]

TP: Final = TopicPartition("t", 3)
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
LOG_APPEND_TIME: Final = 0x08


class Row(NamedTuple):
    """What a producer sends."""

    offset: int
    key: bytes | None = b"k"
    value: bytes | None = b"v"
    timestamp: int = 1_700_000_000_000
    headers: tuple[tuple[str, bytes | None], ...] = ()


def batch(
    rows: Sequence[Row],
    *,
    codec: int = 0,
    epoch: int = 5,
    log_append_time: int | None = None,
    next_offset: int | None = None,
) -> bytes:
    """A batch of these rows; offsets may have gaps, as compaction leaves them."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    base = rows[0].offset
    for row in rows:
        added = builder.append(
            row.offset - base, row.timestamp, row.key, row.value, list(row.headers)
        )
        assert added is not None
    raw = bytearray(builder.build())
    struct.pack_into(">q", raw, 0, base)
    struct.pack_into(">i", raw, 12, epoch)
    if next_offset is not None:
        struct.pack_into(">i", raw, 23, next_offset - base - 1)
    if log_append_time is not None:
        raw[22] |= LOG_APPEND_TIME
        struct.pack_into(">q", raw, 35, log_append_time)
    return resealed(raw)


def resealed(raw: bytes | bytearray) -> bytes:
    """The batch with the checksum that its bytes have."""
    changed = bytearray(raw)
    struct.pack_into(">I", changed, 17, crc32c(bytes(changed[21:])))
    return bytes(changed)


def refs(raw: bytes, skip: Sequence[int] = ()) -> Iterator[BatchRef]:
    """What the headers in ``raw`` say; ``skip`` has the numbers of batches to be left out."""
    at = number = 0
    while at < len(raw):
        found: Any = _HEADER.unpack_from(raw, at)
        base, length, epoch, magic, _, attributes, last, first_ms, max_ms, *_, count = found
        end = at + 12 + length
        yield BatchRef(
            at,
            end,
            base,
            base + last + 1,
            count,
            attributes,
            first_ms,
            max_ms,
            epoch,
            magic,
            number in skip,
        )
        at, number = end, number + 1


def slice_of(
    *batches: bytes, first: int | None = None, next_offset: int | None = None, skip: Any = ()
) -> Slice:
    """A slice that was asked for at ``first``."""
    raw = b"".join(batches)
    found = tuple(refs(raw, skip))
    start = found[0].base_offset if first is None else first
    end = found[-1].next_offset if next_offset is None else next_offset
    cursor = Cursor(TP, TopicId(bytes(15) + b"\1"), 1, start)
    return Slice(cursor, start, end, found[-1].leader_epoch, raw, found)
