"""Watch a consumer: is it well, what happens to its membership, and numbers for monitoring.

Prints::

    assigned 2
    ready, with 2 partitions
    fenced by UNKNOWN_MEMBER_ID
    lost 2: fenced by UNKNOWN_MEMBER_ID
    assigned 2
    ready, with 2 partitions
    fences so far: 1
"""

from __future__ import annotations

import asyncio

from kip848_client import Consumer, Metrics
from kip848_client.error_codes import ErrorCode
from kip848_client.observe import MemberFenced, PartitionsAssigned, PartitionsLost
from mock_coordinator import MockBroker
from mock_coordinator.core.faults import Fault, Match, Refuse

FAST = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
}


async def tell(consumer: Consumer[bytes | None, bytes | None]) -> None:
    assignments = 0
    async for event in consumer.events():
        match event:
            case PartitionsAssigned(partitions=partitions) if partitions:
                print("assigned", len(partitions))
                assignments += 1
                if assignments == 2:
                    return
            case MemberFenced(cause=cause):
                print("fenced by", cause)
            case PartitionsLost(partitions=partitions, cause=cause):
                print(f"lost {len(partitions)}: {cause}")
            case _:
                pass


def is_ready(consumer: Consumer[bytes | None, bytes | None]) -> str:
    health = consumer.health()
    return f"{'ready' if health.ready else health.problems}, with {health.assigned} partitions"


async def main() -> None:
    metrics = Metrics()
    async with MockBroker(topics={"orders": 2}, config=FAST) as broker:
        consumer = Consumer(
            "orders", bootstrap_servers=broker.bootstrap, group_id="billing", metrics=metrics
        )
        telling = asyncio.ensure_future(tell(consumer))
        await asyncio.sleep(0)  # it follows the events before there are any
        async with consumer:
            await consumer.wait_assigned()
            print(is_ready(consumer))
            fence = Refuse(code=ErrorCode.UNKNOWN_MEMBER_ID)
            broker.faults.add(Fault(fence, Match(api="ConsumerGroupHeartbeat"), times=1))
            await telling
            await consumer.wait_assigned()
            print(is_ready(consumer))
            print("fences so far:", int(metrics.value("fenced-total", group_id="billing")))


if __name__ == "__main__":
    asyncio.run(main())
