"""Consume a topic as a member of a group.

Runs on the bundled broker; for a real one, give its address to ``bootstrap_servers``.

Prints::

    orders-0@0: one
    orders-0@1: two
    orders-0@2: three
"""

from __future__ import annotations

import asyncio

from kip848_client import Consumer
from mock_coordinator import MockBroker


async def consume(bootstrap: str) -> None:
    async with Consumer(
        "orders",
        bootstrap_servers=bootstrap,
        group_id="billing",
        auto_offset_reset="earliest",
    ) as consumer:
        async for record in consumer:
            text = "" if record.value is None else record.value.decode()
            print(f"{record.topic}-{record.partition}@{record.offset}: {text}")
            if record.offset == 2:
                break


async def main() -> None:
    async with MockBroker(topics={"orders": 3}) as broker:
        broker.produce("orders", b"one", b"two", b"three")
        await consume(broker.bootstrap)


if __name__ == "__main__":
    asyncio.run(main())
