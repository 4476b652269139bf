"""Which of the two ways to read a batch is there: our extension, or aiokafka's codec."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from kip848_client.fetching._model import BatchRef, Cursor
from kip848_client.records._columns import OpenBatch
from kip848_client.records._list_batch import ListBatch
from kip848_client.records._record import Decoding

__all__ = ["COMPILED", "PATHS", "open_batch"]

_Open = Callable[[bytes, BatchRef, Cursor, Decoding], OpenBatch]

PATHS: Final[dict[bool, _Open]] = {False: ListBatch}
"""By whether it is compiled."""
if not os.environ.get("KIP848_NO_EXTENSIONS"):
    try:
        from kip848_client.records._scanned import scanned
    except ImportError:
        pass  # it was installed where there was no compiler
    else:
        PATHS[True] = scanned

COMPILED: Final = True in PATHS
"""Whether our own extension reads records. Without it everything works, columns more slowly."""


def open_batch(raw: bytes, batch: BatchRef, cursor: Cursor, decoding: Decoding) -> OpenBatch:
    """Begin to read a batch at the cursor. Raises whatever the codec raises for bytes that it
    cannot unpack."""
    if batch.magic >= 2 and decoding.compiled in PATHS:
        try:
            return PATHS[decoding.compiled](raw, batch, cursor, decoding)
        except OverflowError:
            pass  # half a gigabyte in one batch
    return ListBatch(raw, batch, cursor, decoding)
