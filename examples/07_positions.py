"""Read partitions without a group: choose them, seek, ask for offsets.

Prints::

    from 0 to 6
    last two: four, five
    half past: three
"""

from __future__ import annotations

import asyncio

from kip848_client import Consumer, TopicPartition
from mock_coordinator import MockBroker, NewRecord

LOG = TopicPartition("log", 0)
MINUTE_MS = 60_000


async def read(bootstrap: str) -> None:
    async with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([LOG])
        first = await consumer.beginning_offsets([LOG])
        end = await consumer.end_offsets([LOG])
        print(f"from {first[LOG]} to {end[LOG]}")

        consumer.seek(LOG, end[LOG] - 2)
        records = [await consumer.getone() for _ in range(2)]
        print("last two:", ", ".join((record.value or b"").decode() for record in records))

        found = await consumer.offsets_for_times({LOG: 30 * MINUTE_MS})
        at = found[LOG]
        if at is not None:
            consumer.seek(LOG, at.offset)
            record = await consumer.getone()
            print("half past:", (record.value or b"").decode())


async def main() -> None:
    async with MockBroker(topics={"log": 1}) as broker:
        words = ("zero", "one", "two", "three", "four", "five")
        for number, word in enumerate(words):
            broker.produce("log", NewRecord(word.encode(), timestamp_ms=number * 10 * MINUTE_MS))
        await read(broker.bootstrap)


if __name__ == "__main__":
    asyncio.run(main())
