"""How long nothing is added to a transaction, because the markers of the one before are being
written.

A coordinator answers EndTxn before the markers are in the partitions, and refuses until they are
whatever is added to the next transaction (CONCURRENT_TRANSACTIONS). With transactions V2 that
happens between brokers, and a Produce takes 20 ms longer without a word
(``add.partitions.to.txn.retry.backoff.ms``). So the first addition waits a little. Markers
take their time, depending on the cluster and its load: the pause is learnt from how long first
additions take.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PAUSE_MS", "Markers"]

PAUSE_MS: Final = 3
"""At first, and at least: of an idle broker on the same machine one in three needs more than 2."""
_PAUSE_MAX_MS: Final = 10
_BROKER_PAUSE_MS: Final = 20
"""``add.partitions.to.txn.retry.backoff.ms``: what comes too early takes so much longer."""
_WINDOW: Final = 16
"""Transactions. If none of so many was too early, less may do."""
_EARLY_MAX: Final = 2
"""Of them: a pause that is longer by 1 ms costs less than so many that come too early."""


class Markers:
    """The pause after the end of each transaction."""

    def __init__(self) -> None:
        self.pause_ms = PAUSE_MS
        self.until_ms = 0
        """Nothing is added before."""
        self._usual_ms = 0
        self._first_ms: int | None = None
        self._seen = self._early = 0
        """In this window."""

    def ended(self, now_ms: int, took_ms: int) -> None:
        """A transaction has ended; the coordinator took so long to write that down."""
        self.until_ms = now_ms + self.pause_ms
        self._usual_ms = took_ms
        self._first_ms = None

    def sent_first(self, now_ms: int) -> None:
        """The first addition of a transaction is on its way."""
        self._first_ms = now_ms

    def answered_first(self, now_ms: int) -> None:
        """It has an answer."""
        sent_ms = self._first_ms
        if sent_ms is None:
            return
        if now_ms - sent_ms >= _BROKER_PAUSE_MS - 1 + self._usual_ms:
            self.was_early()
        elif sent_ms <= self.until_ms + 1:  # whoever comes later tells nothing of the pause
            self._count(early=False)
        self._first_ms = None

    def lost_first(self) -> None:
        """It has none, and will have none."""
        self._first_ms = None

    def was_early(self) -> None:
        """It came while markers were being written. That counts once a transaction."""
        if self._first_ms is not None:
            self._first_ms = None
            self._count(early=True)

    def _count(self, *, early: bool) -> None:
        self._seen += 1
        self._early += early
        change_ms = 0
        if self._early >= _EARLY_MAX:
            change_ms = 1
        elif self._seen < _WINDOW:
            return
        elif not self._early:
            change_ms = -1
        self._seen = self._early = 0
        self.pause_ms = min(max(self.pause_ms + change_ms, PAUSE_MS), _PAUSE_MAX_MS)
