"""Consumers of one client, all in this process: ours, confluent-kafka's, aiokafka's.

Each is used as its documentation says: ours and aiokafka's by a task each on one event loop,
confluent-kafka's by a thread each. All have a rebalance listener, which writes into the watch,
and their own defaults for everything that decides about speed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from confluent_kafka import Consumer as ConfluentConsumer

from benchmarks.rebalance.group_watch import GroupWatch
from kip848_client import Consumer

__all__ = ["FLEETS", "Fleet", "Member"]

_POLL_MS: Final = 1_000
_POLL_S: Final = 0.1
_ERRORS_ONLY: Final = 3


class Member(Protocol):
    """One consumer and what drives it."""

    async def start(self) -> None:
        """Join the group, and begin to consume."""
        ...

    async def stop(self) -> None:
        """Leave."""
        ...


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Of ours and of aiokafka's, which have the same methods."""

    def __init__(self, watch: GroupWatch, name: str) -> None:
        self._watch, self._name = watch, name

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        self._watch.revoked(self._name, (tp.partition for tp in revoked))

    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        self._watch.assigned(self._name, (tp.partition for tp in assigned))


class _Polled:
    """A member whose ``getmany`` is called by a task."""

    def __init__(self, consumer: Any, topic: str, watch: GroupWatch, name: str) -> None:
        self._consumer, self._topic, self._watch = consumer, topic, watch
        self._listener = _Listener(watch, name)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._consumer.subscribe([self._topic], listener=self._listener)
        await self._consumer.start()
        self._task = asyncio.create_task(self._consume())

    async def _consume(self) -> None:
        while True:
            batches = await self._consumer.getmany(timeout_ms=_POLL_MS)
            for tp, records in batches.items():
                self._watch.delivered(tp.partition, len(records))

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._consumer.stop()
        # aiokafka's stop calls no listener
        self._listener.on_partitions_revoked(self._consumer_left())

    def _consumer_left(self) -> Iterable[Any]:
        return ()


class _Ours(_Polled):
    def __init__(
        self, bootstrap: str, topic: str, group: str, watch: GroupWatch, name: str
    ) -> None:
        consumer: Consumer[Any, Any] = Consumer(
            bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        super().__init__(consumer, topic, watch, name)


class _Aiokafka(_Polled):
    def __init__(
        self, bootstrap: str, topic: str, group: str, watch: GroupWatch, name: str
    ) -> None:
        self._before: tuple[Any, ...] = ()
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        super().__init__(consumer, topic, watch, name)

    async def stop(self) -> None:
        self._before = tuple(self._consumer.assignment())
        await super().stop()

    def _consumer_left(self) -> Iterable[Any]:
        return self._before


class _Confluent:
    """A member that a thread polls."""

    def __init__(
        self, bootstrap: str, topic: str, group: str, watch: GroupWatch, name: str
    ) -> None:
        self._topic, self._watch, self._name = topic, watch, name
        self._consumer = ConfluentConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "log_level": _ERRORS_ONLY,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    async def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        def assigned(_: object, partitions: list[Any]) -> None:
            self._watch.assigned(self._name, (tp.partition for tp in partitions))

        def revoked(_: object, partitions: list[Any]) -> None:
            self._watch.revoked(self._name, (tp.partition for tp in partitions))

        consumer = self._consumer
        consumer.subscribe([self._topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
        while not self._stopping.is_set():
            message = consumer.poll(_POLL_S)
            if message is not None and message.error() is None:
                self._watch.delivered(message.partition() or 0, 1)
        consumer.close()


FLEETS: Final[dict[str, Callable[[str, str, str, GroupWatch, str], Member]]] = {
    "kip848": _Ours,
    "confluent-kafka": _Confluent,
    "aiokafka": _Aiokafka,
}
"""Makers of members: bootstrap, topic, group, watch, name."""


class Fleet:
    """The members of one group."""

    def __init__(
        self, client: str, bootstrap: str, topic: str, group: str, watch: GroupWatch
    ) -> None:
        self._make = FLEETS[client]
        self._where = (bootstrap, topic, group)
        self._watch = watch
        self._made = 0
        self.members: dict[str, Member] = {}
        """Name -> member; all that were not stopped."""

    async def add(self, count: int) -> None:
        """So many more, all at once."""
        new = []
        for _ in range(count):
            self._made += 1
            name = f"m{self._made}"
            member = self._make(*self._where, self._watch, name)
            self.members[name] = member
            new.append(member.start())
        await asyncio.gather(*new)

    async def remove(self, name: str) -> None:
        """One of them leaves."""
        await self.members.pop(name).stop()

    async def close(self) -> None:
        """All leave."""
        await asyncio.gather(*(self.remove(name) for name in tuple(self.members)))
