"""Request messages from plain dicts and lists: ``message("DeleteTopics", topics=[{"name": "a"}])``.

Tables of requests read better as data than as nested constructors with generated names.
"""

from __future__ import annotations

import dataclasses
import typing
from typing import Any

from kip848_client.core.wire import api_named

__all__ = ["message"]


def message(api: str, /, **fields: Any) -> Any:
    """The request of an API (by Kafka's name) with these fields; dicts become its parts.

    Raises ``TypeError`` for a field that the request does not have.
    """
    return _build(api_named(api).request, fields)


def _build(kind: type[Any], fields: dict[str, Any]) -> Any:
    hints = typing.get_type_hints(kind)
    return kind(**{name: _value(hints.get(name), value) for name, value in fields.items()})


def _value(hint: Any, value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_value(hint, each) for each in value)
    if isinstance(value, dict):
        part = _part_of(hint)
        if part is None:
            raise TypeError(f"{hint} has no parts that {value} could be")
        return _build(part, value)
    return value


def _part_of(hint: Any) -> type[Any] | None:
    """The one message class that a type hint mentions."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint
    for argument in typing.get_args(hint):
        found = _part_of(argument)
        if found is not None:
            return found
    return None
