"""Partitions that rest after an error, and those that stop until the error was raised.

Rests grow with each failure in a row. They end on multiples of ``WAKE_EVERY_MS``, so that
partitions that fail at different times share requests. An error that stops a partition is raised
once the records fetched before it have been delivered. After that the partition is retried, at most
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
"""Pause between attempts after an error was raised."""


class PartitionErrors:
    """Tracks resting partitions and pending errors."""

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
        """Partitions with persistent errors, by reason."""
        self._untold: dict[TopicPartition, Partition] = {}

    # -- resting -----------------------------------------------------------------------------

    def rest(self, now_ms: int, partition: Partition, why: str) -> None:
        """Handle a transient failure: pause the partition, longer each time in a row."""
        if now_ms - partition.rest_until_ms >= QUIET_MS:
            # a new failure: an idle partition is in no answer
            partition.reset_failures()
        self.rest_quietly(now_ms, partition)
        if partition.troubled_since_ms is None:
            partition.troubled_since_ms = now_ms
        if now_ms - partition.troubled_since_ms >= QUIET_MS and not partition.noticed:
            partition.noticed = True
            self._late.setdefault(why, []).append(partition.tp)

    def report(self) -> None:
        """Log errors that have lasted too long, one line per reason."""
        for why, late in self._late.items():
            lasts_s = QUIET_MS // 1000
            text = f"{listed(late)} could not be fetched for {lasts_s} s: {why}. Retrying."
            only = late[0] if len(late) == 1 else None
            self._out.append(Notice(text, warning=True, partition=only))
        self._late.clear()

    def rest_quietly(self, now_ms: int, partition: Partition) -> None:
        """Rest without counting a failure: retrying at once would bring nothing."""
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
        """Make ``due`` return the partition at that time."""
        self._alarms_set += 1
        heappush(self._alarms, (at_ms, self._alarms_set, partition))

    def due_ms(self) -> int | None:
        """The time of the next alarm."""
        return self._alarms[0][0] if self._alarms else None

    def due(self, now_ms: int) -> list[Partition]:
        """Return the partitions whose alarm has passed, ending rests that are over."""
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
        """End the rest of a partition."""
        partition.rest_until_ms = 0
        partition.mark(RESTING, on=False)

    def _rest_until(self, partition: Partition, until_ms: int) -> None:
        until_ms += -until_ms % WAKE_EVERY_MS
        partition.rest_until_ms = until_ms
        partition.mark(RESTING, on=True)
        self.alarm(partition, until_ms)

    # -- reporting ---------------------------------------------------------------------------

    def stop(self, partition: Partition, error: Kip848Error, again: Phase | None) -> None:
        """Stop a partition until the error is raised. ``again``: the phase in which to retry after
        that; ``None``: never."""
        partition.phase = Phase.STOPPED
        partition.again = again
        self.tell(partition, error)

    def tell(self, partition: Partition, error: Kip848Error) -> None:
        """Raise the error in the application while the partition continues."""
        partition.error = error
        self._untold[partition.tp] = partition
        if not partition.slices:
            self._out.append(Readable())

    def report_again(self) -> None:
        """Signal pending errors that could not be raised until now."""
        if self._untold:
            self._out.append(Readable())

    def next_untold(
        self, only: Collection[TopicPartition]
    ) -> tuple[TopicPartition, Kip848Error] | None:
        """An error to raise now. The error of a paused partition waits, unless the partition has no
        position: the application that paused it may be waiting for one."""
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
        """Handle a raised error. One error can belong to many partitions; returns all of them."""
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
        """Forget the errors of a partition that has another position, or is gone."""
        self._untold.pop(partition.tp, None)
        partition.error = None
        partition.again = None
        self.wake(partition)
        partition.reset_failures()
