"""Reads and checks values of JSON objects."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, cast

from kip848_client.core.wire._fields import FieldSpec, field_specs
from kip848_client.errors import ConfigError

__all__ = ["Fields", "json_number", "json_object", "json_text", "message_from_json", "require_true"]

Fields = dict[str, Any]
"""The fields of an object that are still unread."""


def json_object(value: object, what: str) -> Fields:
    """A copy of an object, from which the caller removes what it reads. Raises ``ConfigError``."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{what}: expected an object, not {value!r}")
    return dict(cast("Mapping[str, Any]", value))


def json_text(fields: Fields, name: str) -> str | None:
    """Remove a string from ``fields``; ``None`` if it is missing. Raises ``ConfigError``."""
    value = fields.pop(name, None)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{name} = {value!r}: expected a string")
    return value


def json_number(fields: Fields, name: str, default: int | None) -> int | None:
    """Remove a number from ``fields``. Raises ``ConfigError``."""
    value = fields.pop(name, default)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise ConfigError(f"{name} = {value!r}: expected a number")
    return value


def require_true(fields: Fields, name: str) -> None:
    """Remove ``true`` from ``fields``. Raises ``ConfigError``."""
    if fields.pop(name) is not True:
        raise ConfigError(f"{name}: expected true")


def message_from_json(cls: type[Any], value: object, where: str) -> Any:
    """A message from its JSON fields; bytes and ids are base64."""
    fields = json_object(value, where)
    values: dict[str, Any] = {}
    for name, spec, _ in field_specs(cls):
        if name in fields:
            values[name] = _value(spec, fields.pop(name), f"{where}.{name}")
    if fields:
        raise ConfigError(f"{where}: unknown fields: {', '.join(sorted(fields))}")
    return cls(**values)


def _value(spec: FieldSpec, value: Any, where: str) -> Any:
    if value is None:
        return None
    if spec.kind == "array":
        if not isinstance(value, list):
            raise ConfigError(f"{where}: expected a list")
        rows = cast("list[object]", value)
        if isinstance(spec.element, type):
            element = spec.element
            return tuple(
                message_from_json(element, each, f"{where}[{i}]") for i, each in enumerate(rows)
            )
        return tuple(rows)
    if spec.kind == "struct" and isinstance(spec.element, type):
        return message_from_json(spec.element, value, where)
    if spec.kind in ("bytes", "uuid"):
        try:
            padded = str(value) + "=" * (-len(str(value)) % 4)
            return base64.urlsafe_b64decode(padded)
        except (binascii.Error, ValueError) as err:
            raise ConfigError(f"{where}: expected base64, not {value!r}") from err
    return value
