"""Functions for the generated code: variable-length integers and errors."""

from __future__ import annotations

import struct
from typing import Final, NoReturn

from kip848_client.errors import UnsupportedVersion, WireError

__all__ = [
    "FIXED",
    "MAX_STRING_BYTES",
    "PACKERS",
    "UNPACKERS",
    "bad",
    "not_carried",
    "read_varint",
    "write_varint",
]

FIXED: Final[dict[str, tuple[str, int]]] = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
}
"""Fixed-size kinds: struct letter and size in bytes."""

_SHORT: Final = 65

PACKERS: Final = {
    letter: [struct.Struct(f">{count}{letter}").pack for count in range(_SHORT)]
    for letter, _ in FIXED.values()
}
"""Per struct letter: how to write 0, 1, 2, .. numbers. Most arrays are short, and looking up a
layout by its text costs as much as writing ten partitions.
"""

UNPACKERS: Final = {
    letter: [struct.Struct(f">{count}{letter}").unpack_from for count in range(_SHORT)]
    for letter, _ in FIXED.values()
}
"""Per struct letter: how to read 0, 1, 2, .. numbers."""

MAX_STRING_BYTES: Final = 0x7FFF
"""Kafka's limit for any string, compact or not."""


def write_varint(buffer: bytearray, value: int) -> None:
    """Append an unsigned LEB128 integer (KIP-482)."""
    while value > 0x7F:
        buffer.append((value & 0x7F) | 0x80)
        value >>= 7
    buffer.append(value)


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The unsigned LEB128 integer at ``position``, at most five bytes; and the position after
    it."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise WireError(f"a variable-length integer of more than 5 bytes at {position}")
    if value > 0xFFFFFFFF:
        raise WireError(f"a variable-length integer of more than 32 bits at {position}")
    return value, position


def bad(where: str, problem: str) -> NoReturn:
    """Refuse a value; ``where`` is the class and field."""
    raise WireError(f"{where}: {problem}")


def not_carried(where: str, version: int) -> NoReturn:
    """Refuse to drop silently what a version cannot carry."""
    raise UnsupportedVersion(f"{where} is set, but version {version} cannot carry it")
