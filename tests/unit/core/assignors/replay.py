"""A group's targets replayed from joins, leaves and heartbeats: just enough coordinator.

Members are kept in timeline order; a join or a heartbeat recomputes the target when the inputs have
changed since the last time; a leave only removes. Nobody acknowledges anything, because targets do
not depend on what members own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kip848_client.core.assignors import (
    BUILTIN,
    NO_PARTITIONS,
    GroupSpec,
    MemberSpec,
    Partitions,
    TimelineOrder,
    TopicMetadata,
    elect_assignor,
    member_order,
    string_set_order,
    subscription_type,
)
from kip848_client.core.types import MemberId, TopicId

__all__ = ["ReplayedGroup", "topic_id"]


def topic_id(number: int) -> TopicId:
    """The id 0..0number, as in the worked examples."""
    return TopicId(number.to_bytes(16, "big"))


@dataclass(frozen=True)
class _Member:
    names: tuple[str, ...]
    instance_id: str | None
    assignor: str | None


@dataclass
class ReplayedGroup:
    """One group and its topics (name -> (id, partition count))."""

    topics: Mapping[str, tuple[TopicId, int]]
    assignor: str | None = None
    members: dict[MemberId, _Member] = field(default_factory=dict)
    targets: dict[MemberId, Partitions] = field(default_factory=dict)
    timeline: TimelineOrder = field(default_factory=TimelineOrder)
    stale: bool = False
    written: set[str] = field(default_factory=set)

    def join(self, member_id: str, names: Sequence[str], instance_id: str | None = None) -> None:
        """A new member: epoch 0, with its subscription."""
        self.stale = True
        sender = _Member(tuple(names), instance_id, self.assignor)
        self._compute(MemberId(member_id), sender)
        self.members[MemberId(member_id)] = sender
        self.timeline.put(member_id)  # its metadata record
        self.timeline.put(member_id)  # its current assignment record

    def leave(self, member_id: str) -> None:
        """Epoch -1."""
        self.stale = True
        self.timeline.remove(member_id)
        del self.members[MemberId(member_id)]
        self.targets.pop(MemberId(member_id), None)

    def heartbeat(self, member_id: str) -> None:
        """A heartbeat without any change."""
        self._compute(MemberId(member_id), self.members[MemberId(member_id)])

    def shown(self) -> dict[str, dict[str, list[int]]]:
        """The targets by topic name, partitions sorted."""
        names = {id_: name for name, (id_, _) in self.topics.items()}
        return {
            member_id: {names[id_]: sorted(partitions) for id_, partitions in target.items()}
            for member_id, target in self.targets.items()
        }

    def _compute(self, sender_id: MemberId, sender: _Member) -> None:
        self.written = set()
        if not self.stale:
            return
        members = {**self.members, sender_id: sender}
        counts = Counter(name for member in members.values() for name in set(member.names))
        kind = subscription_type(len(members), {n: (c, 0) for n, c in counts.items()}, ())
        specs: dict[MemberId, MemberSpec] = {}
        for key in member_order(map(MemberId, self.timeline), joining=sender_id):
            member = members[key]
            names = member.names if key == sender_id else sorted(set(member.names))
            specs[key] = MemberSpec(
                topic_ids=tuple(self.topics[name][0] for name in string_set_order(names)),
                target=self.targets.get(key, NO_PARTITIONS),
                instance_id=member.instance_id,
            )
        votes = Counter(m.assignor for m in self.members.values() if m.assignor)
        name = elect_assignor(votes, "uniform", cast=sender.assignor)
        metadata = {id_: TopicMetadata(name, size) for name, (id_, size) in self.topics.items()}
        result = BUILTIN[name].assign(GroupSpec(specs, kind), metadata)
        for key, target in result.members.items():
            if key not in self.targets or target is not self.targets[key]:
                self.written.add(key)
                self.targets[key] = target
        self.stale = False
