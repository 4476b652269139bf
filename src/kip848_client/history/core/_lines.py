"""Writes an event as a line of JSON, and parses a line of a file, which may be invalid."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, cast

from kip848_client.core.types import TopicPartition
from kip848_client.history.core._event import HistoryEvent
from kip848_client.history.core._schema import FIELDS, SCHEMA, Field, Role

__all__ = ["LINE_BYTES_MAX", "BadLine", "line_of", "parse_line"]

LINE_BYTES_MAX: Final = 4 << 20
"""The longest valid line: an event with 100,000 partitions has less than a megabyte."""
_NUMBER_MAX: Final = (1 << 53) - 1
"""JSON parsers disagree about larger numbers."""
_ROLES: Final = frozenset(role.value for role in Role)
_SHOWN: Final = 60


class BadLine(ValueError):
    """A line is not an event; the text is the reason."""


def line_of(event: HistoryEvent) -> bytes:
    """The event as a line of JSON, with its newline; missing fields are omitted."""
    said: dict[str, object] = {}
    for field in FIELDS:
        value: object = getattr(event, field.name)
        if field.name == "partitions":
            value = _rows_of(event.partitions)
        if value is not None:
            said[field.name] = value
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"


def _rows_of(partitions: tuple[TopicPartition, ...]) -> list[dict[str, object]] | None:
    rows = groupby(partitions, key=attrgetter("topic"))
    return [
        {"topic": topic, "partitions": [each.partition for each in group]} for topic, group in rows
    ] or None


def parse_line(line: bytes) -> HistoryEvent:
    """Parse an event. Raises ``BadLine``, and no other error, for any bytes."""
    if len(line) > LINE_BYTES_MAX:
        raise BadLine(f"it has more than {LINE_BYTES_MAX} bytes")
    try:
        said: Any = json.loads(line.decode())
    except UnicodeDecodeError:
        raise BadLine("it is not text (UTF-8)") from None
    except (ValueError, RecursionError) as err:
        raise BadLine(f"it is not JSON ({err})") from None
    if not isinstance(said, dict):
        raise BadLine("it is JSON, but not an object")
    return _event_of(cast("Mapping[str, object]", said))


def _event_of(said: Mapping[str, object]) -> HistoryEvent:
    if "schema" not in said:
        raise BadLine("it has no schema: it is not an event of a group's history")
    if said["schema"] != SCHEMA:
        raise BadLine(f"its schema is {_shown(said['schema'])}; this version reads {SCHEMA}")
    found = {field.name: _READERS[field.type](field, said.get(field.name)) for field in FIELDS}
    if found["role"] not in _ROLES:
        raise BadLine(f"role {_shown(found['role'])} is none of {', '.join(sorted(_ROLES))}")
    return HistoryEvent(**cast("dict[str, Any]", found))


def _text(field: Field, value: object) -> str | None:
    if value is None and not field.required:
        return None
    if not isinstance(value, str):
        raise BadLine(f"{field.name} is {_shown(value)}, not a text")
    return value


def _number(field: Field, value: object) -> int | None:
    if value is None and not field.required:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > _NUMBER_MAX:
        raise BadLine(f"{field.name} is {_shown(value)}, not a number")
    if value < 0 and field.name in ("time_ms", "duration_ms", "seq", "count"):
        raise BadLine(f"{field.name} is {value}")
    return value


def _partitions(field: Field, value: object) -> tuple[TopicPartition, ...]:
    if value is None:
        return ()
    try:
        rows = cast("list[dict[str, list[object]]]", value)
        found = {(row["topic"], each) for row in rows for each in row["partitions"]}
    except (TypeError, KeyError):
        found = set[tuple[Any, Any]]([(None, None)])
    if not all(isinstance(topic, str) and type(number) is int for topic, number in found):
        raise BadLine(f"{field.name} is {_shown(value)}, not topics with their partitions")
    named = cast("set[tuple[str, int]]", found)
    return tuple(TopicPartition(*each) for each in sorted(named))


_READERS: Final[Mapping[str, Callable[[Field, object], object]]] = {
    "string": _text,
    "long": _number,
    "partitions": _partitions,
}


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
