"""Which records the application is busy with, and which of its tasks.

Records are *open* from their delivery until the task that got them asks for more. Automatic commits
must not include them (KAFKA-18641), and their partitions should not be given up. A *holder* is a
task that gets records and asks for more by itself. Several may read one partition, so what is done
of it ends before the oldest record that is held.

Keeping an entry per record would cost as much as the record. So a delivery is stored as the
position before it: the offset of its first record, with the leader epoch of the record before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from kip848_client.core.offsets._tracker import CommittableOffset
from kip848_client.core.types import TopicPartition

__all__ = ["HeldRecords", "InFlight"]


class HeldRecords:
    """What one holder has: the position before its first open record, by partition."""

    __slots__ = ("opened",)

    def __init__(self) -> None:
        self.opened: dict[TopicPartition, CommittableOffset] = {}

    def clear(self) -> None:
        """The holder is done with them."""
        self.opened.clear()

    def add(self, tp: TopicPartition, before: CommittableOffset) -> None:
        """Records of ``tp`` from ``before`` on are delivered, besides what is open."""
        open_before = self.opened.get(tp)
        if open_before is None or before.offset < open_before.offset:
            self.opened[tp] = before


class InFlight:
    """The records of all holders."""

    def __init__(self) -> None:
        self._of: dict[object, HeldRecords] = {}

    def of(self, holder: object) -> HeldRecords:
        """What ``holder`` has, nothing at first."""
        return self._of.setdefault(holder, HeldRecords())

    def mark_done(self, holder: object) -> None:
        """``holder`` is done with what it has."""
        found = self._of.get(holder)
        if found is not None:
            found.clear()

    def holders(self) -> Iterator[object]:
        """Who holds something."""
        return (holder for holder, each in list(self._of.items()) if each.opened)

    def forget_idle(self, keep: Callable[[object], bool]) -> None:
        """Forget holders that hold nothing, but those to ``keep``."""
        for holder, each in list(self._of.items()):
            if not each.opened and not keep(holder):
                del self._of[holder]

    def is_busy(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether a task holds records of one of these partitions."""
        wanted = set(partitions)
        return any(not wanted.isdisjoint(each.opened) for each in self._of.values())

    def open(self) -> dict[TopicPartition, CommittableOffset]:
        """Partitions with open records, and the position before the oldest of them."""
        oldest = HeldRecords()
        for each in self._of.values():
            for tp, before in each.opened.items():
                oldest.add(tp, before)
        return oldest.opened

    def drop(self, tp: TopicPartition) -> None:
        """The partition is gone, or its position was moved: nothing of it is open any more."""
        for each in self._of.values():
            each.opened.pop(tp, None)

    def processed(
        self,
        offsets: Mapping[TopicPartition, CommittableOffset],
        delivered: Mapping[TopicPartition, CommittableOffset],
    ) -> None:
        """The application asked for ``offsets`` to be committed: it is done with everything before
        them, though perhaps not back yet. What lies behind ``delivered`` it cannot be done with."""
        for tp, wanted in offsets.items():
            if tp not in delivered or wanted.offset > delivered[tp].offset:
                continue
            for each in self._of.values():
                before = each.opened.get(tp)
                if before is not None and before.offset < wanted.offset:
                    each.opened[tp] = CommittableOffset(wanted.offset, wanted.leader_epoch)
