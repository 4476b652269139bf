"""Subscribe by a pattern that the broker matches, now and whenever topics come and go.

It is an RE2 expression for the whole name: a prefix needs ``.*`` after it.

Prints::

    orders.eu: hallo
    orders.us: hello
"""

from __future__ import annotations

import asyncio

from kip848_client import Consumer
from mock_coordinator import MockBroker


async def consume(bootstrap: str) -> None:
    consumer = Consumer(
        bootstrap_servers=bootstrap, group_id="billing", auto_offset_reset="earliest"
    )
    consumer.subscribe(pattern=r"orders\..*")
    async with consumer:
        found: dict[str, bytes] = {}
        while len(found) < 2:
            record = await consumer.getone()
            found[record.topic] = record.value or b""
        for topic, value in sorted(found.items()):
            print(f"{topic}: {value.decode()}")


async def main() -> None:
    async with MockBroker(topics={"orders.eu": 1, "orders.us": 1, "other": 1}) as broker:
        broker.produce("orders.eu", b"hallo")
        broker.produce("orders.us", b"hello")
        broker.produce("other", b"unheard")
        await consume(broker.bootstrap)


if __name__ == "__main__":
    asyncio.run(main())
