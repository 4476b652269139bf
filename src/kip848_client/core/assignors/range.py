"""The range assignor: contiguous blocks of every topic, in a fixed order of the members.

Members are sorted, static ones first by instance id, then dynamic ones by member id, so that a
restarted static member gets its old block back. Each topic is cut into as many blocks as it has
subscribers, the first ``partitions mod subscribers`` of them one longer. When all members subscribe
to the same topics and the topics have equal partition counts, a member gets the same numbers of
every topic: that is what joins of co-partitioned topics need. Nothing is sticky.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kip848_client.core.assignors._draft import same_partitions
from kip848_client.core.assignors._java_order import (
    table_order,
    table_size_for,
    topic_spread,
    utf16_key,
)
from kip848_client.core.assignors._spec import (
    Assignment,
    Assignor,
    AssignorError,
    GroupSpec,
    MemberSpec,
    Partitions,
    SubscriptionType,
    TopicMetadata,
)
from kip848_client.core.types import MemberId, TopicId

__all__ = ["RangeAssignor"]


class RangeAssignor(Assignor):
    """Kafka's ``range`` assignor (4.0 to 4.4)."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """``range``."""
        return "range"

    def assign(self, group: GroupSpec, topics: Mapping[TopicId, TopicMetadata]) -> Assignment:
        """Cut every topic into blocks. Raises ``AssignorError`` for a topic not in ``topics``."""
        ranked = sorted(group.members.items(), key=_rank)
        blocks: list[dict[TopicId, tuple[int, ...]]] = [{} for _ in ranked]
        for topic_id, subscribers in _subscribers(ranked, group.subscription_type).items():
            topic = topics.get(topic_id)
            if topic is None:
                raise AssignorError("Member is subscribed to a non-existent topic")
            cut = _blocks(topic.partition_count, len(subscribers))
            for index, block in zip(subscribers, cut, strict=False):  # later ones get nothing
                blocks[index][topic_id] = block
        targets: dict[MemberId, Partitions] = {}
        for (member_id, member), mine in zip(ranked, blocks, strict=True):
            target = _in_java_order(mine, member, group.subscription_type)
            same = same_partitions(target, member.target)
            targets[member_id] = member.target if same else target
        return Assignment({member_id: targets[member_id] for member_id in group.members})


def _rank(item: tuple[MemberId, MemberSpec]) -> tuple[bool, bytes]:
    """Static members by instance id, then dynamic ones by member id."""
    member_id, member = item
    if member.instance_id is not None:
        return False, utf16_key(member.instance_id)
    return True, utf16_key(member_id)


def _subscribers(
    ranked: list[tuple[MemberId, MemberSpec]], subscription_type: SubscriptionType
) -> dict[TopicId, Sequence[int]]:
    """Topic id -> its subscribers, as numbers in rank order.

    In a homogeneous group the first member's topics stand for all.
    """
    if not ranked:
        return {}
    if subscription_type is SubscriptionType.HOMOGENEOUS:
        everyone = range(len(ranked))
        return dict.fromkeys(ranked[0][1].topic_ids, everyone)
    subscribers: dict[TopicId, list[int]] = {}
    for index, (_, member) in enumerate(ranked):
        for topic_id in member.topic_ids:
            subscribers.setdefault(topic_id, []).append(index)
    return dict(subscribers)


def _blocks(partition_count: int, subscriber_count: int) -> Iterator[tuple[int, ...]]:
    """The blocks that are not empty, front first: the longer ones come first."""
    length, longer = divmod(partition_count, subscriber_count)
    start = 0
    while start < partition_count:
        end = start + length + (longer > 0)
        longer -= 1
        yield tuple(range(start, end))
        start = end


def _in_java_order(
    blocks: dict[TopicId, tuple[int, ...]], member: MemberSpec, subscription_type: SubscriptionType
) -> Partitions:
    """The member's blocks in the order of the map that Kafka puts them into.

    The map is sized for the topics of the member, and filled in their order; in a homogeneous group
    those of the first member, in whose order ``blocks`` is.
    """
    if len(blocks) <= 1:
        return blocks
    inserted = list(blocks)
    size = len(member.topic_ids)
    if subscription_type is SubscriptionType.HETEROGENEOUS:
        inserted = [topic_id for topic_id in member.topic_ids if topic_id in blocks]
        size = size if member.subscription_size is None else member.subscription_size
    capacity = table_size_for(size * 4 // 3 + 1)
    return {t: blocks[t] for t in table_order(inserted, topic_spread, capacity)}
