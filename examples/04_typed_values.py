"""Deserialize keys and values; the types of both are known to a type checker.

``Consumer[str, Order]`` gives ``Record[str, Order]``.

Prints::

    anna ordered 3 of tea
    ben ordered 1 of milk
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from kip848_client import Consumer, Record
from mock_coordinator import MockBroker


@dataclass(frozen=True)
class Order:
    item: str
    count: int


def read_key(data: bytes | None) -> str:
    return "" if data is None else data.decode()


def read_order(data: bytes | None) -> Order:
    """Deserializers get ``None`` for null values, e.g. tombstones."""
    return Order("nothing", 0) if data is None else Order(**json.loads(data))


def tell(record: Record[str, Order]) -> None:
    print(f"{record.key} ordered {record.value.count} of {record.value.item}")


async def consume(bootstrap: str) -> None:
    async with Consumer(
        "orders",
        bootstrap_servers=bootstrap,
        group_id="billing",
        auto_offset_reset="earliest",
        key_deserializer=read_key,
        value_deserializer=read_order,
    ) as consumer:
        for _ in range(2):
            tell(await consumer.getone())


async def main() -> None:
    async with MockBroker(topics={"orders": 1}) as broker:
        for name, order in (("anna", Order("tea", 3)), ("ben", Order("milk", 1))):
            value = json.dumps(order.__dict__).encode()
            broker.produce("orders", value, key=name.encode())
        await consume(broker.bootstrap)


if __name__ == "__main__":
    asyncio.run(main())
