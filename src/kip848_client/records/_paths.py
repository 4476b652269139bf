"""Which of the two readers of a batch is available: our extension, or aiokafka's codec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client.core.extensions import ALLOWED
from kip848_client.core.fetch._model import BatchRef, Cursor
from kip848_client.records._columns import OpenBatch
from kip848_client.records._list_batch import ListBatch
from kip848_client.records._payload import Payload, uncompressed_header
from kip848_client.records._record import Decoding

__all__ = ["COMPILED", "PATHS", "open_batch", "wants_header"]

_Open = Callable[[bytes, BatchRef, Cursor, Decoding, Payload | None], OpenBatch]

PATHS: Final[dict[bool, _Open]] = {False: ListBatch}
"""Readers, by whether they are compiled."""
if ALLOWED:
    try:
        from kip848_client.records._scanned import scanned
    except ImportError:
        pass  # it was installed where there was no compiler
    else:
        PATHS[True] = scanned

COMPILED: Final = True in PATHS
"""Whether our own extension reads records. Without it everything works, columns more slowly."""


def open_batch(
    raw: bytes, batch: BatchRef, cursor: Cursor, decoding: Decoding, payload: Payload | None = None
) -> OpenBatch:
    """Start to read a batch at the cursor. ``payload``: its unpacked records. Raises any error of
    the codec for a damaged header."""
    if batch.magic >= 2 and decoding.compiled in PATHS:
        try:
            return PATHS[decoding.compiled](raw, batch, cursor, decoding, payload)
        except OverflowError:  # half a gigabyte in one batch
            if payload is not None:
                header = uncompressed_header(raw, batch)
                payload = payload._replace(data=header + payload.data, start=len(header))
    return ListBatch(raw, batch, cursor, decoding, payload)


def wants_header(decoding: Decoding) -> bool:
    """Whether the payloads of such batches start with the header of the batch."""
    return PATHS.get(decoding.compiled, ListBatch) is ListBatch
