"""Waits until the markers of the previous transaction are written.

A coordinator answers EndTxn before the markers are in the partitions. Until they are, it refuses
any addition to the next transaction (CONCURRENT_TRANSACTIONS). With transactions V2 the additions
happen between brokers, so a Produce silently takes 20 ms longer
(``add.partitions.to.txn.retry.backoff.ms``). So a transaction that begins soon after another one
sends DescribeTransactions (a principal that may write to a transactional id may also describe it),
and adds nothing until the coordinator reports that the previous one is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.error_codes import ErrorCode

__all__ = ["Markers"]

_SOON_MS: Final = 20
"""The delay of an addition that comes too early. A transaction that begins later than this does not
ask."""
_LIMIT_MS: Final = 100
"""The longest wait. A broker that cannot write its markers reports that when it is written to."""
_UNTOLD_MS: Final = 3
"""How long to wait if coordinators cannot be asked. Mostly enough."""
_BEING_WRITTEN: Final = frozenset({"PrepareCommit", "PrepareAbort"})


class Markers:
    """The markers of one transactional id."""

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
        """The next transaction has begun."""
        self._is_untold = False
        """Coordinators do not answer the question for this client."""
        self.stale = 0
        """Answers that were no longer expected."""
        self.are_awaited = False
        """Nothing may be added before the markers are written."""

    def ended(self, now_ms: int, node: int) -> None:
        """This coordinator has acknowledged a commit or abort."""
        self._node = node
        self._ended_ms = self._ask_ms = now_ms
        self._is_asked = self._is_begun = False
        self.are_awaited = True

    def settle(self, now_ms: int, *, is_begun: bool) -> None:
        """Ask if it is due. ``is_begun``: whether the next transaction has begun."""
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
        """A question ended. If it brought no answer it is not repeated; additions may then come too
        early."""
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
        else:  # ask less and less often while it takes long
            self._ask_ms = self._asked_ms + max(1, (now_ms - self._ended_ms) // 4)

    @property
    def _limit_ms(self) -> int:
        return _UNTOLD_MS if self._is_untold else _LIMIT_MS

    def due_ms(self) -> int | None:
        """When ``settle`` has work without another event."""
        if not self.are_awaited or not self._is_begun:
            return None
        limit_ms = self._ended_ms + self._limit_ms
        return limit_ms if self._is_asked or self._is_untold else min(self._ask_ms, limit_ms)
