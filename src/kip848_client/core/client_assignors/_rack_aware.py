"""``rack-aware``: even, near the replicas if possible, and with few moves.

Priorities: first, no member has more than its share while another one could take it; second,
partitions go to members in a rack with a replica (reading there causes no traffic between racks,
KIP-392, KIP-881); third, partitions stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kip848_client.core.client_assignors._model import (
    GroupAssignment,
    GroupMember,
    GroupTopic,
    MemberAssignment,
)
from kip848_client.core.client_assignors._shipped import ShippedAssignor
from kip848_client.core.types import TopicPartition

__all__ = ["RackAwareAssignor"]


class RackAwareAssignor(ShippedAssignor):
    """Assign partitions to members in the racks of their replicas.

    Set ``client_rack`` of the consumers and ``broker.rack`` of the brokers. A partition or member
    without a known rack fits everywhere.
    """

    name: str = "rack-aware"

    def assign(
        self, members: Mapping[str, GroupMember], topics: Mapping[str, GroupTopic]
    ) -> GroupAssignment:
        """See ``ClientAssignor.assign``."""
        return _Draft(members, topics).assignment()


class _Draft:
    def __init__(
        self, members: Mapping[str, GroupMember], topics: Mapping[str, GroupTopic]
    ) -> None:
        self._members = members
        self._topics = topics
        self._readers = {
            name: [each for each in sorted(members) if name in members[each].topics]
            for name in sorted(topics)
        }
        self._has: dict[str, dict[TopicPartition, None]] = {each: {} for each in sorted(members)}
        self._share = self._fair_share()

    def _fair_share(self) -> int:
        """The largest share if all members can take all partitions."""
        partitions = sum(
            topic.partition_count for name, topic in self._topics.items() if self._readers[name]
        )
        return -(-partitions // max(len(self._members), 1))

    def assignment(self) -> GroupAssignment:
        """The result, in four passes."""
        free = self._keep()
        free = self._give(free, near=True)
        free = self._give(free, near=False)
        for tp in free:  # all members that could take it have their share
            self._has[min(self._readers[tp.topic], key=self._load)][tp] = None
        while self._level():
            pass
        return GroupAssignment(
            {each: MemberAssignment(tuple(sorted(mine))) for each, mine in self._has.items()}
        )

    def _load(self, member_id: str) -> int:
        return len(self._has[member_id])

    def _is_near(self, member_id: str, tp: TopicPartition) -> bool:
        rack = self._members[member_id].rack_id
        racks = self._topics[tp.topic].racks.get(tp.partition)
        return not rack or not racks or rack in racks

    def _keep(self) -> list[TopicPartition]:
        """Keep partitions that are near their member. Returns the others, those with the fewest
        near members first.
        """
        owner: dict[TopicPartition, str] = {}
        for member_id in self._has:
            for tp in self._members[member_id].target:
                owner.setdefault(tp, member_id)
        free: list[tuple[int, TopicPartition]] = []
        for name, readers in self._readers.items():
            for tp in self._topics[name].partitions(name) if readers else ():
                who = owner.get(tp)
                may_stay = who in readers and self._is_near(who, tp)
                if who is not None and may_stay and self._load(who) < self._share:
                    self._has[who][tp] = None
                else:
                    free.append((sum(self._is_near(each, tp) for each in readers), tp))
        return [tp for _, tp in sorted(free)]

    def _give(self, free: Iterable[TopicPartition], *, near: bool) -> list[TopicPartition]:
        """Assign partitions to the least loaded members below their share; returns the remaining
        ones.
        """
        left: list[TopicPartition] = []
        for tp in free:
            takers = [
                each
                for each in self._readers[tp.topic]
                if self._load(each) < self._share and (not near or self._is_near(each, tp))
            ]
            if not takers:
                left.append(tp)
                continue
            had = [each for each in takers if tp in self._members[each].target]
            best = min(takers, key=self._load)
            if had and self._load(had[0]) <= self._load(best) + 1:
                best = had[0]
            self._has[best][tp] = None
        return left

    def _level(self) -> bool:
        """Move one partition from a member that has at least two more; returns whether there was
        one. A move that brings it near is better than one that takes it away."""
        ranked = sorted(self._has, key=self._load)
        best: tuple[int, str, str, TopicPartition] | None = None
        for poor in ranked:
            for rich in reversed(ranked):
                if self._load(rich) < self._load(poor) + 2:
                    break
                for tp in self._has[rich]:
                    if tp.topic not in self._members[poor].topics:
                        continue
                    gain = self._is_near(poor, tp) - self._is_near(rich, tp)
                    if best is None or gain > best[0]:
                        best = gain, poor, rich, tp
                if best is not None and best[0] >= 0:
                    break
            if best is not None:
                break
        if best is None:
            return False
        _, poor, rich, tp = best
        del self._has[rich][tp]
        self._has[poor][tp] = None
        return True
