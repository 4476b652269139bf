"""With transactions V2: what is being added to the transaction at this moment, and by whom.

Whoever is written to for the first time in a transaction adds itself: the broker that gets the
Produce, or the group's coordinator that gets the TxnOffsetCommit, tells the coordinator of the
transaction. That coordinator writes down one addition at a time, and refuses what comes meanwhile
(CONCURRENT_TRANSACTIONS): then a broker lets the Produce wait for
``add.partitions.to.txn.retry.backoff.ms``, 20 ms, and a group's coordinator refuses the offsets.

So additions go one after the other. Those to one broker may be on their way together: it takes the
requests of a connection in turn. How long one is waited for has a limit, because an answer to
Produce waits for replicas, too, which the addition does not.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.produce._model import TransactionVersion
from kip848_client.core.types import TopicPartition

__all__ = ["ADDING_MS", "GROUP", "PartitionAdditions"]

ADDING_MS: Final = 10
"""An addition that is not answered by then has most likely come through."""
GROUP: Final = -1
"""In place of a broker: the coordinator of the group."""

_Added = TopicPartition | str
"""A partition, or a group by its name."""


class PartitionAdditions:
    """Of one transaction after the other. ``settle`` goes before whatever is asked."""

    def __init__(self) -> None:
        self._now_ms = 0
        self._by = GROUP
        self._until_ms = 0
        self._adding: set[_Added] = set()
        self._added: set[_Added] = set()
        self._is_awaited = False
        self._is_by_writing = False

    def begin(self, version: TransactionVersion) -> None:
        """A new transaction has nothing yet. With V1 nothing is added by being written to."""
        self._is_by_writing = version is TransactionVersion.V2
        self._adding.clear()
        self._added.clear()
        self._is_awaited = False

    def is_free(self, what: _Added, by: int) -> bool:
        """Whether this may be written to now. If not, ``due_ms`` tells when to ask again."""
        if not self._adding or self._by == by or what in self._added or what in self._adding:
            return True
        if self._until_ms <= self._now_ms:
            return True
        self._is_awaited = True
        return False

    def sent(self, what: _Added, by: int) -> None:
        """It is written to: that adds it, if it was not added before."""
        if not self._is_by_writing or what in self._added or what in self._adding:
            return
        if self._by != by:
            self._added |= self._adding
            self._adding.clear()
        self._by = by
        self._until_ms = self._now_ms + ADDING_MS
        self._adding.add(what)

    def ended(self, what: _Added) -> None:
        """There is an answer, or there will be none."""
        if what in self._adding:
            self._adding.discard(what)
            self._added.add(what)

    def was_refused(self, what: _Added) -> None:
        """It was added too early (CONCURRENT_TRANSACTIONS), and will be again."""
        self._adding.discard(what)
        self._added.discard(what)

    def due_ms(self) -> int | None:
        """When somebody who was told to wait need not any more."""
        return self._until_ms if self._is_awaited else None

    def settle(self, now_ms: int) -> None:
        """It is so late now: whoever waits long enough asks again."""
        self._now_ms = now_ms
        if not self._adding or self._until_ms <= now_ms:
            self._is_awaited = False
