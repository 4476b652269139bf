"""The type that an Avro schema has in Spark. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline.registry.core._kinds import Decimals, Kind, List, Map, Struct

__all__ = ["avro_kind"]

_PLAIN: Final = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
    "fixed": "binary",
    "enum": "string",
}
_LOGICAL: Final = {
    ("int", "date"): "date",
    ("int", "time-millis"): "time_ms",
    ("long", "time-micros"): "time_us",
    ("long", "timestamp-millis"): "timestamp_ms",
    ("long", "timestamp-micros"): "timestamp_us",
    ("long", "local-timestamp-millis"): "local_timestamp_ms",
    ("long", "local-timestamp-micros"): "local_timestamp_us",
    ("string", "uuid"): "string",
}
_DIGITS_MAX: Final = 38


def avro_kind(schema: Any, others: tuple[Any, ...] = ()) -> Kind:
    """The type of a schema.

    Args:
        schema: The schema, from its JSON.
        others: Schemas that it refers to by name.

    Returns:
        The type.

    Raises:
        ConfigError: Spark has no such type: a record that contains itself, or a union of several
            types; a name that no schema defines.
    """
    named: dict[str, Any] = {}
    for each in (*others, schema):
        _collect(each, "", named)
    return _kind(schema, "", named, ())


def _collect(schema: Any, space: str, named: dict[str, Any]) -> None:
    """Note the schemas that have names, with the namespace that is valid inside."""
    match schema:
        case list():
            for each in schema:
                _collect(each, space, named)
        case {"type": "record" | "error" | "enum" | "fixed", "name": str()}:
            whole = _full_name(schema, space)
            named[whole] = schema
            for field in schema.get("fields", ()):
                _collect(field["type"], whole.rpartition(".")[0], named)
        case {"type": "array", "items": items}:
            _collect(items, space, named)
        case {"type": "map", "values": values}:
            _collect(values, space, named)
        case {"type": list() | dict() as inner}:
            _collect(inner, space, named)
        case _:
            pass


def _full_name(schema: Mapping[str, Any], space: str) -> str:
    name = str(schema["name"])
    space = str(schema.get("namespace", space))
    return name if "." in name or not space else f"{space}.{name}"


def _kind(schema: Any, space: str, named: Mapping[str, Any], path: tuple[str, ...]) -> Kind:
    match schema:
        case str():
            if schema in _PLAIN:
                return _PLAIN[schema]
            whole = schema if "." in schema or not space else f"{space}.{schema}"
            if whole not in named:
                whole = schema
            if whole not in named:
                raise ConfigError(f"the Avro schema names {schema!r}, which no schema defines")
            return _kind(named[whole], whole.rpartition(".")[0], named, path)
        case list():
            kinds = [each for each in schema if each != "null"]
            if len(kinds) != 1:
                raise ConfigError(
                    f"the Avro schema has a union of {len(kinds)} types at {_place(path)}: a "
                    "column has one type. Use a transform of the bytes (decode.format = 'none')"
                )
            return _kind(kinds[0], space, named, path)
        case {"type": "record" | "error", "fields": fields}:
            return _record(schema, fields, space, named, path)
        case {"type": "array", "items": items}:
            return List(_kind(items, space, named, path))
        case {"type": "map", "values": values}:
            return Map(_kind(values, space, named, path))
        case {"type": "bytes" | "fixed", "logicalType": "decimal", "precision": int() as digits}:
            if digits <= _DIGITS_MAX:
                return Decimals(digits, int(schema.get("scale", 0)))
            return "binary"
        case {"type": str() as name}:
            logical = _LOGICAL.get((name, str(schema.get("logicalType"))))
            return logical or _kind(name, space, named, path)
        case {"type": inner}:
            return _kind(inner, space, named, path)
        case _:
            raise ConfigError(f"the Avro schema has {schema!r} at {_place(path)}: not a type")


def _record(
    schema: Mapping[str, Any],
    fields: Any,
    space: str,
    named: Mapping[str, Any],
    path: tuple[str, ...],
) -> Kind:
    whole = _full_name(schema, space)
    if whole in path:
        raise ConfigError(f"the Avro record {whole} contains itself: Spark has no such type")
    inside = whole.rpartition(".")[0]
    return Struct(
        tuple(
            (str(each["name"]), _kind(each["type"], inside, named, (*path, whole)))
            for each in fields
        )
    )


def _place(path: tuple[str, ...]) -> str:
    return path[-1] if path else "its top"
