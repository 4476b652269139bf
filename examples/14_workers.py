"""Share connectors and their tasks among workers, one of which leaves.

Only brokers with groups of type connect can be asked; the bundled one is such a broker.

Prints::

    first runs orders, payments, orders-0, orders-1, payments-0
    first and second run 5 items
    first runs orders, payments, orders-0, orders-1, payments-0
"""

from __future__ import annotations

import asyncio

from kip848_client.connect import IncrementalCooperativeAssignor
from kip848_client.worker import AssignedItem, Worker
from mock_coordinator import MockBroker

CONNECTORS = {"orders": 2, "payments": 1}
FAST = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.initial.rebalance.delay.ms": "0",  # for the first ones to join; 3 seconds by default
}


class Items:
    """Begins and ends what this worker is to run; here it only takes note."""

    def __init__(self) -> None:
        self.running: set[AssignedItem] = set()

    async def on_assigned(self, items: tuple[AssignedItem, ...]) -> None:
        self.running |= set(items)

    async def on_revoked(self, items: tuple[AssignedItem, ...]) -> None:
        self.running -= set(items)  # when this returns, another worker starts them

    async def on_lost(self, items: tuple[AssignedItem, ...]) -> None:
        self.running -= set(items)


def shown(items: Items) -> str:
    in_order = sorted(items.running, key=lambda item: (item.task >= 0, item))
    return ", ".join(map(str, in_order))


async def main() -> None:
    async with MockBroker(config=FAST) as broker:

        def worker(name: str, items: Items) -> Worker:
            return Worker(
                CONNECTORS,
                items,
                bootstrap_servers=broker.bootstrap,
                group_id="copiers",
                rest_advertised_url=f"http://{name}:8083/",
                # items of a worker that leaves wait so long for it to come back
                assignors=(IncrementalCooperativeAssignor(scheduled_rebalance_max_delay_ms=500),),
            )

        first, second = Items(), Items()
        async with worker("first", first):
            await broker.wait_for(lambda: len(first.running) == 5)
            print(f"first runs {shown(first)}")
            async with worker("second", second):
                await broker.wait_for(lambda: 0 < len(second.running) == 5 - len(first.running))
                print(f"first and second run {len(first.running | second.running)} items")
            await broker.wait_for(lambda: len(first.running) == 5)
            print(f"first runs {shown(first)}")


if __name__ == "__main__":
    asyncio.run(main())
