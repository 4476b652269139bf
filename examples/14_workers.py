"""Share names of connectors and tasks among workers, one of which leaves.

``--bootstrap HOST:PORT`` plays it on a real Kafka, from 4.0 on: the workers are members of a
classic group there, as Kafka Connect's own are. What runs under a name is up to the program.

Prints::

    first runs orders orders-0 orders-1 payments payments-0
    first and second run 5 items
    first runs orders orders-0 orders-1 payments payments-0
"""

from __future__ import annotations

import asyncio
import sys

from kip848_client.connect import AssignedItem, Worker
from mock_coordinator import MockBroker

CONNECTORS = {"orders": 2, "payments": 1}
CONFIG = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.initial.rebalance.delay.ms": "0",  # for the first ones to join; 3 seconds by default
}
CHANGED = asyncio.Event()


class Items:
    """Begins and ends what this worker is to run; here it only takes note."""

    def __init__(self) -> None:
        self.running: set[AssignedItem] = set()

    async def on_assigned(self, items: tuple[AssignedItem, ...]) -> None:
        self.running |= set(items)
        CHANGED.set()

    async def on_revoked(self, items: tuple[AssignedItem, ...]) -> None:
        self.running -= set(items)  # when this returns, another worker starts them
        CHANGED.set()

    on_lost = on_revoked


async def all_run(*workers: Items) -> None:
    while not all(each.running for each in workers) or sum(len(w.running) for w in workers) != 5:
        CHANGED.clear()
        await CHANGED.wait()


async def main() -> None:
    real = sys.argv[2] if sys.argv[1:2] == ["--bootstrap"] else None
    async with MockBroker(config=CONFIG) as broker:

        def worker(name: str, items: Items) -> Worker:
            return Worker(
                CONNECTORS,
                items,
                bootstrap_servers=real or broker.bootstrap,
                group_id="copiers",
                rest_advertised_url=f"http://{name}:8083/",
                scheduled_rebalance_max_delay_ms=500,  # how long items wait for one that left
            )

        first, second = Items(), Items()
        async with worker("first", first):
            await all_run(first)
            print("first runs", *sorted(map(str, first.running)))
            async with worker("second", second):
                await all_run(first, second)
                print(f"first and second run {len(first.running | second.running)} items")
            await all_run(first)
            print("first runs", *sorted(map(str, first.running)))


if __name__ == "__main__":
    asyncio.run(main())
