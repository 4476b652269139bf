"""The bytes that serializers for a schema registry write before a value. Pure.

A zero byte, the id of the schema in four bytes, and for Protobuf the position of the message in its
file: how many numbers, then each number, as zigzag varints; a single zero stands for ``[0]``.
"""

from __future__ import annotations

from typing import Final

__all__ = ["Unframed", "message_index", "schema_id"]

_MAGIC: Final = 0
_START: Final = 5
_DEPTH_MAX: Final = 100
"""Messages are not nested deeper."""
_VARINT_BYTES: Final = 10


class Unframed(ValueError):
    """The value was not written by such a serializer."""


def schema_id(value: bytes) -> int:
    """The id of the schema. Raises ``Unframed``."""
    if len(value) < _START or value[0] != _MAGIC:
        raise Unframed("the value does not begin with a zero byte and the id of a schema")
    return int.from_bytes(value[1:_START])


def message_index(value: bytes) -> tuple[tuple[int, ...], int]:
    """The position of a Protobuf message in its file, and where its bytes begin. Raises
    ``Unframed``."""
    count, at = _varint(value, _START)
    if not 0 <= count <= _DEPTH_MAX:
        raise Unframed(f"the value has {count} numbers for the position of its message")
    if count == 0:
        return (0,), at
    numbers: list[int] = []
    for _ in range(count):
        number, at = _varint(value, at)
        numbers.append(number)
    return tuple(numbers), at


def _varint(value: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint, and what is after it."""
    found = 0
    for index in range(_VARINT_BYTES):
        if at + index >= len(value):
            break
        byte = value[at + index]
        found |= (byte & 0x7F) << 7 * index
        if not byte & 0x80:
            return (found >> 1) ^ -(found & 1), at + index + 1
    raise Unframed("the position of the message ends early")
