"""The schema language: how a message class declares its fields' wire format.

A message is one ordinary dataclass for all its versions; each field is declared by one of the
functions below, which name the wire type, the versions that carry it and what a missing field
means::

    group_id: str = string()
    regex: str | None = string("1+", nullable="1+", default=None)
    topics: tuple[Topic, ...] = array(Topic)

Version ranges are written as in Kafka's own definitions: ``"0+"``, ``"2-4"``, ``"3"``. The
functions return ``dataclasses.field`` objects, typed ``Any`` so that a checker believes the
annotation instead.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

__all__ = [
    "METADATA_KEY",
    "NEVER",
    "FieldSpec",
    "Message",
    "Struct",
    "Versions",
    "array",
    "boolean",
    "data",
    "field_specs",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "records",
    "string",
    "struct",
    "uint16",
    "uint32",
    "uuid",
]

METADATA_KEY: Final = "kip848"
_HIGHEST: Final = 32767


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of versions; ``low > high`` is the empty range."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """``"0+"``, ``"2-4"``, ``"3"`` or ``"none"``."""
        if text == "none":
            return NEVER
        if text.endswith("+"):
            return cls(int(text[:-1]), _HIGHEST)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high


NEVER: Final = Versions(1, 0)


class Struct(Protocol):
    """Any dataclass whose fields are declared with this module."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class Message(Protocol):
    """A struct that is a whole request or response."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    API_KEY: ClassVar[int]
    VERSIONS: ClassVar[tuple[int, int]]
    FLEXIBLE: ClassVar[int]


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """The wire format of one field.

    ``kind`` is a primitive's name, ``"array"`` or ``"struct"``; ``element`` is the class of a
    struct or of an array's structs, or the primitive name of an array's elements. ``versions``
    carry the field in the body, ``tagged`` as tagged field number ``tag`` (KIP-482). In versions
    that carry it nowhere, an ``ignorable`` field is dropped silently and any other must hold its
    default.
    """

    kind: str
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int
    element: type | str | None
    ignorable: bool


def _field(
    kind: str,
    versions: str,
    default: Any,
    *,
    nullable: str = "none",
    tag: int = -1,
    tagged: str = "none",
    element: type | str | None = None,
    ignorable: bool = False,
    is_secret: bool = False,
) -> Any:
    spec = FieldSpec(
        kind,
        Versions.parse(versions),
        Versions.parse(nullable),
        Versions.parse(tagged),
        tag,
        element,
        ignorable,
    )
    metadata = {METADATA_KEY: spec}
    if kind == "struct" and default is not None:
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata, repr=not is_secret)


def boolean(versions: str = "0+", *, default: bool = False, **options: Any) -> Any:
    """One byte, zero or not."""
    return _field("bool", versions, default, **options)


def int8(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    """One signed byte."""
    return _field("int8", versions, default, **options)


def int16(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    """Two signed bytes, big-endian as all of Kafka."""
    return _field("int16", versions, default, **options)


def uint16(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    """Two unsigned bytes."""
    return _field("uint16", versions, default, **options)


def int32(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    """Four signed bytes."""
    return _field("int32", versions, default, **options)


def uint32(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    """Four unsigned bytes."""
    return _field("uint32", versions, default, **options)


def int64(versions: str = "0+", *, default: int = 0, **options: Any) -> Any:
    """Eight signed bytes."""
    return _field("int64", versions, default, **options)


def float64(versions: str = "0+", *, default: float = 0.0, **options: Any) -> Any:
    """An IEEE 754 double."""
    return _field("float64", versions, default, **options)


def uuid(versions: str = "0+", *, default: bytes = bytes(16), **options: Any) -> Any:
    """Sixteen raw bytes."""
    return _field("uuid", versions, default, **options)


def string(versions: str = "0+", *, default: str | None = "", **options: Any) -> Any:
    """UTF-8 text of at most 32,767 bytes."""
    return _field("string", versions, default, **options)


def data(versions: str = "0+", *, default: bytes | None = b"", **options: Any) -> Any:
    """Opaque bytes."""
    return _field("bytes", versions, default, **options)


def records(versions: str = "0+", *, default: bytes | None = None, **options: Any) -> Any:
    """Record batches, kept as bytes: always nullable on the wire."""
    return _field("bytes", versions, default, nullable="0+", **options)


def array(
    element: type | str,
    versions: str = "0+",
    *,
    default: tuple[Any, ...] | None = (),
    **options: Any,
) -> Any:
    """A sequence of structs (``element`` is their class) or primitives (its name); a tuple here."""
    return _field("array", versions, default, element=element, **options)


def struct(
    element: type, versions: str = "0+", *, default: type | None = None, **options: Any
) -> Any:
    """One nested struct. ``default`` is ``None`` or the class whose empty instance is meant."""
    return _field("struct", versions, default, element=element, **options)


def field_specs(cls: type[Any]) -> list[tuple[str, FieldSpec, Any]]:
    """``(name, spec, default)`` of each wire field of a struct class, in wire order."""
    found: list[tuple[str, FieldSpec, Any]] = []
    for field in dataclasses.fields(cls):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        found.append((field.name, field.metadata[METADATA_KEY], default))
    return found
