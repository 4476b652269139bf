"""Builds dead letters: the record that cannot be processed, with headers that describe the
error."""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.types import TopicPartition
from kip848_client.errors import RecordUnreadable
from kip848_client.records import Record
from kip848_client.records._record import RawRecord, raw_record

__all__ = ["dead_letter_headers", "unreadable_record"]

_TEXT_MAX: Final = 4_000
"""Limits the error text, so that the record does not become too large."""


def unreadable_record(error: RecordUnreadable) -> RawRecord:
    """The readable parts of a record that cannot be read. If its fields cannot be separated, the
    value has all of its bytes."""
    value = error.value if error.timestamp is not None else error.data
    timestamp = -1 if error.timestamp is None else error.timestamp
    kind = error.timestamp_type or 0
    tp = TopicPartition(error.topic, error.partition)
    headers: Any = error.headers  # aiokafka's type has no null values
    return raw_record(tp, error.offset, timestamp, kind, error.key, value, headers)


def dead_letter_headers(
    record: Record[Any, Any], error: BaseException
) -> list[tuple[str, bytes | None]]:
    """The record's own headers, plus its place in the source topic and the error."""
    kind = type(error)
    ours: dict[str, str] = {
        "kip848.errors.topic": record.topic,
        "kip848.errors.partition": str(record.partition),
        "kip848.errors.offset": str(record.offset),
        "kip848.errors.exception.class.name": f"{kind.__module__}.{kind.__qualname__}",
        "kip848.errors.exception.message": _said(error),
    }
    return [
        *record.headers,
        *((name, text.encode("utf-8", "backslashreplace")) for name, text in ours.items()),
    ]


def _said(error: BaseException) -> str:
    try:
        return str(error)[:_TEXT_MAX]
    except Exception:  # noqa: BLE001 - whatever the error's own __str__ does
        return ""
