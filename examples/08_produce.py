"""Send records: one and its place, many together, and what a broker refuses.

Prints::

    orders-0@0
    1000 more, up to 1000
    refused: INVALID_RECORD
"""

from __future__ import annotations

import asyncio
import json

from kip848_client import BrokerError, Producer
from mock_coordinator import MockBroker


async def produce(bootstrap: str) -> None:
    async with Producer(
        bootstrap_servers=bootstrap,
        key_serializer=str.encode,
        value_serializer=lambda value: json.dumps(value).encode(),
    ) as producer:
        place = await producer.send_and_wait("orders", {"total": 5}, key="ada")
        print(f"{place.topic}-{place.partition}@{place.offset}")

        # send() puts a record into a batch; the future tells where it is
        futures = [await producer.send("orders", {"total": n}, key="ada") for n in range(1000)]
        await producer.flush()
        print(f"{len(futures)} more, up to {futures[-1].result().offset}")

        try:
            await producer.send_and_wait("orders", {}, key="ada", timestamp_ms=2**62)
        except BrokerError as err:
            print(f"refused: {err.name}")


async def main() -> None:
    async with MockBroker(topics={"orders": 1}) as broker:
        await produce(broker.bootstrap)


if __name__ == "__main__":
    asyncio.run(main())
