"""A codec that is driven by Kafka's own message definitions: the second byte oracle of the wire
layer.

It shares no line with ``kip848_client.core.wire``: messages are plain dicts keyed by Kafka's field
names, and every byte follows from the JSON inside the jar. It interprets the definition field by
field, which is slow and easy to check. Rules that the definitions do not spell out, as Kafka's
generated classes have them:

* a field whose versions do not include the written one is left out; if it is not ``ignorable``
  and has another value than its default, writing is refused;
* a tagged field is written when it differs from its default;
* a nullable struct is preceded by one byte: -1 for null (0 when it is a tagged field), 1 otherwise;
* the default of a field is the empty value of its type, unless the definition names another one.
  JSON's ``null`` as a default means "none named", the string "null" means null.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.support.jar_schemas import FieldSpec, MessageSpec, load_schemas

__all__ = ["JarCodec", "JarCodecError", "default_of"]

_NUMBERS: Final = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
}
_TEXT: Final = ("string", "bytes", "records")


class JarCodecError(Exception):
    """The value does not fit the definition, or the bytes do not."""


def default_of(spec: FieldSpec) -> Any:
    """The value of a field that nobody set."""
    named = spec.default
    if named == "null":
        return None
    if spec.is_array:
        return []
    if spec.type in _NUMBERS:
        return _number(spec.type, named)
    if spec.type == "uuid":
        return bytes(16) if named is None else base64.urlsafe_b64decode(named + "==")
    if spec.type == "string":
        return "" if named is None else named
    if spec.type in _TEXT:
        return b""
    return {each.name: default_of(each) for each in spec.fields}


def _number(kind: str, named: Any) -> Any:
    if kind == "bool":
        return str(named).lower() == "true"
    if kind == "float64":
        return float(named or 0)
    return 0 if named is None else int(str(named), 0)


class JarCodec:
    """Encode and decode by the definitions of one jar.

    ``encode(name, version, value)`` and ``decode(name, version, data)`` take the message's name
    and the body without headers. Both raise ``JarCodecError``.
    """

    def __init__(self, jar: Path) -> None:
        self.schemas: Mapping[str, MessageSpec] = load_schemas(jar)

    def encode(self, name: str, version: int, value: Mapping[str, Any]) -> bytes:
        spec = self._spec(name, version)
        out = bytearray()
        _Writer(out, version).struct(spec.fields, value, flexible=version in spec.flexible)
        return bytes(out)

    def decode(self, name: str, version: int, data: bytes) -> dict[str, Any]:
        spec = self._spec(name, version)
        reader = _Reader(data, version)
        value = reader.struct(spec.fields, flexible=version in spec.flexible)
        if reader.offset != len(data):
            raise JarCodecError(f"{name} v{version}: {len(data) - reader.offset} bytes left over")
        return value

    def _spec(self, name: str, version: int) -> MessageSpec:
        spec = self.schemas[name]
        if version not in spec.versions:
            raise JarCodecError(f"{name} has no version {version}")
        return spec


class _Writer:
    def __init__(self, out: bytearray, version: int) -> None:
        self.out = out
        self.version = version

    def struct(
        self, fields: tuple[FieldSpec, ...], value: Mapping[str, Any], *, flexible: bool
    ) -> None:
        unknown = set(value) - {spec.name for spec in fields}
        if unknown:
            raise JarCodecError(f"no such fields: {sorted(unknown)}")
        tagged: list[tuple[int, FieldSpec, Any]] = []
        for spec in fields:
            item = value.get(spec.name, default_of(spec))
            if self.version not in spec.versions:
                if not spec.ignorable and not _is_default(spec, item):
                    raise JarCodecError(f"{spec.name} does not exist in version {self.version}")
            elif self.version in spec.tagged and flexible:
                if not _is_default(spec, item):
                    tagged.append((spec.tag or 0, spec, item))
            else:
                self.field(spec, item, flexible=flexible and self.version in spec.flexible)
        if flexible:
            self.varint(len(tagged))
            for tag, spec, item in sorted(tagged, key=lambda each: each[0]):
                inner = _Writer(bytearray(), self.version)
                inner.field(spec, item, flexible=True, tagged=True)
                self.varint(tag)
                self.varint(len(inner.out))
                self.out += inner.out

    def field(self, spec: FieldSpec, item: Any, *, flexible: bool, tagged: bool = False) -> None:
        nullable = self.version in spec.nullable
        if item is None and not nullable:
            raise JarCodecError(f"{spec.name} cannot be null in version {self.version}")
        if spec.is_array:
            self.length(None if item is None else len(item), 4, flexible=flexible)
            for each in item or ():
                self.value(spec, each, flexible=flexible)
        elif spec.fields and nullable:
            self.out += struct.pack(">b", 1 if item is not None else 0 if tagged else -1)
            if item is not None:
                self.struct(spec.fields, item, flexible=flexible)
        elif item is None:
            self.length(None, 2 if spec.type == "string" else 4, flexible=flexible)
        else:
            self.value(spec, item, flexible=flexible)

    def value(self, spec: FieldSpec, item: Any, *, flexible: bool) -> None:
        kind = spec.element
        if spec.fields:
            self.struct(spec.fields, item, flexible=flexible)
        elif kind in _NUMBERS:
            self.out += struct.pack(_NUMBERS[kind], item)
        elif kind == "uuid":
            self.out += item
        else:
            raw = item.encode() if kind == "string" else item
            self.length(len(raw), 2 if kind == "string" else 4, flexible=flexible)
            self.out += raw

    def length(self, size: int | None, width: int, *, flexible: bool) -> None:
        if flexible:
            self.varint(0 if size is None else size + 1)
        else:
            self.out += (-1 if size is None else size).to_bytes(width, "big", signed=True)

    def varint(self, number: int) -> None:
        while number > 0x7F:
            self.out.append(number & 0x7F | 0x80)
            number >>= 7
        self.out.append(number)


class _Reader:
    def __init__(self, data: bytes, version: int, offset: int = 0) -> None:
        self.data = data
        self.version = version
        self.offset = offset

    def struct(self, fields: tuple[FieldSpec, ...], *, flexible: bool) -> dict[str, Any]:
        value: dict[str, Any] = {}
        tagged: dict[int, FieldSpec] = {}
        for spec in fields:
            value[spec.name] = default_of(spec)
            if self.version not in spec.versions:
                continue
            if self.version in spec.tagged and flexible:
                tagged[spec.tag or 0] = spec
            else:
                compact = flexible and self.version in spec.flexible
                value[spec.name] = self.field(spec, flexible=compact)
        if flexible:
            for _ in range(self.varint()):
                tag, size = self.varint(), self.varint()
                end = self.offset + size
                if tag in tagged:
                    value[tagged[tag].name] = self.field(tagged[tag], flexible=True)
                    if self.offset != end:
                        raise JarCodecError(f"tag {tag} is not {size} bytes long")
                self.offset = end
        return value

    def field(self, spec: FieldSpec, *, flexible: bool) -> Any:
        if spec.is_array:
            count = self.length(4, flexible=flexible)
            if count is None:
                return None
            return [self.value(spec, flexible=flexible) for _ in range(count)]
        if spec.fields and self.version in spec.nullable and self.take(1)[0] != 1:
            return None
        return self.value(spec, flexible=flexible)

    def value(self, spec: FieldSpec, *, flexible: bool) -> Any:
        kind = spec.element
        if spec.fields:
            return self.struct(spec.fields, flexible=flexible)
        if kind in _NUMBERS:
            return struct.unpack(_NUMBERS[kind], self.take(struct.calcsize(_NUMBERS[kind])))[0]
        if kind == "uuid":
            return self.take(16)
        size = self.length(2 if kind == "string" else 4, flexible=flexible)
        if size is None:
            return None
        return self.take(size).decode() if kind == "string" else self.take(size)

    def length(self, width: int, *, flexible: bool) -> int | None:
        if flexible:
            size = self.varint() - 1
        else:
            size = int.from_bytes(self.take(width), "big", signed=True)
        return None if size < 0 else size

    def varint(self) -> int:
        number = shift = 0
        while True:
            byte = self.take(1)[0]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def take(self, size: int) -> bytes:
        end = self.offset + size
        if end > len(self.data):
            raise JarCodecError(f"{end - len(self.data)} bytes are missing")
        piece, self.offset = self.data[self.offset : end], end
        return piece


def _is_default(spec: FieldSpec, item: Any) -> bool:
    """Whether a value is the field's default, a struct counting as its defaults spelled out."""
    return bool(_spelled_out(spec, item) == default_of(spec))


def _spelled_out(spec: FieldSpec, item: Any) -> Any:
    if not spec.fields or spec.is_array or item is None:
        return item
    return {
        each.name: _spelled_out(each, item.get(each.name, default_of(each))) for each in spec.fields
    }
