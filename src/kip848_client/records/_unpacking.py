"""Unpacks the compressed batches of a slice.

A small batch is unpacked when it is read. A large one would block the event loop: reading it raises
``NotUnpacked``, whose ``work`` has to run in a thread. Then the batch is read again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kip848_client.core.compression import CODEC_MASK, unpack, unpack_small
from kip848_client.core.fetch._model import BATCH_HEADER_BYTES, BatchRef
from kip848_client.records._legacy import wrapped
from kip848_client.records._payload import Payload, uncompressed_header

__all__ = ["NotUnpacked", "Unpacking"]


class NotUnpacked(Exception):
    """A large batch comes next: call ``work`` in a thread, then ask again. It raises nothing."""

    def __init__(self, work: Callable[[], None]) -> None:
        super().__init__(work)
        self.work = work


class Unpacking:
    """Unpacks the batches of one slice. At most one result of ``work`` is kept, until its batch is
    read."""

    __slots__ = ("_batch", "_bytes_max", "_outcome", "_raw", "_with_header")

    def __init__(self, raw: bytes, bytes_max: int, *, with_header: bool) -> None:
        self._raw = raw
        self._bytes_max = bytes_max
        self._with_header = with_header
        self._batch: BatchRef | None = None
        self._outcome: Payload | Exception | None = None

    def payload(self, batch: BatchRef) -> Payload:
        """The records of this compressed batch. Raises ``NotUnpacked``, and the errors of
        ``kip848_client.core.compression``."""
        number = batch.attributes & CODEC_MASK
        if batch is self._batch:
            outcome, self._batch, self._outcome = self._outcome, None, None
            if isinstance(outcome, Exception):
                raise outcome
            if outcome is not None:
                return outcome
        magic, raw = batch.magic, self._raw
        if magic < 2:
            packed = wrapped(raw[batch.start : batch.end])
        else:
            packed = raw[batch.start + BATCH_HEADER_BYTES : batch.end]
        data = unpack_small(number, packed, self._bytes_max, magic)
        if data is None:
            raise NotUnpacked(partial(self._work, batch, number, packed))
        if not self._with_header:
            return Payload(data, 0, True)
        head = self._head(batch)
        return Payload(head + data, len(head), True)

    def _work(self, batch: BatchRef, number: int, packed: bytes) -> None:
        try:
            head = self._head(batch)
            data, is_whole = unpack(number, packed, self._bytes_max, magic=batch.magic, head=head)
            outcome: Payload | Exception = Payload(data, len(head), is_whole)
        except Exception as err:  # noqa: BLE001 - raised when the batch is read
            outcome = err
        self._batch, self._outcome = batch, outcome

    def _head(self, batch: BatchRef) -> bytes:
        if not self._with_header or batch.magic < 2:
            return b""
        return uncompressed_header(self._raw, batch)
