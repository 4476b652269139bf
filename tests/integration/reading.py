"""What tests of the producer read back, and how they have a broker refuse something."""

from __future__ import annotations

import asyncio
from typing import Final

from aiokafka import AIOKafkaConsumer

from kip848_client import Record
from kip848_client.core.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from tests.integration.cluster import Cluster

__all__ = ["committed_values", "limit_messages", "read"]

_WAIT_S: Final = 25.0
_TOPIC_RESOURCE: Final = 2


async def read(
    cluster: Cluster, topic: str, count: int, isolation: str = "read_uncommitted"
) -> list[Record[bytes | None, bytes | None]]:
    """The first ``count`` records of a topic, by partition."""
    consumer = cluster.consumer(group=None, isolation_level=isolation)
    found: list[Record[bytes | None, bytes | None]] = []
    async with asyncio.timeout(_WAIT_S), consumer:
        numbers = await _partitions(cluster, topic)
        consumer.assign([(topic, number) for number in numbers])
        while len(found) < count:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                found += records
    return sorted(found, key=lambda each: (each.partition, each.offset))


async def _partitions(cluster: Cluster, topic: str) -> set[int]:
    async with cluster.producer() as producer:
        return set(await producer.partitions_for(topic))


async def committed_values(cluster: Cluster, topic: str, last: bytes) -> list[bytes | None]:
    """What read_committed shows of a topic, up to the value ``last``, to our consumer; aiokafka's
    must see the same."""
    ours: list[bytes | None] = []
    consumer = cluster.consumer(group=None, isolation_level="read_committed")
    async with asyncio.timeout(_WAIT_S), consumer:
        consumer.assign([(topic, number) for number in await _partitions(cluster, topic)])
        while last not in ours:
            ours.append((await consumer.getone()).value)
    theirs: list[bytes | None] = []
    async with (
        asyncio.timeout(_WAIT_S),
        AIOKafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        ) as other,
    ):
        while last not in theirs:
            theirs.append((await other.getone()).value)
    assert ours == theirs
    return ours


async def limit_messages(cluster: Cluster, topic: str, size_bytes: int) -> None:
    """Let brokers refuse larger batches."""
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=_TOPIC_RESOURCE,
        resource_name=topic,
        configs=(
            IncrementalAlterConfigsRequestAlterableConfig(
                name="max.message.bytes", value=str(size_bytes)
            ),
        ),
    )
    answer = await cluster.ask(IncrementalAlterConfigsRequest(resources=(resource,)))
    assert answer.responses[0].error_code == 0, answer
