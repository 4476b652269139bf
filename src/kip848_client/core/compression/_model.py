"""Kafka's numbers for codecs, the errors of unpacking, and its result."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["CODEC_MASK", "NAMES", "SMALL_BYTES", "CorruptPayload", "UnknownCodec", "Unpacked"]

CODEC_MASK: Final = 0x07
"""The bits of a batch's attributes that hold the number of its codec."""
NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""``compression.type``, by Kafka's numbers."""
SMALL_BYTES: Final = 4 << 20
"""Unpacking this much takes a few milliseconds, which an event loop can afford."""


class CorruptPayload(ValueError):
    """The bytes are not valid for their codec."""


class UnknownCodec(ValueError):
    """This version does not know the codec with this number."""

    def __init__(self, number: int) -> None:
        known = ", ".join(f"{each} {name}" for each, name in enumerate(NAMES))
        super().__init__(f"compression codec {number} is unknown to this version (known: {known})")


class Unpacked(NamedTuple):
    """The result of unpacking."""

    data: bytes
    is_whole: bool
    """False if the limit was reached; then ``data`` is only the beginning."""
