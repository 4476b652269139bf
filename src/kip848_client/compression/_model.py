"""Kafka's numbers for codecs, the errors of unpacking, and its result."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["CODEC_MASK", "NAMES", "SMALL_BYTES", "CorruptPayload", "UnknownCodec", "Unpacked"]

CODEC_MASK: Final = 0x07
"""The bits of a batch's attributes that hold the number of its codec."""
NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
"""``compression.type``, by Kafka's numbers."""
SMALL_BYTES: Final = 4 << 20
"""What unpacks to this much takes some milliseconds: so long an event loop may be held up."""


class CorruptPayload(ValueError):
    """The bytes are not what their codec writes."""


class UnknownCodec(ValueError):
    """The number belongs to no codec that this version knows."""

    def __init__(self, number: int) -> None:
        known = ", ".join(f"{each} {name}" for each, name in enumerate(NAMES))
        super().__init__(
            f"compression codec {number} is unknown to this version, which reads {known}"
        )


class Unpacked(NamedTuple):
    """What was unpacked."""

    data: bytes
    is_whole: bool
    """False where the limit was reached: ``data`` is the beginning then."""
