"""``sticky``: even, and members keep their partitions if possible."""

from __future__ import annotations

from collections.abc import Mapping

from kip848_client.core.assignors import (
    GroupSpec,
    MemberSpec,
    SubscriptionType,
    TopicMetadata,
    UniformAssignor,
)
from kip848_client.core.client_assignors._model import (
    GroupAssignment,
    GroupMember,
    GroupTopic,
    MemberAssignment,
)
from kip848_client.core.client_assignors._shipped import ShippedAssignor
from kip848_client.core.types import MemberId, TopicId, TopicPartition

__all__ = ["StickyAssignor"]


class StickyAssignor(ShippedAssignor):
    """Computes in a member what Kafka's ``uniform`` computes on the broker."""

    name: str = "sticky"

    def assign(
        self, members: Mapping[str, GroupMember], topics: Mapping[str, GroupTopic]
    ) -> GroupAssignment:
        """See ``ClientAssignor.assign``."""
        names = {topic.topic_id: name for name, topic in topics.items()}
        specs = {MemberId(each): _spec(members[each], topics) for each in sorted(members)}
        alike = len({member.topics for member in members.values()}) <= 1
        kind = SubscriptionType.HOMOGENEOUS if alike else SubscriptionType.HETEROGENEOUS
        metadata = {
            topic.topic_id: TopicMetadata(name, topic.partition_count)
            for name, topic in topics.items()
        }
        result = UniformAssignor().assign(GroupSpec(specs, kind), metadata)
        return GroupAssignment(
            {
                member_id: MemberAssignment(
                    [
                        TopicPartition(names[topic_id], number)
                        for topic_id, numbers in partitions.items()
                        for number in numbers
                    ]
                )
                for member_id, partitions in result.members.items()
            }
        )


def _spec(member: GroupMember, topics: Mapping[str, GroupTopic]) -> MemberSpec:
    target: dict[TopicId, list[int]] = {}
    for tp in member.target:
        if tp.topic in topics:
            target.setdefault(topics[tp.topic].topic_id, []).append(tp.partition)
    return MemberSpec(
        topic_ids=tuple(topics[each].topic_id for each in member.topics),
        target={topic_id: tuple(numbers) for topic_id, numbers in target.items()},
        instance_id=member.instance_id,
        rack_id=member.rack_id,
    )
