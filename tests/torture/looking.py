"""What is in the topics when all is over."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition

from kip848_client import Consumer, Producer
from tests.torture.brokers import Brokers
from tests.torture.judge import Verdict, judged
from tests.torture.names import END, IN, OUT, PARTITIONS

__all__ = ["LAST", "Found", "look"]

LAST: Final = "the-end"
"""The transactional id of what is written last."""
_PATIENCE_S: Final = 90.0


@dataclass(frozen=True, slots=True)
class Found:
    """Values of ``in`` and ``out``, by partition."""

    source: dict[int, list[bytes]]
    copies: dict[int, list[bytes]]

    def verdict(self, fed: int) -> Verdict:
        """What is wrong with them, if so many records were acknowledged."""
        return judged(fed, self.source, self.copies)


async def look(brokers: Brokers) -> Found:
    """What the topics have. Raises ``TimeoutError`` where a transaction hangs."""
    settings: dict[str, Any] = {"bootstrap_servers": brokers.bootstrap}
    last = Producer(**settings, transactional_id=LAST)
    async with last as producer, producer.transaction() as txn:
        for number in range(PARTITIONS):
            await txn.send(OUT, END, partition=number)
    async with Producer(**settings) as producer:
        for number in range(PARTITIONS):
            await producer.send_and_wait(IN, END, partition=number)
    source = await _read(brokers, IN)
    copies = await _read(brokers, OUT)
    theirs = await _read_by_aiokafka(brokers, OUT)
    assert copies == theirs, "two readers see different things"
    return Found(source, copies)


def _empty() -> dict[int, list[bytes]]:
    return {number: [] for number in range(PARTITIONS)}


def _is_whole(values: dict[int, list[bytes]]) -> bool:
    return all(each and each[-1] == END for each in values.values())


def _without_end(values: dict[int, list[bytes]]) -> dict[int, list[bytes]]:
    return {number: each[:-1] for number, each in values.items()}


async def _read(brokers: Brokers, topic: str) -> dict[int, list[bytes]]:
    """All committed values, by partition, up to the last one."""
    values = _empty()
    consumer: Consumer[Any, Any] = Consumer(
        bootstrap_servers=brokers.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    async with asyncio.timeout(_PATIENCE_S), consumer:
        consumer.assign([(topic, number) for number in values])
        while not _is_whole(values):
            for tp, records in (await consumer.getmany(timeout_ms=500)).items():
                values[tp.partition] += [record.value for record in records]
    return _without_end(values)


async def _read_by_aiokafka(brokers: Brokers, topic: str) -> dict[int, list[bytes]]:
    values = _empty()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=brokers.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with asyncio.timeout(_PATIENCE_S), consumer:
        consumer.assign([TopicPartition(topic, number) for number in values])
        while not _is_whole(values):
            got: dict[Any, list[Any]] = await consumer.getmany(timeout_ms=500)
            for tp, records in got.items():
                values[tp.partition] += [record.value for record in records]
    return _without_end(values)
