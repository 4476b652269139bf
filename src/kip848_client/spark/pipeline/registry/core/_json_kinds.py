"""The type that a JSON Schema has in Spark. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline.registry.core._kinds import Kind, List, Map, Struct

__all__ = ["json_kind"]

_PLAIN: Final = {
    "string": "string",
    "integer": "long",
    "number": "double",
    "boolean": "boolean",
}
_PERCENT: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_WAY_OUT: Final = "Name the columns (decode.columns)"


def json_kind(schema: Any, others: Mapping[str, Any]) -> Kind:
    """The type of a schema.

    Args:
        schema: The schema.
        others: Schemas that it refers to, by the name of the reference.

    Returns:
        The type.

    Raises:
        ConfigError: Spark has no such type: several types, or an object without properties.
    """
    return _kind(schema, schema, others, ())


def _kind(schema: Any, root: Any, others: Mapping[str, Any], path: tuple[str, ...]) -> Kind:
    if not isinstance(schema, Mapping):
        raise _unclear(path, "any value")
    given = cast("Mapping[str, Any]", schema)
    if "$ref" in given:
        reference = str(given["$ref"])
        if path.count(reference):
            raise _unclear(path, f"a structure that contains itself ({reference})")
        target, its_root = _target(reference, root, others, path)
        return _kind(target, its_root, others, (*path, reference))
    for name in ("oneOf", "anyOf"):
        if name in given:
            wanted = [each for each in given[name] if each != {"type": "null"}]
            if len(wanted) != 1:
                raise _unclear(path, f"{len(wanted)} types ({name})")
            return _kind(wanted[0], root, others, path)
    types = given.get("type")
    names = [each for each in types if each != "null"] if isinstance(types, list) else [types]
    if len(names) != 1:
        raise _unclear(path, f"{len(names)} types")
    match names[0]:
        case str() as name if name in _PLAIN:
            return _PLAIN[name]
        case "array":
            return List(_kind(given.get("items"), root, others, (*path, "items")))
        case "object":
            return _object(given, root, others, path)
        case None if all(isinstance(each, str) for each in given.get("enum", (0,))):
            return "string"
        case other:
            raise _unclear(path, "no type" if other is None else f"the type {other!r}")


def _object(
    schema: Mapping[str, Any], root: Any, others: Mapping[str, Any], path: tuple[str, ...]
) -> Kind:
    properties: Mapping[str, Any] = schema.get("properties", {})
    if properties:
        return Struct(
            tuple(
                (name, _kind(each, root, others, (*path, name)))
                for name, each in properties.items()
            )
        )
    more = schema.get("additionalProperties")
    if isinstance(more, Mapping):
        return Map(_kind(more, root, others, (*path, "additionalProperties")))
    raise _unclear(path, "an object without properties")


def _target(
    reference: str, root: Any, others: Mapping[str, Any], path: tuple[str, ...]
) -> tuple[Any, Any]:
    """What a reference leads to, and the schema that it is in."""
    document, _, pointer = reference.partition("#")
    found = its_root = root if not document else others.get(document)
    for part in (each for each in pointer.split("/") if each):
        name = _unquoted(part).replace("~1", "/").replace("~0", "~")
        found = cast("Any", found).get(name) if isinstance(found, Mapping) else None
    if found is None:
        raise _unclear(path, f"the reference {reference!r}, which leads nowhere")
    return found, its_root


def _unquoted(part: str) -> str:
    """A part of a fragment without percent signs."""
    found = _PERCENT.sub(lambda each: bytes([int(each[1], 16)]), part.encode())
    return found.decode(errors="replace")


def _unclear(path: tuple[str, ...], what: str) -> ConfigError:
    place = ".".join(each for each in path if "#" not in each) or "its top"
    return ConfigError(
        f"the JSON Schema has {what} at {place}: a column of Spark has one type. {_WAY_OUT}"
    )
