"""Columns of a run of records as Python lists, for a view without our extension."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, groupby
from typing import Any

from kip848_client.records._arrow import counted, header_type, in_microseconds, in_one, pyarrow
from kip848_client.records._columns import ArrowColumns, Columns
from kip848_client.records._record import Headers
from kip848_client.runtime.net._codec import RawRecord

__all__ = ["ListColumns"]


class ListColumns:
    """Offsets, timestamps, keys, values, a list each, and headers by row."""

    __slots__ = ("_runs", "headers", "keys", "timestamps", "values")

    def __init__(self) -> None:
        self._runs: list[range] = []
        """The offsets; where one run ends, some are missing."""
        self.timestamps: list[int] = []
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.headers: dict[int, Headers] = {}
        """Headers by row, for rows that have any."""

    @classmethod
    def of(cls, other: Columns) -> ListColumns:
        """A copy of any columns."""
        made = cls()
        for _, run in groupby(enumerate(other.all_offsets()), lambda row: row[1] - row[0]):
            offsets = [offset for _, offset in run]
            made._runs.append(range(offsets[0], offsets[-1] + 1))
        made.timestamps += other.all_timestamps()
        made.keys += other.all_keys()
        made.values += other.all_values()
        made.headers |= {row: each for row, each in enumerate(other.all_headers()) if each}
        return made

    def __len__(self) -> int:
        return len(self.values)

    @property
    def next_offset(self) -> int:
        """After the last record; there must be one."""
        return self._runs[-1].stop

    def add(self, raw: RawRecord, offset: int) -> None:
        """Add one record after the previous ones."""
        if raw.headers:
            self.headers[len(self)] = tuple(raw.headers)
        timestamp = raw.timestamp
        self.timestamps.append(-1 if timestamp is None else timestamp)  # magic 0 has no timestamp
        self.keys.append(raw.key)
        self.values.append(raw.value)
        self.add_offsets(range(offset, offset + 1))

    def add_offsets(self, run: range) -> None:
        """Add the offsets of records whose other columns were added."""
        if not run:
            return
        if self._runs and self._runs[-1].stop == run.start:
            run = range(self._runs.pop().start, run.stop)
        self._runs.append(run)

    def cut(self) -> None:
        """Drop the columns of records whose offsets were not added."""
        rows = sum(map(len, self._runs))
        del self.timestamps[rows:], self.keys[rows:], self.values[rows:]
        for row in [row for row in self.headers if row >= rows]:
            del self.headers[row]

    def all_offsets(self) -> Sequence[int]:
        """See ``Columns``."""
        return list(chain.from_iterable(self._runs))

    def all_timestamps(self) -> Sequence[int]:
        """See ``Columns``."""
        return self.timestamps.copy()

    def all_keys(self) -> Sequence[bytes | None]:
        """See ``Columns``."""
        return self.keys.copy()

    def all_values(self) -> Sequence[bytes | None]:
        """See ``Columns``."""
        return self.values.copy()

    def all_headers(self) -> Sequence[Headers]:
        """See ``Columns``."""
        return [self.headers.get(row, ()) for row in range(len(self))]

    def arrow(self) -> ArrowColumns:
        """See ``Columns``."""
        pa = pyarrow()
        headers = None
        if self.headers:
            rows = [self.headers.get(row) for row in range(len(self))]
            headers = _column(rows, header_type())
        return (
            _column(self.keys, pa.binary()),
            _column(self.values, pa.binary()),
            self._arrow_offsets(),
            in_microseconds(self.timestamps),
            headers,
        )

    def _arrow_offsets(self) -> Any:
        if len(self._runs) == 1:
            return counted(self._runs[0])
        return pyarrow().array(self.all_offsets(), pyarrow().int64())


def _column(rows: Sequence[Any], kind: Any) -> Any:
    pa = pyarrow()
    made = pa.array(rows, kind)
    return in_one(made.chunks) if isinstance(made, pa.ChunkedArray) else made
