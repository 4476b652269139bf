"""Partitions that rest after an error, and those that stop until the user was told.

Rests grow with each failure in a row. They end on multiples of ``WAKE_EVERY_MS``, so that
partitions that fail at different times do not cost a request each. An error that stops a partition
is told when what was fetched before it has been handed out. Then it is tried once more, at most
once a second.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush
from typing import Final

from kip848_client.core.backoff import Jitter, backoff_ms
from kip848_client.core.fetch._assigned import Assigned
from kip848_client.core.fetch._commands import Commands, Notice, Readable
from kip848_client.core.fetch._error_rules import QUIET_MS
from kip848_client.core.fetch._model import FetchSettings
from kip848_client.core.fetch._partition import (
    HELD,
    LIMITED,
    PAUSED,
    RESTING,
    Partition,
    Phase,
)
from kip848_client.core.partition_names import listed
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error

__all__ = ["PartitionErrors"]

WAKE_EVERY_MS: Final = 100
AGAIN_MS: Final = 1_000
"""Between attempts after an error that was told."""


class PartitionErrors:
    """Who rests, and who has something to tell."""

    def __init__(
        self,
        settings: FetchSettings,
        jitter: Jitter,
        assigned: Assigned,
        out: Commands,
    ) -> None:
        self._settings = settings
        self._jitter = jitter
        self._assigned = assigned
        self._out = out
        self._alarms: list[tuple[int, int, Partition]] = []
        self._alarms_set = 0
        self._late: dict[str, list[TopicPartition]] = {}
        """Trouble that lasts, by its reason."""
        self._untold: dict[TopicPartition, Partition] = {}

    # -- resting -----------------------------------------------------------------------------

    def rest(self, now_ms: int, partition: Partition, why: str) -> None:
        """Something failed that may pass: leave it alone for a while, longer each time in a row."""
        if now_ms - partition.rest_until_ms >= QUIET_MS:
            # that was another failure: an idle partition is in no answer
            partition.reset_failures()
        self.rest_quietly(now_ms, partition)
        if partition.troubled_since_ms is None:
            partition.troubled_since_ms = now_ms
        if now_ms - partition.troubled_since_ms >= QUIET_MS and not partition.noticed:
            partition.noticed = True
            self._late.setdefault(why, []).append(partition.tp)

    def report(self) -> None:
        """Log what has lasted too long, one line for those with the same reason."""
        for why, late in self._late.items():
            lasts_s = QUIET_MS // 1000
            text = f"{listed(late)} could not be fetched for {lasts_s} s: {why}. Trying on."
            only = late[0] if len(late) == 1 else None
            self._out.append(Notice(text, warning=True, partition=only))
        self._late.clear()

    def rest_quietly(self, now_ms: int, partition: Partition) -> None:
        """The same for what is no failure: asking again at once would bring nothing."""
        settings = self._settings
        pause_ms = backoff_ms(
            partition.failures,
            settings.retry_backoff_ms,
            settings.retry_backoff_max_ms,
            self._jitter,
        )
        partition.failures += 1
        self._rest_until(partition, now_ms + pause_ms)

    def alarm(self, partition: Partition, at_ms: int) -> None:
        """Let ``due`` give it then."""
        self._alarms_set += 1
        heappush(self._alarms, (at_ms, self._alarms_set, partition))

    def due_ms(self) -> int | None:
        """When the next alarm is."""
        return self._alarms[0][0] if self._alarms else None

    def due(self, now_ms: int) -> list[Partition]:
        """Those whose alarm is over; their rest is, too, if it is."""
        due: dict[Partition, None] = {}
        while self._alarms and self._alarms[0][0] <= now_ms:
            partition = heappop(self._alarms)[2]
            if not self._assigned.is_here(partition):
                continue
            due[partition] = None
            if partition.rest_until_ms <= now_ms:
                partition.mark(RESTING, on=False)
        return list(due)

    def wake(self, partition: Partition) -> None:
        """What it rested for is over."""
        partition.rest_until_ms = 0
        partition.mark(RESTING, on=False)

    def _rest_until(self, partition: Partition, until_ms: int) -> None:
        until_ms += -until_ms % WAKE_EVERY_MS
        partition.rest_until_ms = until_ms
        partition.mark(RESTING, on=True)
        self.alarm(partition, until_ms)

    # -- telling -----------------------------------------------------------------------------

    def stop(self, partition: Partition, error: Kip848Error, again: Phase | None) -> None:
        """The user must know before anything else happens to it. ``again``: where to try once more
        when he was told; ``None``: nowhere, it is over."""
        partition.phase = Phase.STOPPED
        partition.again = again
        self.tell(partition, error)

    def tell(self, partition: Partition, error: Kip848Error) -> None:
        """The user must know, while it goes on."""
        partition.error = error
        self._untold[partition.tp] = partition
        if not partition.slices:
            self._out.append(Readable())

    def report_again(self) -> None:
        """There may be something to tell that could not be told until now."""
        if self._untold:
            self._out.append(Readable())

    def next_untold(
        self, only: Collection[TopicPartition]
    ) -> tuple[TopicPartition, Kip848Error] | None:
        """An error to tell now. That of a paused partition waits, unless it has no position: who
        has paused it may wait for that."""
        wanted = frozenset(only)
        for tp, partition in self._untold.items():
            if wanted and tp not in wanted:
                continue
            waits = HELD | LIMITED if partition.cursor is None else HELD | LIMITED | PAUSED
            if partition.error is None or partition.why_not & waits:
                continue
            if not partition.slices:
                return tp, partition.error
        return None

    def delivered(self, now_ms: int, partition: Partition) -> list[Partition]:
        """The user was told. One error can be that of many partitions; returns them all."""
        error = partition.error
        same = [each for each in self._untold.values() if each.error is error]
        for each in same:
            del self._untold[each.tp]
            each.error = None
            if each.phase is Phase.STOPPED and each.again is not None:
                at_ms = now_ms if each.retried_ms is None else each.retried_ms + AGAIN_MS
                each.retried_ms = max(now_ms, at_ms)
                self._rest_until(each, each.retried_ms)
        return same

    def forget(self, partition: Partition) -> None:
        """It has another position, or is gone: what was wrong is not any more."""
        self._untold.pop(partition.tp, None)
        partition.error = None
        partition.again = None
        self.wake(partition)
        partition.reset_failures()
