"""Assigning and invalidating fetch positions.

Each position begins a generation. It is found (committed, or by the policy), sought, corrected
after a truncation, or looked up again when the name belongs to another topic. Buffers, look-ups and
errors belong to the previous position and end with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kip848_client.core.fetch._assigned import Assigned
from kip848_client.core.fetch._commands import Commands, Positioned
from kip848_client.core.fetch._events import SeekBegun, SeekEnded
from kip848_client.core.fetch._model import StoredOffset
from kip848_client.core.fetch._partition import NOT_STARTED, RESTING, Partition, Phase
from kip848_client.core.fetch._partition_errors import PartitionErrors
from kip848_client.core.fetch._planner import Planner
from kip848_client.core.fetch._positions import PositionFound, Positions, PositionStands, Result
from kip848_client.core.fetch._unread_slices import UnreadSlices
from kip848_client.core.types import TopicId, TopicPartition
from kip848_client.errors import Kip848Error

__all__ = ["PositionChanges"]


class PositionChanges:
    """Changes the positions of partitions. All position changes go through here, except truncations
    reported by a broker."""

    def __init__(
        self,
        assigned: Assigned,
        buffer: UnreadSlices,
        planner: Planner,
        positions: Positions,
        partition_errors: PartitionErrors,
        out: Commands,
    ) -> None:
        self.stale = 0
        """Positions found for a generation that has ended."""
        self._assigned = assigned
        self._buffer = buffer
        self._planner = planner
        self._positions = positions
        self._partition_errors = partition_errors
        self._out = out
        self._seeks: dict[int, tuple[TopicPartition, ...]] = {}
        """Seeks whose offsets are being looked up, by ticket."""

    def take_results(self, now_ms: int) -> None:
        """Apply the results of position look-ups."""
        for result in self._positions.take():
            self._on_result(now_ms, result)

    def drop(self, partition: Partition) -> None:
        """Drop the buffer, look-ups and errors of a partition: they belong to a position it no
        longer has."""
        self._positions.forget(partition.tp)
        self._partition_errors.forget(partition)
        self._buffer.clear(partition)

    def look(self, now_ms: int, partition: Partition, *, by_policy: bool = False) -> None:
        """Start looking up a position for a partition without one."""
        partition.phase = Phase.SEEKING_START
        self._positions.begin(
            now_ms, partition.tp, partition.generation, partition.topic_id, by_policy=by_policy
        )

    def _stand(
        self, now_ms: int, partition: Partition, at: StoredOffset, *, committed: bool
    ) -> None:
        self.drop(partition)
        partition.stand_at(self._assigned.new_generation(), at.offset, at.leader_epoch)
        self._out.append(Positioned(partition.tp, at.offset, at.leader_epoch, committed))
        self._planner.refresh(now_ms, partition)

    def seek(
        self, now_ms: int, partition: Partition, at: StoredOffset, *, committed: bool = False
    ) -> None:
        """Continue at the offset given by the application."""
        partition.seek = 0
        partition.refetched_at = -1
        self._stand(now_ms, partition, at, committed=committed)

    def begin_seek(self, event: SeekBegun) -> None:
        """Begin a seek whose offsets the application is looking up."""
        self._seeks[event.ticket] = event.partitions
        for partition in self._assigned.here(event.partitions):
            partition.seek = event.ticket
            if partition.phase is Phase.SEEKING_START:
                # a reset that ends before the seek would be useless
                self._positions.forget(partition.tp)
                partition.phase = Phase.IDLE

    def end_seek(self, now_ms: int, event: SeekEnded) -> None:
        """End a seek: with the offsets found, or none."""
        offsets: Mapping[TopicPartition, StoredOffset] = event.offsets
        for partition in self._assigned.here(self._seeks.pop(event.ticket, ())):
            if partition.seek != event.ticket:
                continue  # a newer seek, or another generation of the assignment
            partition.seek = 0
            at = offsets.get(partition.tp)
            if at is not None and at.offset >= 0:
                self.seek(now_ms, partition, at, committed=event.committed)
            elif partition.phase is Phase.IDLE and not partition.why_not & NOT_STARTED:
                self.look(now_ms, partition)

    def served(self, partition: Partition) -> None:
        """Note that a broker served the partition, so its position is in range."""
        self._positions.fetched(partition.tp)

    def check(self, now_ms: int, partition: Partition) -> None:
        """Handle a broker that reports the position as out of range. Buffered records are valid,
        and come first."""
        partition.phase = Phase.CHECKING
        self._planner.remove(partition)
        self.look_into_check(now_ms, partition)

    def look_into_check(self, now_ms: int, partition: Partition) -> None:
        """Begin a check when the buffer is empty."""
        tp = partition.tp
        if not partition.slices and not self._positions.is_looking(tp):
            self._planner.expect(now_ms, partition)
            self._positions.check(
                now_ms,
                tp,
                partition.generation,
                partition.topic_id,
                partition.fetch_offset,
                failures=partition.failures,
            )

    def _on_result(self, now_ms: int, result: Result) -> None:
        partition = self._assigned.by_tp.get(result.tp)
        if partition is None or partition.generation != result.generation:
            self.stale += 1
        elif isinstance(result, PositionFound):
            self._on_found(now_ms, partition, result)
        elif isinstance(result, PositionStands):
            partition.phase = Phase.READY
            partition.failures += 1  # reset when the leader serves it
            self._planner.refresh(now_ms, partition)
        elif result.lasting:
            self._partition_errors.stop(partition, result.error, partition.phase)
        else:
            self._partition_errors.tell(partition, result.error)

    def _on_found(self, now_ms: int, partition: Partition, found: PositionFound) -> None:
        was_reset, resets = partition.phase is Phase.CHECKING, partition.failures
        at = StoredOffset(found.offset, found.leader_epoch)
        self._stand(now_ms, partition, at, committed=found.committed)
        if was_reset:
            # a broker that reports the new position as out of range, too, must not be asked in a
            # loop
            partition.failures = resets
            if resets:
                self._partition_errors.rest_quietly(now_ms, partition)
                self._planner.refresh(now_ms, partition)
            else:
                partition.failures = 1

    def begin_anew(self, now_ms: int, partition: Partition, topic_id: TopicId) -> None:
        """Restart a partition whose name now belongs to another topic: all state and look-ups of
        the old topic are dropped."""
        partition.seek = 0
        self.drop(partition)
        self._planner.remove(partition)
        self._assigned.learn_id(partition, topic_id)
        partition.leave_position(self._assigned.new_generation(), Phase.IDLE)
        partition.high_watermark = partition.last_stable_offset = None
        partition.log_start_offset = None
        if not partition.why_not & NOT_STARTED:
            self.look(now_ms, partition, by_policy=True)

    def stop_for_good(self, now_ms: int, partition: Partition, error: Kip848Error) -> None:
        """Stop a partition permanently."""
        self._positions.forget(partition.tp)
        self._partition_errors.stop(partition, error, None)
        self._planner.refresh(now_ms, partition)

    def go_on(self, now_ms: int, partition: Partition) -> None:
        """Continue after a rest, or after the lease of a replica."""
        stopped = partition.phase is Phase.STOPPED and partition.error is None
        if stopped and partition.again is not None and not partition.why_not & RESTING:
            partition.phase, partition.again = partition.again, None
            if partition.phase is Phase.SEEKING_START:
                self.look(now_ms, partition)
            elif partition.phase is Phase.CHECKING:
                self.look_into_check(now_ms, partition)
        self._planner.refresh(now_ms, partition)
