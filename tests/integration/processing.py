"""What tests of the processor share: a topic to read, one to write, and who does it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

from kip848_client import Consumer, ExactlyOnceProcessor, Producer, ProducerRecord, Record
from tests.integration.cluster import Cluster
from tests.integration.reading import committed_values

__all__ = ["Job", "copy_to"]

_LAST: Final = b"the last"


class Job:
    """Reads the topic ``source`` as ``group``, writes to ``target``, which has one partition."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.source = cluster.unique("in")
        self.target = cluster.unique("out")
        self.letters = cluster.unique("dead")
        self.group = cluster.unique("g")

    async def prepare(self, records: int, partitions: int = 1) -> Job:
        """Create the topics, and fill the source with ``b"0"``, ``b"1"``, ..."""
        await self.cluster.create_topic(self.source, partitions)
        await self.cluster.create_topic(self.target, 1)
        await self.cluster.create_topic(self.letters, 1)
        await self.cluster.fast_group(self.group)
        await self.fill(range(records), partitions)
        return self

    async def fill(self, numbers: Iterable[int], partitions: int = 1) -> None:
        """More records, spread over the partitions."""
        values: dict[int, list[bytes]] = {}
        for n in numbers:
            values.setdefault(n % partitions, []).append(b"%d" % n)
        await self.cluster.produce(self.source, values)

    def consumer(self, **settings: Any) -> Consumer[Any, Any]:
        """As a processor needs it."""
        settings.setdefault("enable_auto_commit", False)
        settings.setdefault("isolation_level", "read_committed")
        return self.cluster.consumer(group=self.group, **settings)

    def producer(self, name: str = "p", **settings: Any) -> Producer[Any, Any]:
        """As a processor needs it."""
        settings.setdefault("linger_ms", 0)
        return Producer(
            bootstrap_servers=self.cluster.bootstrap,
            transactional_id=self.cluster.unique(name),
            **settings,
        )

    def processor(
        self,
        function: Callable[[Any], Any],
        name: str = "p",
        *,
        consumer: Consumer[Any, Any] | None = None,
        producer: Producer[Any, Any] | None = None,
        **settings: Any,
    ) -> ExactlyOnceProcessor[Any, Any]:
        """One of them. ``name`` is that of the transactional id."""
        return ExactlyOnceProcessor(
            self.source,
            function,
            consumer=consumer or self.consumer(),
            producer=producer or self.producer(name),
            **settings,
        )

    @asynccontextmanager
    async def running(
        self, function: Callable[[Any], Any], name: str = "p", **settings: Any
    ) -> AsyncGenerator[asyncio.Task[None]]:
        """A processor that runs until the block is left, and has ended well then."""
        async with self.processor(function, name, **settings) as processor:
            task = asyncio.create_task(processor.run())
            yield task
            await processor.stop()
            await task

    async def finish(self, records: int) -> None:
        """Let a processor do what is left, until the group has committed that many records."""
        async with self.running(copy_to(self.target), "finish") as task:
            while await self.committed() < records:
                assert not task.done()
                await asyncio.sleep(0.02)

    async def committed(self) -> int:
        """How many records the group has committed: of all partitions, without gaps."""
        found = await self.cluster.committed(self.group, self.source)
        return sum(max(0, each) for each in found.values())

    async def seen(self, topic: str | None = None) -> list[int]:
        """What read_committed shows of the target, and of what was written there by now."""
        written = topic or self.target
        async with self.producer("last") as producer, producer.transaction() as txn:
            await txn.send(written, _LAST)
        values = await committed_values(self.cluster, written, _LAST)
        return [int(each or b"-1") for each in values[:-1]]


def copy_to(topic: str) -> Callable[[Record[Any, Any]], ProducerRecord]:
    """A function that sends each record on."""

    def copy(record: Record[Any, Any]) -> ProducerRecord:
        return ProducerRecord(topic, record.value)

    return copy
