"""Journals of group coordinators: each decision is appended as one batch, or not at all.

A coordinator writes to a ``Journal`` and does not read it while it runs; after a fail-over a new
coordinator is built from the journal (``GroupCoordinator.replay``). In a broker the journal is the
log of a partition of ``__consumer_offsets`` (``core.state.offsets_log``). A coordinator by itself
has a ``MemoryJournal``, which keeps every record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from mock_coordinator.core.groups.records.state_records import StateRecord

__all__ = ["BatchTooLargeError", "Journal", "MemoryJournal"]


class BatchTooLargeError(Exception):
    """A decision does not fit into one batch of the log. Nothing was written."""


class Journal(Protocol):
    """An append-only sequence of records, compacted or not."""

    @property
    def records(self) -> Sequence[StateRecord]:
        """What replaying would read, oldest first. It may have to be decoded: do not ask often."""
        ...

    def append(
        self, now_ms: int, records: Sequence[StateRecord], max_bytes: int | None = None
    ) -> None:
        """Write the records of one decision, in order; there is at least one.

        Raises ``BatchTooLargeError`` when they make a batch of more than ``max_bytes``. A journal
        that has no bytes takes anything.
        """
        ...


class MemoryJournal:
    """Keeps every record that was ever appended, as objects."""

    def __init__(self, records: Iterable[StateRecord] = ()) -> None:
        self.records: list[StateRecord] = list(records)

    def append(
        self, now_ms: int, records: Sequence[StateRecord], max_bytes: int | None = None
    ) -> None:
        """Keep the records; the time is not kept."""
        del now_ms, max_bytes
        self.records += records
