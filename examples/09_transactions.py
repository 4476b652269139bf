"""Read, work and write in transactions: outputs and offsets together, or neither.

``ExactlyOnceProcessor`` does the same, and sees to rebalances (the next example).

Prints::

    no customer: nothing is committed, back to None
    committed up to 3
    readers see: ada, grace, linus
"""

from __future__ import annotations

import asyncio

from kip848_client import Consumer, Producer, TopicPartition
from mock_coordinator import MockBroker

ORDERS = TopicPartition("orders", 0)
Reader = Consumer[bytes | None, bytes | None]
Writer = Producer[bytes, bytes]


async def work(consumer: Reader, producer: Writer, customers: dict[bytes | None, bytes]) -> None:
    async with producer.transaction() as txn:  # an error that leaves the block aborts it
        for _ in range(3):
            record = await consumer.getone()
            if record.value not in customers:
                raise LookupError("no customer")
            await txn.send("invoices", customers[record.value])
        await txn.send_offsets(consumer)


async def rewind(consumer: Reader) -> None:
    """After a transaction that was not committed: its records are to be read again."""
    committed = await consumer.committed(ORDERS)
    print(f"nothing is committed, back to {committed}")
    if committed is None:
        await consumer.seek_to_beginning(ORDERS)
    else:
        consumer.seek(ORDERS, committed)


async def main() -> None:
    async with MockBroker(topics={"orders": 1, "invoices": 1}) as broker:
        broker.produce("orders", b"1", b"2", b"3")
        consumer = Consumer(
            "orders",
            bootstrap_servers=broker.bootstrap,
            group_id="billing",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        producer = Producer(bootstrap_servers=broker.bootstrap, transactional_id="billing-1")
        async with consumer, producer:
            customers: dict[bytes | None, bytes] = {b"1": b"ada", b"2": b"grace"}
            try:
                await work(consumer, producer, customers)
            except LookupError as err:
                print(f"{err}: ", end="")
                await rewind(consumer)
            await work(consumer, producer, customers | {b"3": b"linus"})
            print(f"committed up to {await consumer.committed(ORDERS)}")
        async with Consumer(
            bootstrap_servers=broker.bootstrap, isolation_level="read_committed"
        ) as reader:
            reader.assign([("invoices", 0)])
            await reader.seek_to_beginning()
            seen = [(await reader.getone()).value for _ in range(3)]
            print("readers see:", ", ".join((value or b"").decode() for value in seen))


if __name__ == "__main__":
    asyncio.run(main())
