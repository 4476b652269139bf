"""The application's position in each partition: delivered, confirmed, committed.

Theory of operation
-------------------
A record is *delivered* when it was handed to the application, and *confirmed* when the application
asked for more: only then is it known to have been processed. An automatic commit may happen at any
moment, even while the application is processing a record, so it commits confirmed positions only
and never runs ahead of the application (KAFKA-18641). A user's commit means "I am done with what I
got", so it takes delivered positions, and confirms them.

A position is the offset of the *next* record, as Kafka commits it. It is dirty when it differs from
the known committed one; the position chosen by a reset counts, as in Java, so that a restart under
``latest`` does not skip records that arrived meanwhile.

A released partition is forgotten with all its state, with one exception: records delivered and not
committed are *lost*, until that was reported to the application. Results of open requests then find
nothing to update: each assignment of a partition has its own ``generation`` number, and a commit
remembers the generation it was taken under.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kip848_client.core.types import TopicPartition

__all__ = ["CommittableOffset", "OffsetTracker"]


class CommittableOffset(NamedTuple):
    """The content of OffsetCommit for a partition: the next offset to read, the leader epoch of the
    last record read (-1 when unknown) and the user's text."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(slots=True)
class _Entry:
    generation: int
    delivered: CommittableOffset | None = None
    confirmed: CommittableOffset | None = None
    committed: int | None = None
    handed_out: bool = False
    """Whether the position is after records that the application got."""
    waived: bool = False
    """The application drops the partition itself: its records do not count as lost."""


class OffsetTracker:
    """Positions of the partitions that this consumer owns now. Pure bookkeeping, no clock."""

    def __init__(self) -> None:
        self._entries: dict[TopicPartition, _Entry] = {}
        self._unconfirmed: dict[TopicPartition, _Entry] = {}
        self._generations = 0
        self._lost: dict[TopicPartition, CommittableOffset] = {}
        self._former: set[TopicPartition] = set()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin to track ``partitions``, without a position yet. Tracked ones are left alone."""
        for tp in partitions:
            self._former.discard(tp)
            if tp not in self._entries:
                self._generations += 1
                self._entries[tp] = _Entry(self._generations)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop all knowledge of ``partitions``: they were revoked or lost."""
        for tp in partitions:
            entry = self._entries.pop(tp, None)
            self._unconfirmed.pop(tp, None)
            if entry is not None and not entry.waived:
                self._former.add(tp)

    def lose(self, partitions: Iterable[TopicPartition]) -> None:
        """Call it before ``forget`` for partitions that the group takes: the application may have
        records that it believes it can still commit."""
        for tp in partitions:
            entry = self._entries.get(tp)
            if entry is None or entry.waived or not entry.handed_out or entry.delivered is None:
                continue
            if entry.delivered.offset != entry.committed:
                self._lost[tp] = entry.delivered

    def waive(self) -> None:
        """The application drops all its partitions itself."""
        for entry in self._entries.values():
            entry.waived = True
        self._lost.clear()
        self._former.clear()

    def lost(self) -> dict[TopicPartition, CommittableOffset]:
        """Positions that were delivered and revoked before they were committed, until
        ``loss_reported``."""
        return dict(sorted(self._lost.items()))

    def loss_reported(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that the application was notified that these are not committed."""
        for tp in partitions:
            self._lost.pop(tp, None)

    def was_ours(self, tp: TopicPartition) -> bool:
        """Whether ``tp`` was tracked once, no longer is, and was not dropped on purpose."""
        return tp in self._former

    def owns(self, tp: TopicPartition) -> bool:
        """Whether ``tp`` is tracked at the moment."""
        return tp in self._entries

    def generation(self, tp: TopicPartition) -> int:
        """A number that changes with each assignment of ``tp``; 0 if it is not tracked."""
        entry = self._entries.get(tp)
        return 0 if entry is None else entry.generation

    def partitions(self) -> tuple[TopicPartition, ...]:
        """The tracked partitions, sorted."""
        return tuple(sorted(self._entries))

    def seek(
        self,
        tp: TopicPartition,
        offset: int,
        leader_epoch: int = -1,
        *,
        committed: int | None = None,
    ) -> None:
        """Set the position of ``tp``: found by a fetch of committed offsets (then ``committed``),
        chosen by a reset, or by the user. Nothing before it is pending any more.

        Not tracked: ignored, since the partition may have been released meanwhile.
        """
        entry = self._entries.get(tp)
        if entry is None:
            return
        entry.delivered = entry.confirmed = CommittableOffset(offset, leader_epoch)
        entry.handed_out = False
        if committed is not None:
            entry.committed = committed
        self._unconfirmed.pop(tp, None)

    def delivered(self, tp: TopicPartition, next_offset: int, leader_epoch: int = -1) -> bool:
        """Records up to ``next_offset`` (exclusive) are being delivered to the application.

        Returns whether that is allowed: ``False`` when the partition is not tracked, and then the
        records must not be delivered.
        """
        entry = self._entries.get(tp)
        if entry is None:
            return False
        entry.delivered = CommittableOffset(next_offset, leader_epoch)
        entry.handed_out = True
        self._unconfirmed[tp] = entry
        return True

    def confirm(self) -> None:
        """The application asked for more: everything delivered so far has been processed."""
        for entry in self._unconfirmed.values():
            entry.confirmed = entry.delivered
        self._unconfirmed.clear()

    def processed(self, offsets: Mapping[TopicPartition, CommittableOffset]) -> None:
        """Handle a commit of these offsets by the application: it is done with everything before
        them, so an automatic commit must not fall behind them again."""
        for tp, wanted in sorted(offsets.items()):
            entry = self._entries.get(tp)
            if entry is None or entry.delivered is None or wanted.offset > entry.delivered.offset:
                continue
            if entry.confirmed is None or entry.confirmed.offset < wanted.offset:
                entry.confirmed = wanted
                if wanted.offset == entry.delivered.offset:
                    self._unconfirmed.pop(tp, None)

    def committed(self, tp: TopicPartition, offset: int, generation: int) -> None:
        """The broker stored ``offset`` for ``tp``, by a commit taken under ``generation``."""
        entry = self._entries.get(tp)
        if entry is not None and entry.generation == generation:
            entry.committed = offset

    def last_committed(self, tp: TopicPartition) -> int | None:
        """The last committed offset known to this consumer, else ``None``."""
        entry = self._entries.get(tp)
        return None if entry is None else entry.committed

    def position(self, tp: TopicPartition) -> int | None:
        """The offset of the next record for the application, ``None`` while not known."""
        entry = self._entries.get(tp)
        return None if entry is None or entry.delivered is None else entry.delivered.offset

    def pending(self) -> tuple[TopicPartition, ...]:
        """Partitions with delivered records that are not confirmed yet, sorted."""
        return tuple(sorted(self._unconfirmed))

    def snapshot(self) -> dict[TopicPartition, CommittableOffset]:
        """The offsets of a user's ``commit()``: every delivered position, committed or not."""
        return {
            tp: entry.delivered
            for tp, entry in sorted(self._entries.items())
            if entry.delivered is not None
        }

    def dirty(self) -> dict[TopicPartition, CommittableOffset]:
        """The offsets that an automatic commit may store: confirmed positions that differ from the
        committed ones."""
        return {
            tp: entry.confirmed
            for tp, entry in sorted(self._entries.items())
            if entry.confirmed is not None and entry.confirmed.offset != entry.committed
        }
