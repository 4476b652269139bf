"""What the user's function makes of a record, as text: so that a reader of an output knows which
input it comes from.

An input is ``i17``, or ``i17!`` if the function cannot process it. Its outputs are ``i17>0``,
``i17>1`` and so on, or none; each carries, after ``@``, by whom it was made.
"""

from __future__ import annotations

__all__ = ["input_value", "is_poison", "outputs_of", "signed", "source_of", "unsigned"]

_KINDS = 4


def input_value(number: int, *, poison: bool) -> bytes:
    """An input."""
    return b"i%d%s" % (number, b"!" if poison else b"")


def is_poison(value: bytes) -> bool:
    """Whether the function cannot process it."""
    return value.endswith(b"!")


def outputs_of(value: bytes) -> list[bytes]:
    """What the function makes of an input."""
    number = int(value[1:].rstrip(b"!"))
    return [b"%s>%d" % (value, each) for each in range(number % _KINDS)]


def signed(value: bytes, by: str) -> bytes:
    """An output as it is sent; a second one of the same input is another one."""
    return b"%s@%s" % (value, by.encode())


def unsigned(output: bytes) -> bytes:
    """What was signed."""
    return output.partition(b"@")[0]


def source_of(output: bytes) -> bytes:
    """The input that an output was made of."""
    return unsigned(output).partition(b">")[0]
