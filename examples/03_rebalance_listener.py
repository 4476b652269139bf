"""Be told what comes and goes when members join and leave.

Only the partitions that move are named: the others are consumed without a pause.

Prints::

    first has 4 partitions
    first gives up 2
    second has 2 partitions
    first has 2 more
"""

from __future__ import annotations

import asyncio

from kip848_client import Consumer, TopicPartition
from mock_coordinator import MockBroker

FAST = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
}


class Narrator:
    """Methods may be plain or coroutines; ``on_partitions_lost`` is optional."""

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        if len(assigned) == 4:
            print("first has 4 partitions")
        elif assigned:
            print(f"first has {len(assigned)} more")

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        if len(revoked) < 4:  # at the end, everything is given up
            print(f"first gives up {len(revoked)}")


async def poll(consumer: Consumer[bytes | None, bytes | None]) -> None:
    async for _ in consumer:
        pass


async def main() -> None:
    async with MockBroker(topics={"orders": 4}, config=FAST) as broker:
        first = Consumer(bootstrap_servers=broker.bootstrap, group_id="billing")
        first.subscribe(["orders"], listener=Narrator())
        async with first, asyncio.TaskGroup() as tasks:
            polling = tasks.create_task(poll(first))
            await first.wait_assigned()
            async with Consumer(
                "orders", bootstrap_servers=broker.bootstrap, group_id="billing"
            ) as second:
                print(f"second has {len(await second.wait_assigned())} partitions")
            await broker.wait_for(lambda: len(first.assignment()) == 4)
            polling.cancel()


if __name__ == "__main__":
    asyncio.run(main())
