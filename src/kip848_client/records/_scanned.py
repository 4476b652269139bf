"""One record batch and its columns, read by our own extension, ``_scan``, with its C files in the
folder ``_extension``.

The extension writes keys and values in Arrow's layout: all keys one after the other, all values,
and where each ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kip848_client.core.fetch._model import BATCH_HEADER_BYTES, BatchRef, Cursor
from kip848_client.records._arrow import header_type, pyarrow, timestamp_type
from kip848_client.records._columns import ArrowColumns
from kip848_client.records._list_columns import ListColumns
from kip848_client.records._payload import Payload
from kip848_client.records._record import Decoding, Headers, RawRecord, Record
from kip848_client.records._scan import EDITION, Batch, Columns
from kip848_client.records._unreadable import damaged, not_deserialized, odd, too_large
from kip848_client.runtime.net._codec import corrupt

if TYPE_CHECKING:
    from kip848_client.records._scan import Buffers

__all__ = ["ScannedBatch", "ScannedColumns", "scanned"]

if EDITION != 4:
    raise ImportError(f"the extension is edition {EDITION}, not 4: install the package again")

_COLUMN_BYTES_MAX: Final = 1 << 30
"""The extension's limit for the size of columns."""
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
        nulls, mask, microseconds = self.microseconds()
        times = [None if mask is None else pa.py_buffer(mask), pa.py_buffer(microseconds)]
        return (
            _array(pa.binary(), self.key_buffers()),
            _array(pa.binary(), self.value_buffers()),
            pa.Array.from_buffers(pa.int64(), count, [None, _read_only(self.offsets)]),
            pa.Array.from_buffers(timestamp_type(), count, times, nulls),
            self._headers() if self.header_count else None,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as lists, because another process may lack the extension."""
        return copy, (ListColumns.of(self),)

    def _headers(self) -> Any:
        pa = pyarrow()
        names = _array(pa.string(), self.header_name_buffers())
        contents = _array(pa.binary(), self.header_value_buffers())
        pairs = pa.StructArray.from_arrays([names, contents], fields=list(header_type().value_type))
        buffers = [pa.py_buffer(self.rows_with_headers()), _read_only(self.header_ends)]
        return pa.Array.from_buffers(header_type(), len(self), buffers, children=[pairs])


class ScannedBatch(Batch):
    """See ``OpenBatch``: iterating is the extension's."""

    __slots__ = ("expected_bytes",)

    expected_bytes: int
    """The size of the records from here to the end of the slice, as far as is known."""

    def fill(self, parts: list[Any], limit: int) -> int:
        """See ``OpenBatch``."""
        columns: Any = parts[-1] if parts else None
        if type(columns) is not ScannedColumns or not self._fits(columns):
            columns = ScannedColumns(self._expected_bytes(limit))
        added = self.scan(columns, limit)
        if added and not (parts and parts[-1] is columns):
            parts.append(columns)
        return added

    @property
    def size_bytes(self) -> int:
        """See ``OpenBatch``."""
        return self.payload_bytes

    def _expected_bytes(self, limit: int) -> int:
        a_record = self.payload_bytes // max(self.left, 1) + 1
        return min(self.expected_bytes, limit * a_record)

    def _fits(self, columns: ScannedColumns) -> bool:
        return columns.size_bytes + self.payload_bytes <= _COLUMN_BYTES_MAX


def scanned(
    raw: bytes, batch: BatchRef, cursor: Cursor, decoding: Decoding, payload: Payload | None = None
) -> ScannedBatch:
    """Read a batch in the format of Kafka 0.11 and newer. ``payload``: its decompressed records.
    Raises ``OverflowError`` if it is too large for the extension."""
    data, start, end = raw, batch.start + BATCH_HEADER_BYTES, batch.end
    expected_bytes = len(raw) - start
    broken = partial(_broken, cursor, batch)
    if payload is not None:
        data, start, end = payload.data, payload.start, len(payload.data)
        expected_bytes = end
        if not payload.is_whole:
            limits = batch.next_offset, decoding.decompressed_bytes_max
            broken = partial(_cut, cursor, *limits)
    by_broker = bool(batch.attributes & _LOG_APPEND_TIME)
    opened = ScannedBatch(
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
        _refused,
        partial(_odd, cursor),
        broken,
    )
    opened.expected_bytes = expected_bytes
    return opened


def _refused(raw: RawRecord, cause: BaseException) -> None:
    raise not_deserialized(raw, cause) from cause


def _odd(cursor: Cursor, offset: int, why: str, data: bytes, raw: RawRecord | None) -> None:
    raise odd(cursor.tp, offset, why, data, raw)


def _broken(cursor: Cursor, batch: BatchRef, why: str) -> None:
    failure = damaged(cursor.tp, cursor.consumed, corrupt(why), batch.next_offset)
    raise failure from failure.__cause__


def _cut(cursor: Cursor, next_offset: int, bytes_max: int, _why: str) -> None:
    raise too_large(cursor.tp, cursor.consumed, next_offset, bytes_max)


def _array(kind: Any, buffers: Buffers) -> Any:
    pa = pyarrow()
    count, nulls, bitmap, ends, data = buffers
    if nulls == count:
        return pa.nulls(count, kind)
    mask = None if bitmap is None else pa.py_buffer(bitmap)
    return pa.Array.from_buffers(kind, count, [mask, _read_only(ends), _read_only(data)], nulls)


def _read_only(column: bytearray) -> Any:
    """Return a read-only Arrow view of our memory, which also marks where our own bytes end."""
    return pyarrow().py_buffer(memoryview(column).toreadonly())
