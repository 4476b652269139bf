"""Columns of a run of records as Python lists: what a view has without our extension."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kip848_client._aiokafka._codec import RawRecord
from kip848_client.records._arrow import header_type, in_microseconds, pyarrow
from kip848_client.records._columns import ArrowColumns
from kip848_client.records._record import Headers

__all__ = ["ListColumns"]


class ListColumns:
    """Offsets, timestamps, keys, values, a list each, and headers by row."""

    __slots__ = ("headers", "keys", "offsets", "timestamps", "values")

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.timestamps: list[int] = []
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.headers: dict[int, Headers] = {}
        """Of those rows that have some."""

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, raws: Iterable[RawRecord], offset: int) -> None:
        """Add records, of which the first has this offset, and the next ones those that follow."""
        times, keys, values = self.timestamps.append, self.keys.append, self.values.append
        try:
            for raw in raws:
                if raw.headers:
                    self.headers[len(self.keys)] = tuple(raw.headers)
                times(raw.timestamp)
                keys(raw.key)
                values(raw.value)
        finally:  # also when bytes are damaged: what was before them is there
            self.offsets.extend(range(offset, offset + len(self.keys) - len(self.offsets)))

    def all_offsets(self) -> Sequence[int]:
        """See ``Columns``."""
        return self.offsets

    def all_timestamps(self) -> Sequence[int]:
        """See ``Columns``."""
        return self.timestamps

    def all_keys(self) -> Sequence[bytes | None]:
        """See ``Columns``."""
        return self.keys

    def all_values(self) -> Sequence[bytes | None]:
        """See ``Columns``."""
        return self.values

    def all_headers(self) -> Sequence[Headers]:
        """See ``Columns``."""
        return [self.headers.get(row, ()) for row in range(len(self))]

    def arrow(self) -> ArrowColumns:
        """See ``Columns``."""
        pa = pyarrow()
        headers = None
        if self.headers:
            rows = [self.headers.get(row) for row in range(len(self))]
            headers = pa.array(rows, header_type())
        return (
            pa.array(self.keys, pa.binary()),
            pa.array(self.values, pa.binary()),
            pa.array(self.offsets, pa.int64()),
            in_microseconds(pa.array(self.timestamps, pa.int64())),
            headers,
        )
