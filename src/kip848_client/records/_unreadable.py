"""The three kinds of records that cannot be returned.

A single record: its deserializer raised, or its fields are invalid. The error carries its bytes.
The partition stays at this record, and the next call raises again, as Java's consumer does. Seek
past it to read the records after it.

Damaged bytes (a wrong checksum) may have been damaged in transit, so they are fetched again.
A batch that unpacks to too much, or with an unknown codec: another fetch would return the same
bytes.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.compression import CorruptPayload, UnknownCodec
from kip848_client.core.short import error_text
from kip848_client.errors import BatchUnreadable, RecordUnreadable
from kip848_client.records._record import RawRecord
from kip848_client.runtime.net._codec import corrupt, why_undecodable

__all__ = [
    "STOPS",
    "RecordsDamaged",
    "damaged",
    "not_deserialized",
    "not_opened",
    "odd",
    "too_large",
]


class RecordsDamaged(RecordUnreadable):
    """The bytes of a partition from ``offset`` on are not valid records."""


STOPS: Final = (RecordsDamaged, BatchUnreadable)
"""Errors that end the reading of a slice."""


def not_deserialized(raw: RawRecord, cause: BaseException) -> RecordUnreadable:
    """The error for a deserializer's, which becomes its cause."""
    error = _unreadable((raw.topic, raw.partition), raw.offset, error_text(cause), raw)
    error.__cause__ = cause
    return error


def odd(
    tp: tuple[str, int], offset: int, why: str, data: bytes, raw: RawRecord | None
) -> RecordUnreadable:
    """The error for an invalid record: ``data`` has all its bytes, ``raw`` its fields, if they can
    be parsed."""
    return _unreadable(tp, offset, why, raw, data)


def _unreadable(
    tp: tuple[str, int], offset: int, why: str, raw: RawRecord | None, data: bytes | None = None
) -> RecordUnreadable:
    topic, partition = tp
    return RecordUnreadable(
        f"{topic}-{partition}: the record at offset {offset} cannot be read: {why} "
        f"(to skip it: seek(({topic!r}, {partition}), {offset + 1}))",
        topic=topic,
        partition=partition,
        offset=offset,
        key=None if raw is None else raw.key,
        value=None if raw is None else raw.value,
        headers=() if raw is None else raw.headers,
        timestamp=None if raw is None else raw.timestamp,
        timestamp_type=None if raw is None else raw.timestamp_type,
        data=data,
    )


def damaged(tp: tuple[str, int], offset: int, cause: Exception, behind: int) -> RecordsDamaged:
    """The error for bytes that are not records; ``behind`` is the first offset after them."""
    topic, partition = tp
    if isinstance(cause, CorruptPayload):
        cause = corrupt(str(cause)).with_traceback(cause.__traceback__)
    why = why_undecodable(cause, f"records of {topic}-{partition} from offset {offset} on")
    error = RecordsDamaged(
        f"{why} (the consumer fetches them again at intervals; to skip the rest of this batch: "
        f"seek(({topic!r}, {partition}), {behind}))",
        topic=topic,
        partition=partition,
        offset=offset,
    )
    why.__cause__ = cause
    error.__cause__ = why
    return error


def not_opened(
    tp: tuple[str, int], offset: int, next_offset: int, cause: Exception
) -> RecordUnreadable:
    """The error for a batch without any readable record. It ends before ``next_offset``."""
    if isinstance(cause, BatchUnreadable):
        return cause
    if not isinstance(cause, UnknownCodec):
        return damaged(tp, offset, cause, next_offset)
    error = _batch_unreadable(tp, offset, next_offset, str(cause), "Use a version that reads it")
    error.__cause__ = cause
    return error


def too_large(
    tp: tuple[str, int], offset: int, next_offset: int, bytes_max: int
) -> BatchUnreadable:
    """The error for the records of a batch that come after ``bytes_max`` bytes."""
    why = (
        f"the batch unpacks to more than {bytes_max:,} bytes "
        f"(max_decompressed_batch_bytes={bytes_max})"
    )
    return _batch_unreadable(tp, offset, next_offset, why, "Raise that limit")


def _batch_unreadable(
    tp: tuple[str, int], offset: int, next_offset: int, why: str, way_out: str
) -> BatchUnreadable:
    topic, partition = tp
    last = next_offset - 1
    which = (
        f"record at offset {offset}"
        if offset == last
        else f"records from offset {offset} to {last}"
    )
    return BatchUnreadable(
        f"{topic}-{partition}: the {which} cannot be read: {why}. {way_out}, or skip the batch: "
        f"seek(({topic!r}, {partition}), {next_offset})",
        topic=topic,
        partition=partition,
        offset=offset,
        next_offset=next_offset,
    )
