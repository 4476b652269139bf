"""Protobuf: messages are read with the reader's message; fields are known by their numbers."""

from __future__ import annotations

import base64
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline.registry._client import Schema, UnknownSchema
from kip848_client.spark.pipeline.registry.core._confluent_frame import message_index
from kip848_client.spark.pipeline.registry.core._kinds import Decimals, Kind, List, Map, Struct

__all__ = ["ProtobufReader"]

_KNOWN: Final = (
    "any",
    "duration",
    "empty",
    "field_mask",
    "struct",
    "timestamp",
    "wrappers",
)
"""Files of Google's that schemas import without a reference."""
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_UNSIGNED: Final = Decimals(20, 0)
_WRAPPED: Final = frozenset(
    f"google.protobuf.{name}Value"
    for name in (
        "Double",
        "Float",
        "Int64",
        "UInt64",
        "Int32",
        "UInt32",
        "Bool",
        "String",
        "Bytes",
    )
)


class ProtobufReader:
    """The reader's message.

    Args:
        schema: The schema that fixes the columns.
        message: The name of the message; ``None``: the first of the file.

    Raises:
        ConfigError: It cannot be read, has no such message, or Spark has no type for it.
    """

    def __init__(self, schema: Schema, message: str | None) -> None:
        from google.protobuf import message_factory  # type: ignore[import-untyped]  # has no types

        try:
            file, _ = _file_of(schema)
        except UnknownSchema as err:
            raise ConfigError(f"the schema that fixes the columns: {err}") from err
        names = [each.full_name for each in file.message_types_by_name.values()]
        try:
            if message is None:
                found = next(iter(file.message_types_by_name.values()))
            else:
                found = file.pool.FindMessageTypeByName(message)
        except (KeyError, StopIteration) as err:
            raise ConfigError(
                f"the schema has no message {message or ''} (decode.message); it has "
                f"{', '.join(names) or 'none'}"
            ) from err
        self._name = str(found.full_name)
        self._message: Any = message_factory.GetMessageClass(found)
        self.kind: Kind = _struct(found, ())

    def of(self, schema: Schema) -> Callable[[bytes], Any]:
        """Prepare to decode records.

        Args:
            schema: The schema that they were written with.

        Returns:
            A function from the bytes to a value. It raises any exception for bad bytes.

        Raises:
            UnknownSchema: The schema cannot be read.
        """
        _, messages = _file_of(schema)
        make, name = self._message, self._name

        def decode(value: bytes) -> Any:
            index, start = message_index(value)
            if messages.get(index) != name:
                raise ValueError(f"the message is {messages.get(index)}, not {name}")
            found = make()
            found.ParseFromString(value[start:])
            return _fields(found)

        return decode


def _file_of(schema: Schema) -> tuple[Any, dict[tuple[int, ...], str]]:
    """The file of a schema, and the full names of its messages by position."""
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import (  # type: ignore[import-untyped]  # has no types
        DecodeError,
    )

    pool: Any = descriptor_pool.DescriptorPool()
    file: Any = None
    added: set[str] = set()
    try:
        for name, text in (*schema.references, ("kip848/value.proto", schema.text)):
            file = descriptor_pb2.FileDescriptorProto()
            file.ParseFromString(base64.b64decode(text, validate=True))
            file.name = name
            given = {each for each, _ in schema.references}
            for each in file.dependency:
                if each not in given:
                    _add_known(pool, each, added)
            pool.Add(file)
        found = pool.FindFileByName("kip848/value.proto")
    except (DecodeError, ValueError, KeyError, TypeError) as err:
        raise UnknownSchema(f"not a Protobuf schema: {type(err).__name__}: {err}") from err
    names: dict[tuple[int, ...], str] = {}
    _collect(file.message_type, file.package, (), names)
    return found, names


def _add_known(pool: Any, name: str, added: set[str]) -> None:
    """Add a file of Google's."""
    if name in added:
        return
    from google.protobuf import descriptor_pool

    for each in _KNOWN:
        import_module(f"google.protobuf.{each}_pb2")  # it registers its file
    added.add(name)
    found: Any = descriptor_pool.Default().FindFileByName(name)
    for each in found.dependencies:
        _add_known(pool, each.name, added)
    pool.AddSerializedFile(found.serialized_pb)


def _collect(messages: Any, space: str, at: tuple[int, ...], names: Any) -> None:
    for number, each in enumerate(messages):
        whole = f"{space}.{each.name}" if space else str(each.name)
        names[(*at, number)] = whole
        _collect(each.nested_type, whole, (*at, number), names)


def _struct(message: Any, path: tuple[str, ...]) -> Kind:
    if message.full_name in path:
        raise ConfigError(
            f"the Protobuf message {message.full_name} contains itself: Spark has no such type"
        )
    inside = (*path, message.full_name)
    return Struct(tuple((str(each.name), _of_field(each, inside)) for each in message.fields))


def _of_field(field: Any, path: tuple[str, ...]) -> Kind:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
        return Map(_single(value, path), _single(key, path))
    kind = _single(field, path)
    return List(kind) if _is_repeated(field) else kind


def _single(field: Any, path: tuple[str, ...]) -> Kind:
    message = field.message_type
    if message is not None:
        if message.full_name == _TIMESTAMP:
            return "timestamp_us"
        if message.full_name in _WRAPPED:
            return _single(message.fields_by_name["value"], path)
        return _struct(message, path)
    if field.enum_type is not None:
        return "string"
    kinds: dict[int, Kind] = {
        field.CPPTYPE_INT32: "int",
        field.CPPTYPE_UINT32: "long",
        field.CPPTYPE_INT64: "long",
        field.CPPTYPE_UINT64: _UNSIGNED,
        field.CPPTYPE_FLOAT: "float",
        field.CPPTYPE_DOUBLE: "double",
        field.CPPTYPE_BOOL: "boolean",
    }
    if field.cpp_type == field.CPPTYPE_STRING:
        return "binary" if field.type == field.TYPE_BYTES else "string"
    return kinds[field.cpp_type]


def _fields(message: Any) -> dict[str, Any]:
    """The fields of a message. One that was not set is null where Protobuf can tell, otherwise its
    default."""
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        if _is_repeated(field):
            found[field.name] = _repeated(field, getattr(message, field.name))
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = _value(field, getattr(message, field.name))
    return found


def _is_repeated(field: Any) -> bool:
    """Protobuf before 6.31 has only the label, which later releases deprecate."""
    found = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if found is None else found)


def _repeated(field: Any, values: Any) -> Any:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        inner = entry.fields_by_name["value"]
        return {key: _value(inner, values[key]) for key in values}
    return [_value(field, each) for each in values]


def _value(field: Any, value: Any) -> Any:
    message = field.message_type
    if message is not None:
        if message.full_name == _TIMESTAMP:
            return value.seconds * 1_000_000 + value.nanos // 1_000
        if message.full_name in _WRAPPED:
            return value.value
        return _fields(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else str(known.name)
    return value
