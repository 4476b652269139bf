"""Record what happens to the members of a group, and see how long partitions had no owner.

A second member joins, takes a partition over, and gives it back when it leaves.
``kip848 report events.jsonl`` makes a page of the same file, with pictures.

Prints::

    orders-0: owned by 1 member
    orders-1: owned by 2 members
    every heartbeat was answered: True
    commits of members that had lost their partition: 0
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from kip848_client import Consumer
from kip848_client.history import tables_of
from kip848_client.history.recording import read_files, recording
from mock_coordinator import MockBroker

FAST = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
}


async def has(consumer: Consumer[bytes | None, bytes | None], partitions: int) -> None:
    events = consumer.events()
    while len(consumer.assignment()) != partitions:
        await anext(events)


async def work(broker: MockBroker, path: Path) -> None:
    """Two members share the partitions for a while."""
    first, second = (
        Consumer("orders", bootstrap_servers=broker.bootstrap, group_id="billing", client_id=name)
        for name in ("first", "second")
    )
    async with recording(first, path), first:
        await has(first, 2)
        async with recording(second, path), second:
            await has(second, 1)
        await has(first, 2)


def partitions(number: int) -> str:
    return f"owned by {number} member{'' if number == 1 else 's'}"


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "events.jsonl"
        async with MockBroker(topics={"orders": 2}, config=FAST, events=path) as broker:
            await work(broker, path)
        tables = tables_of(read_files([path]).events)
    for row in tables.partition_downtime:
        print(f"{row.topic}-{row.partition}: {partitions(row.owners)}")
    print("every heartbeat was answered:", not any(row.lost for row in tables.heartbeat_sla))
    print("commits of members that had lost their partition:", len(tables.zombie_commits))


if __name__ == "__main__":
    asyncio.run(main())
