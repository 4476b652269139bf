"""Columns: what a view holds, and how a reader fills it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kip848_client.records._record import Headers, Record

__all__ = ["ArrowColumns", "Columns", "Gathered", "OpenBatch"]

_BYTES_MAX: Final = 64 << 20
_ROWS_MAX: Final = 1 << 23
"""So many names of topics, of 249 letters at most, fit into one column of Arrow's (2 GB)."""

ArrowColumns = tuple[Any, Any, Any, Any, Any]
"""pyarrow arrays: key, value, offset, timestamp, headers (``None``: no record has
any)."""


class Columns(Protocol):
    """A run of records of one partition."""

    def __len__(self) -> int: ...

    def all_offsets(self) -> Sequence[int]: ...

    def all_timestamps(self) -> Sequence[int]: ...

    def all_keys(self) -> Sequence[bytes | None]: ...

    def all_values(self) -> Sequence[bytes | None]: ...

    def all_headers(self) -> Sequence[Headers]: ...

    def arrow(self) -> ArrowColumns: ...


class OpenBatch(Protocol):
    """A batch that is being read, from the cursor on. Each way of taking records moves the cursor,
    and goes on where the one before has stopped."""

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        """Records one by one. An iterator that has raised is over: ask for another one, which
        begins with the record that could not be read."""
        ...

    def fill(self, parts: list[Any], limit: int) -> int:
        """Put at most ``limit`` records into the last of ``parts``, or into a new one; returns how
        many, none at the end. ``RecordsDamaged`` is raised only when nothing comes before it."""
        ...

    @property
    def size_bytes(self) -> int:
        """How much its records take, not compressed, as far as is known."""
        ...


@dataclass(slots=True)
class Gathered:
    """Records of one partition on their way into a ``RecordBatchView``."""

    records_max: int = _ROWS_MAX
    bytes_max: int = _BYTES_MAX
    """A small batch may unpack to a thousand times its size. Exceeded by at most one batch."""
    parts: list[Columns] = field(default_factory=list)
    rows: int = 0
    next_offset: int = -1
    """The position after them."""
    timestamp_type: int = -1
    """One for all, see ``Record.timestamp_type``; -1 while there are none."""
    size_bytes: int = 0
    stopped: bool = False
    """What follows cannot be read, or has another type of timestamps."""

    def __post_init__(self) -> None:
        self.records_max = min(self.records_max, _ROWS_MAX)

    def __len__(self) -> int:
        return self.rows

    @property
    def full(self) -> bool:
        """Whether nothing more may be added: the rest is for the next view."""
        return self.stopped or self.size_bytes >= self.bytes_max or self.rows >= self.records_max
