"""Let a member assign: large consumers get more partitions than small ones.

Only brokers with the client-side assignors of KIP-848's text can be asked.

Prints::

    small has 2 partitions
    middle has 4 partitions
    large has 6 partitions
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

from kip848_client import Consumer, TopicPartition
from kip848_client.assignors import (
    AssignorMetadata,
    GroupAssignment,
    GroupMember,
    GroupTopic,
    MemberAssignment,
    NewAssignment,
)
from mock_coordinator import MockBroker

SIZES = {"small": 1, "middle": 2, "large": 3}
FAST = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
}


class ByCapacity:
    """What one member says (its capacity), and what is computed of what all say."""

    name, minimum_version, maximum_version = "by-capacity", 0, 0

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity

    def metadata(self) -> AssignorMetadata:
        return AssignorMetadata(str(self.capacity).encode())

    def assign(
        self, members: Mapping[str, GroupMember], topics: Mapping[str, GroupTopic]
    ) -> GroupAssignment:
        capacity = {each: int(member.metadata.data) for each, member in members.items()}
        given: dict[str, list[TopicPartition]] = {each: [] for each in members}
        for name, topic in topics.items():
            for partition in topic.partitions(name):
                free = min(given, key=lambda each: (len(given[each]) + 1) / capacity[each])
                given[free].append(partition)
        return GroupAssignment({each: MemberAssignment(mine) for each, mine in given.items()})

    def on_assignment(self, assignment: NewAssignment) -> None: ...


async def main() -> None:
    async with MockBroker(topics={"t": 12}, config=FAST) as broker, AsyncExitStack() as stack:
        at = broker.bootstrap
        group = {
            name: Consumer(
                "t", bootstrap_servers=at, group_id="g", group_local_assignors=[ByCapacity(n)]
            )
            for name, n in SIZES.items()
        }
        for consumer in group.values():
            await stack.enter_async_context(consumer)
        shares = [2 * capacity for capacity in SIZES.values()]
        await broker.wait_for(lambda: [len(c.assignment()) for c in group.values()] == shares)
        for name, consumer in group.items():
            print(f"{name} has {len(consumer.assignment())} partitions")


if __name__ == "__main__":
    asyncio.run(main())
