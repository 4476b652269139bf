"""The batches in the bytes of an answer: headers are read, records are not.

So the core knows all offsets and epochs, and which batches must not be delivered, without
decompressing anything. Cases to expect:

- The batch that contains the requested offset may begin before it.
- Gaps between batches, and batches that have lost records or all of them (compaction). So the next
  offset is base + last offset delta + 1.
- A truncated last batch: brokers stop at the byte limit. They always send the first batch whole.
- Control batches, which end transactions, and batches of aborted transactions (KIP-98).
- Messages from before Kafka 0.11 (magic 0 and 1) in old segments of upgraded clusters.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from kip848_client.core.cluster import NO_EPOCH
from kip848_client.core.fetch._model import BATCH_HEADER_BYTES, BatchRef

__all__ = ["BatchHeaders", "Garbled", "read_headers"]

_HEADER: Final = struct.Struct(">qii5xhiqq14xi")
"""Base offset, length, leader epoch, (magic, CRC), attributes, last offset delta, base timestamp,
max timestamp, (producer id, producer epoch, base sequence), count."""
_PRODUCER_ID: Final = struct.Struct(">q")
_PRODUCER_ID_AT: Final = 43
_OLD_HEADER: Final = struct.Struct(">qi5xb")
"""Offset, length, (CRC, magic), attributes."""
_TIMESTAMP: Final = struct.Struct(">q")
_CONTROL_KEY: Final = struct.Struct(">2xh")
"""(Version,) type: the key of a control record."""

_MAGIC: Final = 2
_MAGIC_AT: Final = 16
_BEFORE_LENGTH: Final = 12
"""Bytes that the length of a batch does not include: base offset and length."""
_SHORTEST: Final = BATCH_HEADER_BYTES - _BEFORE_LENGTH
_OLD_SHORTEST: Final = (14, 22)
"""The length of an empty message of magic 0, and of magic 1, which has a timestamp."""
_OLD_TIMESTAMP_AT: Final = 18
_LAST_OFFSET: Final = 0x7FFF_FFFF_FFFF_FFFF
_NO_TIMESTAMP: Final = -1

_CODEC: Final = 0x07
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_ABORT: Final = 0


class Garbled(NamedTuple):
    """Bytes that are not a valid batch."""

    offset: int
    """The log is readable up to this offset."""
    why: str


class BatchHeaders(NamedTuple):
    """The parsed batch headers of one partition in an answer."""

    batches: tuple[BatchRef, ...]
    """The batches that reach beyond the requested offset, ordered by offset."""
    next_offset: int
    """Where the next fetch begins: after the last whole batch, including skipped ones."""
    last_epoch: int
    """The leader epoch of the last whole batch; the given ``last_epoch`` if there is none."""
    garbled: Garbled | None = None
    """What ended the parsing early. The batches before it are valid."""


def read_headers(
    raw: bytes, offset: int, last_epoch: int, aborted: tuple[tuple[int, int], ...] = ()
) -> BatchHeaders:
    """Read the batch headers of ``raw``, the records that were fetched at ``offset``.

    ``last_epoch`` is the leader epoch of the record before ``offset``. ``aborted`` has (producer
    id, first offset) of the aborted transactions listed in the answer. Only a read_committed answer
    lists any, and it lists all that overlap it, so this knowledge lives for one answer only.
    """
    batches: list[BatchRef] = []
    aborting = _Aborting(aborted) if aborted else None
    total = len(raw)
    at = 0
    next_offset = offset
    wrong = ""
    while total - at >= _BEFORE_LENGTH + _OLD_SHORTEST[0]:
        magic = raw[at + _MAGIC_AT]
        if magic == _MAGIC and total - at < BATCH_HEADER_BYTES:
            break
        batch = _batch(raw, at) if magic == _MAGIC else _message(raw, at, magic, next_offset)
        if isinstance(batch, str):
            wrong = batch
            break
        if batch.end > total:
            break
        if batches and batch.base_offset < next_offset:
            wrong = (
                f"a batch that begins at {batch.base_offset}, after one that ends there or later"
            )
            break
        if aborting is not None and aborting.drops(raw, batch):
            batch = batch._replace(skip=True)
        if batch.next_offset > next_offset:
            batches.append(batch)
            next_offset = batch.next_offset
        last_epoch = batch.leader_epoch
        at = batch.end
    if total and not at and not wrong:
        wrong = f"{total} bytes that begin with a cut batch; brokers send the first one whole"
    garbled = Garbled(next_offset, wrong) if wrong else None
    return BatchHeaders(tuple(batches), next_offset, last_epoch, garbled)


def _batch(raw: bytes, at: int) -> BatchRef | str:
    """Return the batch whose header begins at ``at``, or a description of the damage."""
    base, length, epoch, attributes, delta, first_ms, max_ms, count = _HEADER.unpack_from(raw, at)
    after = base + delta + 1
    possible = base >= 0 and delta >= 0 and after <= _LAST_OFFSET and 0 <= count <= delta + 1
    if not possible or length < _SHORTEST:
        return f"a batch of {length} bytes: {count} records in {delta + 1} offsets from {base} on"
    skip = attributes & _CONTROL != 0
    end = at + _BEFORE_LENGTH + length
    return BatchRef(at, end, base, after, count, attributes, first_ms, max_ms, epoch, _MAGIC, skip)


def _message(raw: bytes, at: int, magic: int, next_offset: int) -> BatchRef | str:
    """Return a message of magic 0 or 1, or a description of the damage. A compressed message wraps
    others and carries the offset of the last one. Their number is not visible from outside, so
    ``records`` is set to the number of offsets."""
    if magic > _MAGIC:
        return f"a batch of magic {magic}"
    offset, length, attributes = _OLD_HEADER.unpack_from(raw, at)
    if length < _OLD_SHORTEST[magic] or not 0 <= offset < _LAST_OFFSET:
        return f"a message of {length} bytes at offset {offset}"
    base = min(offset, next_offset) if attributes & _CODEC else offset
    end = at + _BEFORE_LENGTH + length
    timestamp = _NO_TIMESTAMP
    if magic and end <= len(raw):
        (timestamp,) = _TIMESTAMP.unpack_from(raw, at + _OLD_TIMESTAMP_AT)
    return BatchRef(
        at,
        end,
        base,
        offset + 1,
        offset + 1 - base,
        attributes,
        timestamp,
        timestamp,
        NO_EPOCH,
        magic,
        skip=False,
    )


class _Aborting:
    """Finds the batches of aborted transactions in one answer.

    The list has the offset of a transaction's first record. From there up to the marker that ends
    it, everything its producer wrote in transactions is void.
    """

    def __init__(self, aborted: tuple[tuple[int, int], ...]) -> None:
        self._coming = sorted(aborted, key=_first_offset, reverse=True)
        self._producers: set[int] = set()

    def drops(self, raw: bytes, batch: BatchRef) -> bool:
        """Whether this batch, the next in the log, is void."""
        coming = self._coming
        while coming and coming[-1][1] < batch.next_offset:
            self._producers.add(coming.pop()[0])
        if batch.magic < _MAGIC:
            return False
        (producer_id,) = _PRODUCER_ID.unpack_from(raw, batch.start + _PRODUCER_ID_AT)
        if batch.attributes & _CONTROL:
            # the producer may be missing here: its records may be before this answer
            if producer_id in self._producers and _is_abort(raw, batch):
                self._producers.discard(producer_id)
            return True
        return batch.attributes & _TRANSACTIONAL != 0 and producer_id in self._producers


def _first_offset(aborted: tuple[int, int]) -> int:
    return aborted[1]


def _is_abort(raw: bytes, batch: BatchRef) -> bool:
    """Whether a control batch marks its transaction as aborted (the type in the key of its first
    record). Consumers ignore unknown types."""
    at = batch.start + BATCH_HEADER_BYTES
    if batch.attributes & _CODEC or at == batch.end:
        return False
    at = _after_varint(raw, at, batch.end) + 1  # its length; the attributes
    for _ in range(3):  # timestamp, offset, length of the key
        at = _after_varint(raw, at, batch.end)
    if at + _CONTROL_KEY.size > batch.end or raw[at - 1] != _CONTROL_KEY.size * 2:
        return False
    return _CONTROL_KEY.unpack_from(raw, at) == (_ABORT,)


def _after_varint(raw: bytes, at: int, end: int) -> int:
    """Return where the varint at ``at`` ends; ``end`` if it does not end."""
    while at < end and raw[at] & 0x80:
        at += 1
    return min(at + 1, end)
