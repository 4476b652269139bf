"""Transactions V2: what is being added to the transaction now, and by which broker.

The first write in a transaction adds its target: the broker that receives the Produce, or the group
coordinator that receives the TxnOffsetCommit, asks the transaction coordinator to add it. That
coordinator writes one addition at a time and refuses others meanwhile (CONCURRENT_TRANSACTIONS). A
broker then delays the Produce by ``add.partitions.to.txn.retry.backoff.ms``, 20 ms, and a group
coordinator refuses the offsets.

So additions are made one after the other. Several to one broker may be in flight together, because
it handles the requests of a connection in turn. The wait for one is limited, because the answer to
a Produce also waits for replicas, which the addition does not.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.produce._model import TransactionVersion
from kip848_client.core.types import TopicPartition

__all__ = ["ADDING_MS", "GROUP", "PartitionAdditions"]

ADDING_MS: Final = 10
"""An addition not answered within this time has most likely succeeded."""
GROUP: Final = -1
"""Stands for the group coordinator in place of a broker."""

_Added = TopicPartition | str
"""A partition, or a group id."""


class PartitionAdditions:
    """The additions of one transaction after another. Call ``settle`` before any query."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._by = GROUP
        self._until_ms = 0
        self._adding: set[_Added] = set()
        self._added: set[_Added] = set()
        self._is_awaited = False
        self._is_by_writing = False

    def begin(self, version: TransactionVersion) -> None:
        """Begin a new transaction, which is empty. With V1, writing adds nothing."""
        self._is_by_writing = version is TransactionVersion.V2
        self._adding.clear()
        self._added.clear()
        self._is_awaited = False

    def is_free(self, what: _Added, by: int) -> bool:
        """Whether this may be written to now. If not, ``due_ms`` is when to ask again."""
        if not self._adding or self._by == by or what in self._added or what in self._adding:
            return True
        if self._until_ms <= self._now_ms:
            return True
        self._is_awaited = True
        return False

    def sent(self, what: _Added, by: int) -> None:
        """It is written to, which adds it unless it was added before."""
        if not self._is_by_writing or what in self._added or what in self._adding:
            return
        if self._by != by:
            self._added |= self._adding
            self._adding.clear()
        self._by = by
        self._until_ms = self._now_ms + ADDING_MS
        self._adding.add(what)

    def ended(self, what: _Added) -> None:
        """It was answered, or will not be answered."""
        if what in self._adding:
            self._adding.discard(what)
            self._added.add(what)

    def was_refused(self, what: _Added) -> None:
        """It was added too early (CONCURRENT_TRANSACTIONS) and will be added again."""
        self._adding.discard(what)
        self._added.discard(what)

    def due_ms(self) -> int | None:
        """When a caller that was refused may retry."""
        return self._until_ms if self._is_awaited else None

    def settle(self, now_ms: int) -> None:
        """Set the time. Callers that have waited long enough ask again."""
        self._now_ms = now_ms
        if not self._adding or self._until_ms <= now_ms:
            self._is_awaited = False
