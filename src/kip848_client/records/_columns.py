"""Columns: what a view holds, and how a reader fills it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kip848_client.records._record import Headers, Record

__all__ = ["ArrowColumns", "Columns", "Gathered", "OpenBatch"]

_BYTES_MAX: Final = 64 << 20
_ROWS_MAX: Final = 1 << 23
"""Number of topic names, of at most 249 letters, that fit into one Arrow column (2 GB)."""

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
    and continues where the previous one stopped."""

    def __iter__(self) -> Iterator[Record[Any, Any]]:
        """Iterate over records. An iterator that has raised is exhausted: ask for another one,
        which begins with the unreadable record."""
        ...

    def fill(self, parts: list[Any], limit: int) -> int:
        """Put at most ``limit`` records into the last of ``parts``, or into a new one; returns the
        number, 0 at the end. ``RecordsDamaged`` is raised only if no record precedes it."""
        ...

    @property
    def size_bytes(self) -> int:
        """The uncompressed size of its records, as far as is known."""
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
    """The timestamp type of all records, see ``Record.timestamp_type``; -1 while there are none."""
    size_bytes: int = 0
    stopped: bool = False
    """Whether the next record is unreadable, or has another timestamp type."""

    def __post_init__(self) -> None:
        self.records_max = min(self.records_max, _ROWS_MAX)

    def __len__(self) -> int:
        return self.rows

    @property
    def full(self) -> bool:
        """Whether nothing more may be added: the rest is for the next view."""
        return self.stopped or self.size_bytes >= self.bytes_max or self.rows >= self.records_max
