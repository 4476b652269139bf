"""Whether the markers of the transaction before are written, as its coordinator tells.

A coordinator answers EndTxn before the markers are in the partitions, and refuses until they are
whatever is added to the next transaction (CONCURRENT_TRANSACTIONS). With transactions V2 that
happens between brokers, and a Produce takes 20 ms longer without a word
(``add.partitions.to.txn.retry.backoff.ms``). So a transaction that begins soon after another one
asks (DescribeTransactions; who may write to a transactional id may describe it), and adds nothing
before it hears that the one before is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.error_codes import ErrorCode

__all__ = ["Markers"]

_SOON_MS: Final = 20
"""What comes too early takes so much longer: whoever begins later does not ask."""
_LIMIT_MS: Final = 100
"""Nobody waits for longer. A broker that cannot write its markers says so when it is written to."""
_UNTOLD_MS: Final = 3
"""So long we wait where coordinators do not tell. It mostly is enough."""
_BEING_WRITTEN: Final = frozenset({"PrepareCommit", "PrepareAbort"})


class Markers:
    """Of one transactional id."""

    def __init__(self, transactional_id: str, emit: Callable[[do.Command], None]) -> None:
        self._id = transactional_id
        self._emit = emit
        self._node = -1
        self._ended_ms = 0
        self._asked_ms = 0
        self._ask_ms = 0
        self._number = 0
        self._is_asked = False
        self._is_begun = False
        """A transaction after the one that has ended."""
        self._is_untold = False
        """Coordinators do not tell us."""
        self.stale = 0
        """Answers that nobody waited for."""
        self.are_awaited = False
        """Nothing is added before they are written."""

    def ended(self, now_ms: int, node: int) -> None:
        """This coordinator has said that a transaction is to be committed or aborted."""
        self._node = node
        self._ended_ms = self._ask_ms = now_ms
        self._is_asked = self._is_begun = False
        self.are_awaited = True

    def settle(self, now_ms: int, *, is_begun: bool) -> None:
        """Ask what is due; ``is_begun``: the next transaction is."""
        if not self.are_awaited or not is_begun:
            return
        late_ms = now_ms - self._ended_ms
        if late_ms >= self._limit_ms or (not self._is_begun and late_ms >= _SOON_MS):
            self.are_awaited = False
            return
        self._is_begun = True
        if not self._is_asked and not self._is_untold and self._ask_ms <= now_ms:
            self._is_asked = True
            self._asked_ms = now_ms
            self._number += 1
            self._emit(do.DescribeTransaction(self._number, self._node, self._id))

    def take(
        self, now_ms: int, event: ev.TransactionDescribed | ev.TransactionNotDescribed
    ) -> None:
        """A question ended. One that brings no answer is not asked again: it may be early, then."""
        if not self._is_asked or event.number != self._number:
            self.stale += 1
            return
        self._is_asked = False
        if isinstance(event, ev.TransactionNotDescribed):
            self._is_untold = event.for_good
            self.are_awaited = self.are_awaited and event.for_good
        elif event.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
            self._is_untold = True
        elif event.error_code or event.state not in _BEING_WRITTEN:
            self.are_awaited = False
        else:  # what takes its time is asked for less and less often
            self._ask_ms = self._asked_ms + max(1, (now_ms - self._ended_ms) // 4)

    @property
    def _limit_ms(self) -> int:
        return _UNTOLD_MS if self._is_untold else _LIMIT_MS

    def due_ms(self) -> int | None:
        """When ``settle`` has something to do without another event."""
        if not self.are_awaited or not self._is_begun:
            return None
        limit_ms = self._ended_ms + self._limit_ms
        return limit_ms if self._is_asked or self._is_untold else min(self._ask_ms, limit_ms)
