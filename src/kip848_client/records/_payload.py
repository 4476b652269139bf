"""The records of a compressed batch, when they were unpacked."""

from __future__ import annotations

from typing import Final, NamedTuple

from kip848_client.compression import CODEC_MASK
from kip848_client.fetching._model import BATCH_HEADER_BYTES, BatchRef

__all__ = ["Payload", "uncompressed_header"]

_ATTRIBUTES_AT: Final = 22
"""Their lower byte."""


class Payload(NamedTuple):
    """The records of a batch, unpacked."""

    data: bytes
    start: int
    """Where they begin: after ``uncompressed_header``, for the codec that wants one."""
    is_whole: bool
    """False where ``max_decompressed_batch_bytes`` was reached before their end."""


def uncompressed_header(raw: bytes, batch: BatchRef) -> bytes:
    """The header of a batch for aiokafka's codec: without compression, since what follows it is
    unpacked, and with offsets that begin with 0, for small numbers are objects that Python has."""
    header = bytearray(raw[batch.start : batch.start + BATCH_HEADER_BYTES])
    header[:8] = bytes(8)
    header[_ATTRIBUTES_AT] &= ~CODEC_MASK
    return bytes(header)
