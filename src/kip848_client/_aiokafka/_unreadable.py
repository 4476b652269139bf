"""Records that cannot be read, and how a buffer stops at them.

A deserializer that raises must not end the iteration over its batch: aiokafka's iterator would be
dead, and the batch be fetched again for each attempt. So the builder of records returns an
``Unreadable`` instead of raising, and the buffer is wound back by one record. Asking again makes
the same record again, as Java's consumer does, and costs no request. A seek drops the buffer.

Damaged bytes (a wrong checksum, a codec that is not installed) do end the iteration. They may have
been damaged on their way, so they are fetched again, but only once in a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from aiokafka.consumer.fetcher import FetchError, FetchResult

from kip848_client._aiokafka._errors import translated
from kip848_client.errors import RecordUnreadable

__all__ = ["Damaged", "Unreadable", "damaged", "not_deserialized", "wind_back"]

_NO_PAUSE: Final = 0.0


class Unreadable:
    """What a builder returns for a record that it cannot make: the decoded record and why."""

    __slots__ = ("error", "raw")

    def __init__(self, raw: Any, error: Exception) -> None:
        self.raw = raw
        self.error = error


class Damaged(FetchError):  # type: ignore[misc]  # aiokafka has no types
    """Stands in a partition's buffer. Other partitions of its broker go on."""

    def __init__(self, error: RecordUnreadable, fetch_again_at_s: float) -> None:
        super().__init__(error=error, backoff=_NO_PAUSE)
        self.fetch_again_at_s = fetch_again_at_s


def wind_back(buffer: FetchResult, tp: Any, raw: Any, build: Callable[[Any, Any], object]) -> None:
    """Make the record that was just read of ``buffer`` the next one again."""
    records: Any = buffer._partition_records
    if records.next_fetch_offset != raw.offset:  # else it was wound back before
        records.next_fetch_offset = raw.offset
        records._records_iterator = _again(records, tp, raw, build, records._records_iterator)
    buffer._update_position()


def _again(
    records: Any, tp: Any, raw: Any, build: Callable[[Any, Any], object], rest: Iterator[object]
) -> Iterator[object]:
    """``raw``, made anew each time until that succeeds, then ``rest``."""
    while type(made := build(tp, raw)) is Unreadable:
        yield made
    records.next_fetch_offset = raw.offset + 1
    records._records_iterator = rest  # not "yield from": a long row of such records would nest
    yield made


def not_deserialized(tp: tuple[str, int], offset: int, cause: Exception) -> RecordUnreadable:
    """The error for a deserializer's, which becomes its cause."""
    topic, partition = tp
    error = RecordUnreadable(
        f"{topic}-{partition}: the record at offset {offset} cannot be read: "
        f"{type(cause).__name__}: {cause} "
        f"(seek(({topic!r}, {partition}), {offset + 1}) leaves it out)",
        topic=topic,
        partition=partition,
        offset=offset,
    )
    error.__cause__ = cause
    return error


def damaged(tp: tuple[str, int], offset: int, cause: Exception) -> RecordUnreadable:
    """The error for bytes that are no records."""
    topic, partition = tp
    why = translated(cause, f"records of {topic}-{partition} from offset {offset} on")
    error = RecordUnreadable(
        f"{why} (they are fetched again once in a while; seek to an offset behind them leaves "
        "them out)",
        topic=topic,
        partition=partition,
        offset=offset,
    )
    error.__cause__ = why
    return error
