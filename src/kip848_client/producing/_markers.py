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
"""At first: of an idle broker on the same machine one in twenty needs more."""
_PAUSE_MIN_MS: Final = 2
_PAUSE_MAX_MS: Final = 10
_BROKER_PAUSE_MS: Final = 20
"""``add.partitions.to.txn.retry.backoff.ms``: what comes too early takes so much longer."""
_WINDOW: Final = 16
"""Transactions."""
_EARLY_MAX: Final = 2
"""Of them: a pause that is longer by 1 ms costs less than so many that come too early."""
_PATIENCE_MAX: Final = 8 * _WINDOW


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
        self._in_time = 0
        """So many transactions in a row, with this pause, were not too early."""
        self._patience = _WINDOW
        """After so many of them less is tried: the longer, the more often that was too little."""
        self._tried: int | None = None
        """Transactions since less was tried, until it has proved to be enough."""

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
        self._in_time = 0 if early else self._in_time + 1
        if self._tried is not None:
            self._tried += 1
        if self._early >= _EARLY_MAX:
            self._lengthen()
        elif self._in_time >= self._patience:
            self._shorten()
        elif self._seen >= _WINDOW:
            self._seen = self._early = 0

    def _lengthen(self) -> None:
        if self._tried is not None and self._tried <= self._patience:
            self._patience = min(2 * self._patience, _PATIENCE_MAX)
        self._tried = None
        self._change(min(self.pause_ms + 1, _PAUSE_MAX_MS))

    def _shorten(self) -> None:
        if self._tried is not None:  # what was tried before this is enough
            self._patience = _WINDOW
        self._tried = 0
        self._change(max(self.pause_ms - 1, _PAUSE_MIN_MS))

    def _change(self, pause_ms: int) -> None:
        self.pause_ms = pause_ms
        self._seen = self._early = self._in_time = 0
