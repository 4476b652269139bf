"""Take records in batches and commit by hand, after each batch was processed.

What is not committed comes again after a crash: process first, commit then.

Prints::

    4 records, committed up to 4
    4 records, committed up to 8
    2 records, committed up to 10
"""

from __future__ import annotations

import asyncio

from kip848_client import Consumer, TopicPartition
from mock_coordinator import MockBroker

ORDERS = TopicPartition("orders", 0)


async def consume(bootstrap: str) -> None:
    async with Consumer(
        "orders",
        bootstrap_servers=bootstrap,
        group_id="billing",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=4,
    ) as consumer:
        done = 0
        while done < 10:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                done += len(records)
                stored = await consumer.commit()
                print(f"{len(records)} records, committed up to {stored[ORDERS].offset}")


async def main() -> None:
    async with MockBroker(topics={"orders": 1}) as broker:
        broker.produce("orders", *[b"%d" % number for number in range(10)])
        await consume(broker.bootstrap)


if __name__ == "__main__":
    asyncio.run(main())
