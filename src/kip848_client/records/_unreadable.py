"""Records that cannot be read, in two kinds.

A deserializer that raises says nothing about the bytes: the record stays the next one of its
partition, and asking again makes it again, as Java's consumer does. Damaged bytes (a wrong
checksum, a codec that is not installed) may have been damaged on their way: they are worth another
fetch.
"""

from __future__ import annotations

from kip848_client._aiokafka._codec import why_undecodable
from kip848_client._shown import told
from kip848_client.errors import RecordUnreadable

__all__ = ["RecordsDamaged", "damaged", "not_deserialized"]


class RecordsDamaged(RecordUnreadable):
    """The bytes of a partition are no records from ``offset`` on."""


def not_deserialized(tp: tuple[str, int], offset: int, cause: BaseException) -> RecordUnreadable:
    """The error for a deserializer's, which becomes its cause."""
    topic, partition = tp
    error = RecordUnreadable(
        f"{topic}-{partition}: the record at offset {offset} cannot be read: "
        f"{told(cause)} "
        f"(seek(({topic!r}, {partition}), {offset + 1}) leaves it out)",
        topic=topic,
        partition=partition,
        offset=offset,
    )
    error.__cause__ = cause
    return error


def damaged(tp: tuple[str, int], offset: int, cause: Exception) -> RecordsDamaged:
    """The error for bytes that are no records."""
    topic, partition = tp
    why = why_undecodable(cause, f"records of {topic}-{partition} from offset {offset} on")
    error = RecordsDamaged(
        f"{why} (they are fetched again once in a while; seek to an offset behind them leaves "
        "them out)",
        topic=topic,
        partition=partition,
        offset=offset,
    )
    why.__cause__ = cause
    error.__cause__ = why
    return error
