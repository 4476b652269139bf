"""Which records the application is busy with, and which of its tasks.

Records are *open* from the moment they are handed out until the task that got them comes back for
more. Automatic commits must not include them (KAFKA-18641), and their partitions should not be
given up. A *holder* is a task that gets records and comes back on its own. Several may read one
partition, so what is done of it ends before the oldest record that is held.

To keep that book per record would cost as much as the record. So a hand-out is remembered by the
position before it, and the caller that hands records out writes the attributes of ``HandOut``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from kip848_client._types import TopicPartition
from kip848_client.offsets._tracker import CommittableOffset

__all__ = ["HandOut", "HandOuts"]


class HandOut:
    """What one holder has: ``tp`` and ``before`` for the record that it got last, ``more`` for
    batches and for records that it got before that without coming back in between."""

    __slots__ = ("before", "more", "tp")

    def __init__(self) -> None:
        self.tp: TopicPartition | None = None
        self.before = 0
        self.more: dict[TopicPartition, int] = {}

    def clear(self) -> None:
        """The holder came back."""
        self.tp = None
        self.more.clear()

    def add(self, tp: TopicPartition, before: int) -> None:
        """Records of ``tp`` from ``before`` on are handed out, besides what is open."""
        self.more[tp] = min(before, self.more.get(tp, before))

    def stash(self) -> None:
        """Put the newest hand-out among the others, so that its place is free."""
        if self.tp is not None:
            self.add(self.tp, self.before)
            self.tp = None

    def opened(self) -> Mapping[TopicPartition, int]:
        """Partitions with open records, and the position before the first of them."""
        self.stash()
        return self.more

    def drop(self, tp: TopicPartition) -> None:
        """The partition is gone, or its position was moved."""
        self.stash()
        self.more.pop(tp, None)


class HandOuts:
    """The hand-outs of all holders."""

    def __init__(self) -> None:
        self._of: dict[object, HandOut] = {}

    def of(self, holder: object) -> HandOut:
        """The hand-out of ``holder``, empty at first."""
        return self._of.setdefault(holder, HandOut())

    def came_back(self, holder: object) -> None:
        """``holder`` is done with what it has."""
        found = self._of.get(holder)
        if found is not None:
            found.clear()

    def holders(self) -> Iterator[object]:
        """Who holds something."""
        return (holder for holder, each in list(self._of.items()) if each.opened())

    def forget_idle(self, keep: Callable[[object], bool]) -> None:
        """Forget holders that hold nothing, but those to ``keep``."""
        for holder, each in list(self._of.items()):
            if not each.opened() and not keep(holder):
                del self._of[holder]

    def is_busy(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether a task holds records of one of these partitions."""
        wanted = set(partitions)
        return any(not wanted.isdisjoint(each.opened()) for each in self._of.values())

    def open(self) -> dict[TopicPartition, int]:
        """Partitions with open records, and the position before the oldest of them."""
        found: dict[TopicPartition, int] = {}
        for each in self._of.values():
            for tp, before in each.opened().items():
                found[tp] = min(before, found.get(tp, before))
        return found

    def drop(self, tp: TopicPartition) -> None:
        """The partition is gone, or its position was moved: nothing of it is open any more."""
        for each in self._of.values():
            each.drop(tp)

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
                before = each.opened().get(tp)
                if before is not None and before < wanted.offset:
                    each.more[tp] = wanted.offset
