"""A static member keeps its partitions over a restart: nobody else has to move.

Two members may not use one ``group_instance_id`` at the same time: the newcomer is refused.

Prints::

    group epoch unchanged: True
    same partitions: True
    a twin is refused: UNRELEASED_INSTANCE_ID
"""

from __future__ import annotations

import asyncio

from kip848_client import BrokerError, Consumer, TopicPartition
from mock_coordinator import MockBroker


def instance(bootstrap: str) -> Consumer[bytes | None, bytes | None]:
    return Consumer(
        "orders",
        bootstrap_servers=bootstrap,
        group_id="billing",
        group_instance_id="worker-1",
    )


async def assigned(consumer: Consumer[bytes | None, bytes | None]) -> frozenset[TopicPartition]:
    return await consumer.wait_assigned(timeout_ms=10_000)


async def main() -> None:
    async with MockBroker(topics={"orders": 4}) as broker:
        async with instance(broker.bootstrap) as before:
            had = await assigned(before)
            epoch = before.group_metadata().member_epoch
        async with instance(broker.bootstrap) as after:
            same = await assigned(after) == had
            print(f"group epoch unchanged: {after.group_metadata().member_epoch == epoch}")
            print(f"same partitions: {same}")
            async with instance(broker.bootstrap) as twin:
                try:
                    await twin.getone()
                except BrokerError as err:
                    print(f"a twin is refused: {err.name}")


if __name__ == "__main__":
    asyncio.run(main())
