"""Which records the application is processing, and in which of its tasks.

Records are *open* from their delivery until the task that got them asks for more. Automatic commits
must not include them (KAFKA-18641), and their partitions should not be released. A *holder* is a
task that gets records and asks for more independently. Several may read one partition, so it is
done only up to the oldest record held.

An entry per record would cost as much as the record. So a delivery is stored as the position before
it: the offset of its first record, with the leader epoch of the previous record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from kip848_client.core.offsets._tracker import CommittableOffset
from kip848_client.core.types import TopicPartition

__all__ = ["HeldRecords", "InFlight"]


class HeldRecords:
    """The records of one holder: the position before its first open record, by partition."""

    __slots__ = ("opened",)

    def __init__(self) -> None:
        self.opened: dict[TopicPartition, CommittableOffset] = {}

    def clear(self) -> None:
        """Mark the holder's records as done."""
        self.opened.clear()

    def add(self, tp: TopicPartition, before: CommittableOffset) -> None:
        """Add delivered records of ``tp`` from ``before`` on."""
        open_before = self.opened.get(tp)
        if open_before is None or before.offset < open_before.offset:
            self.opened[tp] = before


class InFlight:
    """The records of all holders."""

    def __init__(self) -> None:
        self._of: dict[object, HeldRecords] = {}

    def of(self, holder: object) -> HeldRecords:
        """Return the records of ``holder``, none at first."""
        return self._of.setdefault(holder, HeldRecords())

    def mark_done(self, holder: object) -> None:
        """Mark the records of ``holder`` as done."""
        found = self._of.get(holder)
        if found is not None:
            found.clear()

    def holders(self) -> Iterator[object]:
        """The holders with open records."""
        return (holder for holder, each in list(self._of.items()) if each.opened)

    def forget_idle(self, keep: Callable[[object], bool]) -> None:
        """Forget holders without records, except those to ``keep``."""
        for holder, each in list(self._of.items()):
            if not each.opened and not keep(holder):
                del self._of[holder]

    def is_busy(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether a task holds records of one of these partitions."""
        wanted = set(partitions)
        return any(not wanted.isdisjoint(each.opened) for each in self._of.values())

    def open(self) -> dict[TopicPartition, CommittableOffset]:
        """Return the partitions with open records, and the position before the oldest of them."""
        oldest = HeldRecords()
        for each in self._of.values():
            for tp, before in each.opened.items():
                oldest.add(tp, before)
        return oldest.opened

    def drop(self, tp: TopicPartition) -> None:
        """Drop the open records of a partition that is gone, or whose position was moved."""
        for each in self._of.values():
            each.opened.pop(tp, None)

    def processed(
        self,
        offsets: Mapping[TopicPartition, CommittableOffset],
        delivered: Mapping[TopicPartition, CommittableOffset],
    ) -> None:
        """Handle a commit of ``offsets`` by the application: it is done with everything before
        them, though it may not have asked for more yet. It cannot be done with anything beyond
        ``delivered``."""
        for tp, wanted in offsets.items():
            if tp not in delivered or wanted.offset > delivered[tp].offset:
                continue
            for each in self._of.values():
                before = each.opened.get(tp)
                if before is not None and before.offset < wanted.offset:
                    each.opened[tp] = CommittableOffset(wanted.offset, wanted.leader_epoch)
