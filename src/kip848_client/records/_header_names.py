"""The names of headers: UTF-8 by Kafka's protocol, and any bytes in practice, since brokers do not
look at them.

Java's consumer puts U+FFFD in the place of what is not UTF-8. Python's "replace" does the same but
for one thing: of half a surrogate pair (bytes ED A0 80 to ED BF BF, or the first two of them) Java
makes one U+FFFD, Python one per byte. The extension does this in ``text.c``.
"""

from __future__ import annotations

import codecs
from typing import Final

__all__ = ["header_name"]

_LIKE_JAVA: Final = "kip848_client.java"
_BEFORE_SURROGATE: Final = 0xED
_SURROGATE_FROM: Final = 0xA0


def header_name(data: bytes) -> str:
    """The name of a header as Java's consumer reads it. Never raises for what bytes there are."""
    return data.decode("utf-8", _LIKE_JAVA)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """U+FFFD, and where decoding goes on: called by the codec."""
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
