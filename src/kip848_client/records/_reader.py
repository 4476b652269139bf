"""``SliceReader``: from a slice to records, one by one, in lists, or as columns.

Records are created on request: objects that are kept cost time in Python's garbage collector, in
proportion to everything else that is alive in the process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from crc32c import crc32c

from kip848_client.core.compression import CODEC_MASK
from kip848_client.core.fetch._model import BatchRef, Slice
from kip848_client.errors import RecordUnreadable
from kip848_client.records._columns import Gathered, OpenBatch
from kip848_client.records._legacy import legacy_checksum_is_right
from kip848_client.records._paths import open_batch, wants_header
from kip848_client.records._record import Decoding, Record
from kip848_client.records._unpacking import NotUnpacked, Unpacking
from kip848_client.records._unreadable import not_opened
from kip848_client.runtime.net._codec import corrupt

__all__ = ["SliceReader", "unpacking_of"]

_NOTHING: Final[Iterator[Any]] = iter(())
_CRC_AT: Final = 17
_AFTER_CRC: Final = 21
_TIMESTAMP_TYPE_BIT: Final = 3


class SliceReader:
    """Reads one slice, from its cursor on, and moves the cursor as it delivers records.

    Several ways of reading may be mixed. Each raises ``RecordUnreadable`` if a deserializer did or
    a record is invalid, one of ``STOPS`` if records cannot be read, or ``NotUnpacked``, but only if
    there is nothing to deliver before; then the cursor stays at that record, and the next call
    tries it again.
    """

    __slots__ = (
        "_batch",
        "_data_end",
        "_decoding",
        "_index",
        "_records",
        "_slice",
        "_unpacking",
    )

    def __init__(
        self, slice_: Slice, decoding: Decoding, unpacking: Unpacking | None = None
    ) -> None:
        """``unpacking`` is shared by readers of the same slice."""
        self._unpacking = unpacking
        self._slice = slice_
        self._decoding = decoding
        self._index = 0
        """Index of the current or next batch."""
        self._batch: OpenBatch | None = None
        self._records: Iterator[Record[Any, Any]] = _NOTHING
        data = (batch.next_offset for batch in reversed(slice_.batches) if self._matters(batch))
        self._data_end = next(data, slice_.first_offset)

    @property
    def done(self) -> bool:
        """Whether all records were delivered: ``finish`` the slice."""
        return self._slice.cursor.consumed >= self._data_end

    @property
    def current(self) -> Iterator[Record[Any, Any]]:
        """The rest of the current batch, for callers that cannot afford a call per record: empty
        before the first ``one`` and at the end of the batch. After it has raised, call ``resume``;
        then ``one`` raises the same."""
        return self._records

    def resume(self) -> None:
        """Create another iterator after one that has raised."""
        self._records = _NOTHING if self._batch is None else iter(self._batch)

    def one(self) -> Record[Any, Any] | None:
        """Return the next record; ``None`` if all were delivered."""
        try:
            record = next(self._records, None)
            while record is None:
                if not self._advance():
                    return None
                record = next(self._records, None)
        except BaseException:
            self.resume()
            raise
        return record

    def take(self, limit: int | None = None) -> list[Record[Any, Any]]:
        """Return at most ``limit`` records; fewer at the end, or before an unreadable one."""
        wanted = sys.maxsize if limit is None else limit
        cursor = self._slice.cursor
        start = cursor.consumed, cursor.consumed_epoch
        taken: list[Record[Any, Any]] = []
        try:
            while len(taken) < wanted:
                # what was appended before an iterator raises stays in the list
                before = len(taken)
                taken.extend(islice(self._records, wanted - before))
                if len(taken) == before and not self._advance():
                    break
        except (RecordUnreadable, NotUnpacked):
            self.resume()
            if not taken:
                raise
        except BaseException:  # a cancelled task or Ctrl-C, in a deserializer
            self.go_back(*start)
            raise
        if self.done:
            self._move(self._slice.next_offset, self._slice.last_epoch)
        return taken

    def fill(self, gathered: Gathered) -> None:
        """Add records, until there are no more or it is full. Added records count as delivered."""
        slice_ = self._slice
        start = slice_.cursor.consumed, slice_.cursor.consumed_epoch
        try:
            while not (gathered.full or self.done):
                if self._batch is None and not self._advance():
                    break
                self._fill_from(slice_.batches[self._index], gathered)
        except (RecordUnreadable, NotUnpacked):
            if not gathered.rows:  # a part may be empty: of a batch whose records were all taken
                raise
            gathered.stopped = True
        except BaseException:  # Ctrl-C, out of memory: the gathered records are not delivered
            self.go_back(*start)
            raise
        if self.done:
            self._move(slice_.next_offset, slice_.last_epoch)
        gathered.next_offset = slice_.cursor.consumed

    def _fill_from(self, batch: BatchRef, gathered: Gathered) -> None:
        """Add records of the open batch, and leave it if it is at its end."""
        assert self._batch is not None
        kind = batch.attributes >> _TIMESTAMP_TYPE_BIT & 1
        if gathered.timestamp_type not in (-1, kind):
            gathered.stopped = True
            return
        added = self._batch.fill(gathered.parts, gathered.records_max - gathered.rows)
        if added:
            gathered.timestamp_type = kind
            gathered.rows += added
        if not added or self._slice.cursor.consumed >= batch.next_offset:
            gathered.size_bytes += self._batch.size_bytes
            self._leave(batch)

    def _advance(self) -> bool:
        """Open the next batch that matters, and move the cursor past all before it."""
        cursor, batches = self._slice.cursor, self._slice.batches
        if self._batch is not None:
            self._leave(batches[self._index])
        while self._index < len(batches):
            batch = batches[self._index]
            if batch.next_offset > cursor.consumed and self._matters(batch):
                self._batch = self._opened(batch)
                self._records = iter(self._batch)
                return True
            self._leave(batch)
        return False

    def go_back(self, offset: int, epoch: int) -> None:
        """Restart at this offset: records taken from there on are not delivered."""
        self._batch, self._records, self._index = None, _NOTHING, 0
        self._slice.cursor.consumed, self._slice.cursor.consumed_epoch = offset, epoch

    def _leave(self, batch: BatchRef) -> None:
        self._batch, self._records = None, _NOTHING
        self._index += 1
        self._move(batch.next_offset, batch.leader_epoch)

    def _move(self, offset: int, epoch: int) -> None:
        cursor = self._slice.cursor
        if offset > cursor.consumed:
            cursor.consumed, cursor.consumed_epoch = offset, epoch

    def _matters(self, batch: BatchRef) -> bool:
        """Whether it has records to deliver, or is damaged. Its header shows that there is nothing
        to deliver (a marker, an aborted transaction, no records), but the header may be damaged."""
        if batch.records > 0 and not batch.skip:
            return True
        return self._decoding.check_crcs and not _crc_is_right(self._slice.raw, batch)

    def _opened(self, batch: BatchRef) -> OpenBatch:
        slice_ = self._slice
        try:
            if self._decoding.check_crcs:
                _check_crc(slice_.raw, batch)
            payload = None
            if batch.attributes & CODEC_MASK:
                unpacking = self._unpacking
                if unpacking is None:
                    unpacking = self._unpacking = unpacking_of(slice_, self._decoding)
                payload = unpacking.payload(batch)
            return open_batch(slice_.raw, batch, slice_.cursor, self._decoding, payload)
        except NotUnpacked:
            raise
        except Exception as err:  # noqa: BLE001 - damaged bytes may raise anything
            failure = not_opened(slice_.tp, slice_.cursor.consumed, batch.next_offset, err)
            raise failure from failure.__cause__


def unpacking_of(slice_: Slice, decoding: Decoding) -> Unpacking:
    """Build the object that decompresses the batches of a slice."""
    return Unpacking(
        slice_.raw, decoding.decompressed_bytes_max, with_header=wants_header(decoding)
    )


def _check_crc(raw: bytes, batch: BatchRef) -> None:
    if not _crc_is_right(raw, batch):
        raise corrupt(f"the checksum of the batch at offset {batch.base_offset} is wrong")


def _crc_is_right(raw: bytes, batch: BatchRef) -> bool:
    start, end = batch.start, batch.end
    if batch.magic < 2:
        return legacy_checksum_is_right(raw[start:end])
    said = int.from_bytes(raw[start + _CRC_AT : start + _AFTER_CRC])
    right: bool = crc32c(memoryview(raw)[start + _AFTER_CRC : end]) == said
    return right
