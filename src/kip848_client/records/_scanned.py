"""One record batch and columns of it, read by our own extension, ``_scan.c``.

Columns are no copies: they are positions in the bytes that the broker sent (or, where batches were
compressed, in what they unpack to). Arrow gets them as one array of bytes over all of it, of which
a key, what is between key and value, the value, and what is between this and the next record are
four neighbours; every fourth of them is the column of keys, or of values.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, Final

from kip848_client._aiokafka._codec import corrupt, unpacked
from kip848_client.fetching._model import BATCH_HEADER_BYTES, BatchRef, Cursor
from kip848_client.records._arrow import header_type, pyarrow
from kip848_client.records._columns import ArrowColumns
from kip848_client.records._record import Decoding, Headers, Record
from kip848_client.records._scan import EDITION, Batch, Columns
from kip848_client.records._unreadable import damaged, not_deserialized

__all__ = ["ScannedBatch", "ScannedColumns", "scanned"]

if EDITION != 1:
    raise ImportError(f"the extension is edition {EDITION}, not 1: install the package again")

DATA_BYTES_MAX: Final = 1 << 29
"""The extension's limit for what columns look at."""
_CODEC: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08


class ScannedColumns(Columns):
    """See ``Columns`` in ``_columns``."""

    __slots__ = ()

    def all_offsets(self) -> Sequence[int]:
        """See ``Columns``."""
        return memoryview(self.offsets)[: 8 * len(self)].cast("q").tolist()

    def all_timestamps(self) -> Sequence[int]:
        """See ``Columns``."""
        return memoryview(self.timestamps)[: 8 * len(self)].cast("q").tolist()

    def all_keys(self) -> Sequence[bytes | None]:
        """See ``Columns``."""
        return self.keys()

    def all_values(self) -> Sequence[bytes | None]:
        """See ``Columns``."""
        return self.values()

    def all_headers(self) -> Sequence[Headers]:
        """See ``Columns``."""
        return self.headers()

    def arrow(self) -> ArrowColumns:
        """See ``Columns``."""
        pa = pyarrow()
        count = len(self)
        data = pa.py_buffer(self.data)
        nulls = self.validity() if self.null_keys or self.null_values else None
        both = _slots(count, nulls, self.slots, data)
        all_null = partial(pa.nulls, count, pa.binary())
        return (
            all_null() if self.null_keys == count else both.take(_every_fourth(0, count)),
            all_null() if self.null_values == count else both.take(_every_fourth(2, count)),
            pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(self.offsets)]),
            pa.Array.from_buffers(pa.int64(), count, [None, pa.py_buffer(self.timestamps)]),
            self._headers(data) if self.header_count else None,
        )

    def _headers(self, data: Any) -> Any:
        pa = pyarrow()
        count = self.header_count
        nulls = self.header_validity() if self.null_headers else None
        both = _slots(count, nulls, self.header_slots, data)
        names = both.take(_every_fourth(0, count)).view(pa.string())  # looked at by the scan
        contents = both.take(_every_fourth(2, count))
        pairs = pa.StructArray.from_arrays([names, contents], fields=list(header_type().value_type))
        buffers = [pa.py_buffer(self.rows_with_headers()), pa.py_buffer(self.header_ends)]
        return pa.Array.from_buffers(header_type(), len(self), buffers, children=[pairs])


class ScannedBatch(Batch):
    """See ``OpenBatch``: iterating is the extension's."""

    __slots__ = ()

    def fill(self, parts: list[Any], limit: int) -> int:
        """See ``OpenBatch``."""
        columns: Any = parts[-1] if parts else None
        if type(columns) is not ScannedColumns or not self._fits(columns):
            columns = ScannedColumns(self._own_data())
        added = self.scan(columns, limit)
        if added and not (parts and parts[-1] is columns):
            parts.append(columns)
        return added

    @property
    def size_bytes(self) -> int:
        """See ``OpenBatch``."""
        return len(self.data)

    def _own_data(self) -> bytes | None:
        return self.data

    def _fits(self, columns: ScannedColumns) -> bool:
        return columns.data is self.data


class UnpackedBatch(ScannedBatch):
    """A batch that was compressed. Columns of several lie over one piece of memory: Arrow's work is
    the same for a batch of ten records as for a slice of thousands."""

    __slots__ = ()

    def _own_data(self) -> bytes | None:
        return None

    def _fits(self, columns: ScannedColumns) -> bool:
        return columns.joined and len(columns.data) + len(self.data) <= DATA_BYTES_MAX


def scanned(raw: bytes, batch: BatchRef, cursor: Cursor, decoding: Decoding) -> ScannedBatch:
    """A batch in the format of Kafka 0.11 and newer. Raises ``OverflowError`` for one that is too
    large for the extension, and whatever the codec raises for bytes that it cannot unpack."""
    data, start, end, kind = raw, batch.start + BATCH_HEADER_BYTES, batch.end, ScannedBatch
    if batch.attributes & _CODEC:
        data, kind = unpacked(raw[start:end], batch.attributes), UnpackedBatch
        start, end = 0, len(data)
    by_broker = bool(batch.attributes & _LOG_APPEND_TIME)
    return kind(
        data,
        start,
        end,
        batch.records,
        batch.base_offset,
        batch.next_offset,
        batch.max_timestamp if by_broker else batch.base_timestamp,
        by_broker,
        cursor.consumed,
        cursor,
        batch.leader_epoch,
        *cursor.tp,
        Record,
        decoding.key_deserializer,
        decoding.value_deserializer,
        partial(_refused, cursor),
        partial(_broken, cursor),
    )


def _refused(cursor: Cursor, offset: int, cause: Exception) -> None:
    failure = not_deserialized(cursor.tp, offset, cause)
    raise failure from cause


def _broken(cursor: Cursor, why: str) -> None:
    failure = damaged(cursor.tp, cursor.consumed, corrupt(why))
    raise failure from failure.__cause__


def _slots(count: int, nulls: bytes | None, ends: bytearray, data: Any) -> Any:
    pa = pyarrow()
    mask = None if nulls is None else pa.py_buffer(nulls)
    return pa.Array.from_buffers(pa.binary(), 4 * count - 1, [mask, pa.py_buffer(ends), data])


def _every_fourth(first: int, count: int) -> Any:
    return _many_fourths(first, 1 << (count - 1).bit_length()).slice(0, count)


@lru_cache(maxsize=32)
def _many_fourths(first: int, count: int) -> Any:
    pa = pyarrow()
    return pa.array(range(first, 4 * count, 4), pa.int32())
