"""What a reader of committed records sees."""

from __future__ import annotations

import asyncio
from typing import Any

from kip848_client import Consumer
from kip848_client.core.types import TopicPartition

__all__ = ["committed_values"]


def committed_values(bootstrap: str, topic: str, partitions: int) -> list[bytes]:
    """All values of a topic that are committed, sorted. Stops at transactions that are open."""
    return asyncio.run(_read(bootstrap, [TopicPartition(topic, p) for p in range(partitions)]))


async def _read(bootstrap: str, tps: list[TopicPartition]) -> list[bytes]:
    consumer: Consumer[Any, Any] = Consumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=50,
    )
    found: list[bytes] = []
    async with consumer:
        consumer.assign(tps)
        ends = await consumer.end_offsets(tps)
        while any([await consumer.position(tp) < end for tp, end in ends.items()]):
            for records in (await consumer.getmany(timeout_ms=100)).values():
                found.extend(record.value for record in records)
    return sorted(found)
