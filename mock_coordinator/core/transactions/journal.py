"""Where the records of a transaction coordinator go: the stand-in for ``__transaction_state``.

The topic is compacted, and what counts is the newest record of each transactional id. So that is
what is kept. Whoever wants to see every record as it is written (a log on disk, a test) listens.
"""

from __future__ import annotations

from collections.abc import Callable

from mock_coordinator.core.transactions.records import TransactionLog

__all__ = ["TransactionJournal"]


class TransactionJournal:
    """Compacted at every moment. ``listener`` is told the time and each record, in order."""

    def __init__(self) -> None:
        self._newest: dict[str, TransactionLog] = {}
        self.listener: Callable[[int, TransactionLog], None] | None = None

    @property
    def records(self) -> tuple[TransactionLog, ...]:
        """What a coordinator that takes over reads."""
        return tuple(self._newest.values())

    def append(self, now_ms: int, record: TransactionLog) -> None:
        """Write one record."""
        if record.value is None:
            self._newest.pop(record.transactional_id, None)
        else:
            self._newest[record.transactional_id] = record
        if self.listener is not None:
            self.listener(now_ms, record)
