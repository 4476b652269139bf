"""Uniform assignment when members subscribe to different topics.

Three passes, each over members numbered in member order:

1. **Keep**: whatever the previous target holds of topics still subscribed stays where it is. 2.
**Fill**: topics with unassigned partitions, the hardest first (most partitions for each subscriber,
then fewest subscribers, then topic id); each partition goes to the least loaded subscriber of its
topic. 3. **Balance**: topic by topic in the same order, move partitions from the most loaded
subscriber that has some of this topic to the least loaded one while their loads differ by more than
one. Repeat until a whole round moves nothing, or 16 rounds.

Load counts all partitions of a member, whatever the topic. The result is balanced within each
topic's subscribers, not always over the whole group: that would take chains of moves over several
topics, which Kafka does not look for either.

:class:`_Scale` is the heart: it yields the least loaded and the most loaded subscriber without
sorting again after every move. It treats the sorted subscribers as a landscape of equal levels. The
low side fills up one level at a time, left to right; the high side is worn down one level at a
time, right to left. Ties are broken by this walk, so it must be exactly Kafka's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import unpack
from typing import Final

from kip848_client.core.assignors._draft import Draft
from kip848_client.core.assignors._java_order import table_size_for
from kip848_client.core.assignors._spec import (
    NO_PARTITIONS,
    Assignment,
    AssignorError,
    GroupSpec,
    Partitions,
    TopicMetadata,
)
from kip848_client.core.types import MemberId, TopicId, format_topic_id

__all__ = ["assign_heterogeneous"]

_MAX_ROUNDS: Final = 16
"""Kafka stops balancing after this many rounds over the topics."""

_NO_OWNER: Final = -1


def assign_heterogeneous(group: GroupSpec, topics: Mapping[TopicId, TopicMetadata]) -> Assignment:
    """The uniform target of a heterogeneous group.

    Raises ``AssignorError`` when a topic is not in ``topics``, or a previous target names a
    partition that its topic does not have.
    """
    builder = _Builder(group, topics)
    if builder.subscribers:
        builder.keep()
        builder.fill()
        builder.balance()
    return Assignment(builder.result())


class _Builder:
    """The state of one computation. Members are numbers; ``loads[i]`` is what member i has."""

    __slots__ = ("_drafts", "_group", "_owners", "_topics", "loads", "subscribers")

    def __init__(self, group: GroupSpec, topics: Mapping[TopicId, TopicMetadata]) -> None:
        self._group = group
        self._topics = topics
        self._drafts: list[Partitions | Draft] = [m.target for m in group.members.values()]
        self.loads = [0] * len(self._drafts)
        self.subscribers: dict[TopicId, list[int]] = {}
        for index, member in enumerate(group.members.values()):
            for topic_id in member.topic_ids:
                if topic_id not in topics:
                    msg = (
                        f"Members are subscribed to topic {format_topic_id(topic_id)} "
                        "which doesn't exist in the topic metadata."
                    )
                    raise AssignorError(msg)
                self.subscribers.setdefault(topic_id, []).append(index)
        self._owners = {
            topic_id: [_NO_OWNER] * topics[topic_id].partition_count
            for topic_id in self.subscribers
        }

    # --- The three passes ---------------------------------------------------------------------

    def keep(self) -> None:
        """Pass 1: previous partitions of subscribed topics stay."""
        for index, member in enumerate(self._group.members.values()):
            subscribed = frozenset(member.topic_ids)
            for topic_id, partitions in member.target.items():
                if topic_id not in subscribed:
                    self._draft(index).drop(topic_id)
                    continue
                owners = self._owners[topic_id]
                self.loads[index] += len(partitions)
                for partition in partitions:
                    if not 0 <= partition < len(owners):
                        msg = (
                            f"partition {partition} of topic {format_topic_id(topic_id)} is in a "
                            f"previous target, but the topic has {len(owners)} partitions"
                        )
                        raise AssignorError(msg)
                    owners[partition] = index

    def fill(self) -> None:
        """Pass 2: assign unassigned partitions."""
        for topic_id in self._hardest_first(self.subscribers):
            owners = self._owners[topic_id]
            if _NO_OWNER not in owners:
                continue
            scale = _Scale(self.subscribers[topic_id], self.loads)
            for partition, owner in enumerate(owners):
                if owner == _NO_OWNER:
                    self._give(topic_id, partition, scale.lightest())

    def balance(self) -> None:
        """Pass 3: move partitions while that narrows a difference of more than one."""
        shared = [t for t in self._hardest_first(self.subscribers) if len(self.subscribers[t]) > 1]
        last_moved = _NO_OWNER
        for _ in range(_MAX_ROUNDS):
            for place, topic_id in enumerate(shared):
                if place == last_moved:
                    return
                if self._balance_topic(topic_id) or last_moved == _NO_OWNER:
                    last_moved = place

    def _balance_topic(self, topic_id: TopicId) -> int:
        """Balance one topic's subscribers; returns how many partitions moved."""
        scale = _Scale(self.subscribers[topic_id], self.loads)
        if scale.spread <= 1:
            return 0
        stacks: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic_id]):
            stacks.setdefault(owner, []).append(partition)
        moved = 0
        while True:
            source = scale.heaviest()
            while source is not None and not stacks.get(source):
                scale.exclude()
                source = scale.heaviest()
            if source is None:
                break
            partition = stacks[source].pop()
            goal = scale.lightest()
            if scale.level:
                break
            self._take(topic_id, partition, source)
            self._give(topic_id, partition, goal)
            moved += 1
        return moved

    # --- Small steps --------------------------------------------------------------------------

    def _hardest_first(self, topic_ids: Iterable[TopicId]) -> list[TopicId]:
        def rank(topic_id: TopicId) -> tuple[float, int, int, int]:
            subscribers = len(self.subscribers[topic_id])
            high, low = unpack(">qq", topic_id)  # Kafka compares ids as two signed halves
            return -(len(self._owners[topic_id]) / subscribers), subscribers, high, low

        return sorted(topic_ids, key=rank)

    def _draft(self, index: int) -> Draft:
        entry = self._drafts[index]
        if isinstance(entry, Draft):
            return entry
        draft = self._drafts[index] = Draft(entry)
        return draft

    def _give(self, topic_id: TopicId, partition: int, index: int) -> None:
        owners = self._owners[topic_id]
        expected = -(-len(owners) // len(self.subscribers[topic_id]))
        capacity = table_size_for(expected * 4 // 3 + 1)
        self._draft(index).add(topic_id, (partition,), capacity)
        owners[partition] = index
        self.loads[index] += 1

    def _take(self, topic_id: TopicId, partition: int, index: int) -> None:
        self._draft(index).discard(topic_id, (partition,))
        self.loads[index] -= 1

    def result(self) -> dict[MemberId, Partitions]:
        """The targets of all members."""
        if not self.subscribers:
            return {
                member_id: member.target if not member.target else NO_PARTITIONS
                for member_id, member in self._group.members.items()
            }
        return {
            member_id: entry.freeze() if isinstance(entry, Draft) else entry
            for member_id, entry in zip(self._group.members, self._drafts, strict=True)
        }


class _Scale:
    """Yields the lightest and the heaviest of some members while partitions move between them.

    ``low_level`` and ``high_level`` are the loads that the members already visited on either side
    have, seen before the partition that is being given or taken now.
    """

    __slots__ = (
        "_high_end",
        "_high_level",
        "_high_next",
        "_high_start",
        "_loads",
        "_low_end",
        "_low_level",
        "_low_next",
        "_order",
        "spread",
    )

    def __init__(self, members: Sequence[int], loads: Sequence[int]) -> None:
        self._loads = loads
        self._order = sorted(members, key=loads.__getitem__)  # stable: ties by member number
        lowest, highest = loads[self._order[0]], loads[self._order[-1]]
        self.spread = highest - lowest
        self._low_end = self._low_next = 0
        self._low_level = lowest - 1
        self._high_start = self._high_end = len(self._order)
        self._high_next = len(self._order) - 1
        self._high_level = highest + 1

    @property
    def level(self) -> bool:
        """True when the two sides have met: no move can narrow a difference any more."""
        return self._high_level - self._low_level <= 1

    def lightest(self) -> int:
        """The member to give a partition to; counts it as given."""
        if self._low_next >= self._low_end:
            self._low_level += 1
            order, loads = self._order, self._loads
            end = self._low_end
            while end < len(order) and loads[order[end]] == self._low_level:
                end += 1
            self._low_end = end
            self._low_next = 0
        member = self._order[self._low_next]
        self._low_next += 1
        return member

    def heaviest(self) -> int | None:
        """The member to take a partition from, counting it as taken; None when none is left."""
        if self._high_next < self._high_start:
            order, loads = self._order, self._loads
            start = self._high_start
            if self._high_end <= start and start > 0:
                # All members so far were excluded: restart at the next lower load.
                self._high_level = loads[order[start - 1]]
            else:
                self._high_level -= 1
            while start > 0 and loads[order[start - 1]] == self._high_level:
                start -= 1
            self._high_start = start
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        member = self._order[self._high_next]
        self._high_next -= 1
        return member

    def exclude(self) -> None:
        """Never yield the member that :meth:`heaviest` just gave again: it has nothing to give."""
        order, place = self._order, self._high_next + 1
        self._high_end -= 1
        order[place], order[self._high_end] = order[self._high_end], order[place]
