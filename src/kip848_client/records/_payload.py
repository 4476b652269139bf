"""The unpacked records of a compressed batch."""

from __future__ import annotations

from typing import Final, NamedTuple

from kip848_client.core.compression import CODEC_MASK
from kip848_client.core.fetch._model import BATCH_HEADER_BYTES, BatchRef

__all__ = ["Payload", "uncompressed_header"]

_ATTRIBUTES_AT: Final = 22
"""Their lower byte."""


class Payload(NamedTuple):
    """The records of a batch, unpacked."""

    data: bytes
    start: int
    """Where the records start: after ``uncompressed_header``, if the codec needs one."""
    is_whole: bool
    """False if ``max_decompressed_batch_bytes`` was reached before their end."""


def uncompressed_header(raw: bytes, batch: BatchRef) -> bytes:
    """The batch header for aiokafka's codec: without compression, because the payload is unpacked,
    and with offsets from 0, because Python caches small integers."""
    header = bytearray(raw[batch.start : batch.start + BATCH_HEADER_BYTES])
    header[:8] = bytes(8)
    header[_ATTRIBUTES_AT] &= ~CODEC_MASK
    return bytes(header)
