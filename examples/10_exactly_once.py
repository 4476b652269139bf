"""One function from record to record, each counted once; what it cannot do goes to another topic.

Prints::

    invoices: 10, 20, 40
    orders-dead: b'three' of orders-0@2, ValueError
"""

from __future__ import annotations

import asyncio

from kip848_client import Consumer, ExactlyOnceProcessor, Producer, ProducerRecord, Record
from mock_coordinator import MockBroker

Bytes = Record[bytes | None, bytes | None]


def invoice(order: Bytes) -> ProducerRecord:
    """It may be called again for the same record; what it returns counts once."""
    return ProducerRecord("invoices", b"%d" % (int(order.value or b"") * 10), key=order.key)


async def process(bootstrap: str, instance: str, enough: asyncio.Event) -> None:
    processor = ExactlyOnceProcessor(
        "orders",
        invoice,
        consumer=Consumer(
            bootstrap_servers=bootstrap,
            group_id="billing",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        ),
        # the same after a restart, and no other instance's
        producer=Producer(bootstrap_servers=bootstrap, transactional_id=f"billing-{instance}"),
        dead_letter_topic="orders-dead",
    )
    async with processor:
        running = asyncio.create_task(processor.run())  # until stop(), or an error that ends it
        await enough.wait()
    await running


async def read(bootstrap: str, topic: str, count: int) -> list[Bytes]:
    async with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([(topic, 0)])
        await consumer.seek_to_beginning()
        return [await consumer.getone() for _ in range(count)]


async def main() -> None:
    async with MockBroker(topics={"orders": 1, "invoices": 1, "orders-dead": 1}) as broker:
        broker.produce("orders", b"1", b"2", b"three", b"4")
        enough = asyncio.Event()
        task = asyncio.create_task(process(broker.bootstrap, "1", enough))
        invoices = await read(broker.bootstrap, "invoices", 3)
        (dead,) = await read(broker.bootstrap, "orders-dead", 1)
        enough.set()
        await task
    print("invoices:", ", ".join((each.value or b"").decode() for each in invoices))
    said = {
        name.removeprefix("kip848.errors."): (text or b"").decode() for name, text in dead.headers
    }
    where = f"{said['topic']}-{said['partition']}@{said['offset']}"
    print(f"orders-dead: {dead.value!r} of {where}, {said['exception.class.name'].split('.')[-1]}")


if __name__ == "__main__":
    asyncio.run(main())
