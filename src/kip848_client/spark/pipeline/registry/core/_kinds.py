"""Types of decoded values, to which Avro, JSON Schema and Protobuf are mapped, and how Spark writes
them. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["Decimals", "Kind", "List", "Map", "Struct", "ddl_of"]

_DDL: Final = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date": "date",
    "timestamp_ms": "timestamp",
    "timestamp_us": "timestamp",
    "local_timestamp_ms": "timestamp_ntz",
    "local_timestamp_us": "timestamp_ntz",
    "time_ms": "int",
    "time_us": "bigint",
}


@dataclass(frozen=True, slots=True)
class Decimals:
    """Decimal numbers."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class List:
    """An array."""

    of: Kind


@dataclass(frozen=True, slots=True)
class Map:
    """A map; its keys are strings unless ``key`` says otherwise."""

    of: Kind
    key: Kind = "string"


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields by name."""

    fields: tuple[tuple[str, Kind], ...]


Kind = str | Decimals | List | Map | Struct
"""A name of ``_DDL``, or one of the classes above. Any value may be null."""


def ddl_of(kind: Kind) -> str:
    """The type as Spark writes it."""
    match kind:
        case Decimals(precision, scale):
            return f"decimal({precision},{scale})"
        case List(of):
            return f"array<{ddl_of(of)}>"
        case Map(of, key):
            return f"map<{ddl_of(key)},{ddl_of(of)}>"
        case Struct(fields):
            inner = ",".join(f"{_quoted(name)}:{ddl_of(each)}" for name, each in fields)
            return f"struct<{inner}>"
        case str():
            return _DDL[kind]


def _quoted(name: str) -> str:
    escaped = name.replace("`", "``")
    return f"`{escaped}`"
