"""Consumers of the import swap, as tests make and use them."""

from __future__ import annotations

import asyncio
from typing import Any

import aiokafka

from kip848_client.aiokafka import AIOKafkaConsumer
from tests.integration.cluster import Cluster

__all__ = ["Listener", "made", "take"]


def made(cluster: Cluster, *topics: str, group: str | None, **settings: Any) -> Any:
    settings.setdefault("auto_offset_reset", "earliest")
    settings.setdefault("fetch_max_wait_ms", 100)
    return AIOKafkaConsumer(
        *topics, bootstrap_servers=cluster.bootstrap, group_id=group, **settings
    )


async def take(consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found.append(await consumer.getone())
    return found


class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Remembers its calls. The first ``failures`` calls of ``on_partitions_assigned`` fail."""

    def __init__(self, failures: int = 0) -> None:
        self.calls: list[tuple[str, set[Any]]] = []
        self.failures = failures

    def on_partitions_revoked(self, revoked: set[Any]) -> Any:
        return self._revoked(revoked)

    async def _revoked(self, revoked: set[Any]) -> None:
        self.calls.append(("revoked", revoked))

    def on_partitions_assigned(self, assigned: set[Any]) -> None:
        self.calls.append(("assigned", assigned))
        if self.failures:
            self.failures -= 1
            raise ValueError("not now")
