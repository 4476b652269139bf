"""Parked fetches, indexed by partition, deadline and connection."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from kip848_client.core.types import TopicIdPartition
from mock_coordinator.core.fetching.fetches import FetchPlan

__all__ = ["Parked", "ParkedFetches"]


@dataclass(slots=True, eq=False)
class Parked:
    """One waiting fetch, and where its answer goes."""

    connection: int
    correlation: int
    version: int
    plan: FetchPlan
    node_id: int | None = None
    """The broker that it waits at."""
    number: int = 0
    """Given by ``ParkedFetches.park``."""


class ParkedFetches:
    """All waiting fetches, in order of arrival."""

    def __init__(self) -> None:
        self._number = 0
        self._waiting: dict[int, Parked] = {}
        self._partitions: dict[int, tuple[TopicIdPartition, ...]] = {}
        self._by_partition: dict[TopicIdPartition, dict[int, None]] = {}
        self._deadlines: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def park(self, parked: Parked, partitions: tuple[TopicIdPartition, ...]) -> None:
        """Keep a fetch until it is removed; ``partitions`` are those whose changes concern it."""
        self._number += 1
        number = parked.number = self._number
        self._waiting[number] = parked
        self._partitions[number] = partitions
        for partition in partitions:
            self._by_partition.setdefault(partition, {})[number] = None
        heapq.heappush(self._deadlines, (parked.plan.deadline_ms, number))

    @property
    def deadline_ms(self) -> int | None:
        """When the first of them has waited long enough."""
        while self._deadlines and self._deadlines[0][1] not in self._waiting:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def touched(self, partitions: Iterable[TopicIdPartition]) -> tuple[Parked, ...]:
        """Those that wait for one of these partitions."""
        if not self._waiting:
            return ()
        numbers: dict[int, None] = {}
        for partition in partitions:
            numbers.update(self._by_partition.get(partition, {}))
        return tuple(self._waiting[number] for number in sorted(numbers))

    def due(self, now_ms: int) -> tuple[Parked, ...]:
        """Those that have waited long enough."""
        found: list[Parked] = []
        while (deadline := self.deadline_ms) is not None and deadline <= now_ms:
            _, number = heapq.heappop(self._deadlines)
            found.append(self._waiting[number])
            self._forget(number)
        return tuple(found)

    def remove(self, parked: Parked) -> None:
        """Remove a fetch that was answered. Harmless if it was removed already."""
        if parked.number in self._waiting:
            self._forget(parked.number)

    def drop_connection(self, connection: int) -> None:
        """Forget the fetches of a connection that is gone."""
        for number in [n for n, p in self._waiting.items() if p.connection == connection]:
            self._forget(number)

    def drop_node(self, node_id: int) -> None:
        """Forget the fetches that wait at a broker that is gone."""
        for number in [n for n, p in self._waiting.items() if p.node_id == node_id]:
            self._forget(number)

    def _forget(self, number: int) -> None:
        del self._waiting[number]
        for partition in self._partitions.pop(number):
            waiting = self._by_partition[partition]
            waiting.pop(number, None)
            if not waiting:
                del self._by_partition[partition]
