"""Header names. Kafka's protocol says UTF-8, but they can be any bytes, because brokers do not
check them.

Java's consumer replaces invalid UTF-8 with U+FFFD. Python's "replace" does the same with one
exception: half of a surrogate pair (bytes ED A0 80 to ED BF BF, or the first two of them) becomes
one U+FFFD in Java, and one per byte in Python. The extension does this in ``text.c``.
"""

from __future__ import annotations

import codecs
from typing import Final

__all__ = ["header_name"]

_LIKE_JAVA: Final = "kip848_client.java"
_BEFORE_SURROGATE: Final = 0xED
_SURROGATE_FROM: Final = 0xA0


def header_name(data: bytes) -> str:
    """A header name as Java's consumer reads it. Accepts any bytes."""
    return data.decode("utf-8", _LIKE_JAVA)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Returns U+FFFD and where decoding continues; called by the codec."""
    assert isinstance(error, UnicodeDecodeError)
    data, at, end = error.object, error.start, error.end
    second = data[at + 1 : at + 2]
    if data[at] == _BEFORE_SURROGATE and second and _is_continuation(second[0], _SURROGATE_FROM):
        third = data[at + 2 : at + 3]
        end = at + 3 if third and _is_continuation(third[0]) else at + 2
    return "\ufffd", end


def _is_continuation(byte: int, low: int = 0x80) -> bool:
    return low <= byte <= 0xBF


codecs.register_error(_LIKE_JAVA, _replaced)
