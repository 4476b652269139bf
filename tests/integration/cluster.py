"""A broker as the consumer's tests see it: the bundled one or a real one, through the same door.

Administration and producing go over the wire in this event loop, so that the in-process broker can
answer them too.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka import AIOKafkaProducer

from kip848_client import Consumer, Record, TopicPartition
from kip848_client.core.types import LEAVE_EPOCH, TopicId
from kip848_client.core.wire import api_named
from kip848_client.core.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from kip848_client.core.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
)
from kip848_client.runtime._closing import Closing
from kip848_client.runtime.clock import LoopClock
from kip848_client.runtime.net._connection import ConnectionOptions
from kip848_client.runtime.net._links import Link
from mock_coordinator.core.profiles import profile_named

__all__ = ["Cluster", "by_partition", "eventually", "kill", "polling"]

_WAIT_S: Final = 25.0
_GROUP_RESOURCE: Final = 32
_FAST: Final = {
    "consumer.session.timeout.ms": "1500",
    "consumer.heartbeat.interval.ms": "150",
}


class Cluster:
    """Bootstrap address, topics, groups and a producer. ``kind`` is ``mock`` or a Kafka release,
    ``profile`` the release line."""

    def __init__(self, kind: str, profile: str, host: str, port: int) -> None:
        self.kind = kind
        self.profile = profile
        self.bootstrap = f"{host}:{port}"
        clock = LoopClock(asyncio.get_running_loop())
        self._link = Link(host, port, ConnectionOptions("tests", 20_000), clock)
        self._suffix = uuid.uuid4().hex[:8]

    def unique(self, name: str) -> str:
        """A name that no other test uses."""
        return f"{name}-{self._suffix}"

    async def ask(self, request: Any, versions: tuple[int, int] = (0, 32767)) -> Any:
        """Any request, answered."""
        return await self._link.send(request, versions, 20_000)

    async def close(self) -> None:
        await self._link.close()

    async def create_topic(self, name: str, partitions: int) -> TopicId:
        """Create a topic and wait until groups can be assigned it."""
        topic = CreateTopicsRequestCreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1
        )
        answer = await self.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=10_000), (7, 7))
        assert answer.topics[0].error_code == 0, answer
        await self.await_assignable(name, partitions)
        return TopicId(answer.topics[0].topic_id)

    async def delete_topic(self, name: str) -> None:
        state = DeleteTopicsRequestDeleteTopicState(name=name)
        answer = await self.ask(DeleteTopicsRequest(topics=(state,), timeout_ms=10_000), (6, 6))
        assert answer.responses[0].error_code == 0, answer

    async def grow_topic(self, name: str, partitions: int) -> None:
        topic = CreatePartitionsRequestCreatePartitionsTopic(
            name=name, count=partitions, assignments=None
        )
        answer = await self.ask(CreatePartitionsRequest(topics=(topic,), timeout_ms=10_000))
        assert answer.results[0].error_code == 0, answer

    async def await_assignable(self, name: str, partitions: int) -> None:
        """Metadata shows a new topic before the group coordinator knows it."""
        heartbeat = api_named("ConsumerGroupHeartbeat").request
        probe = 0

        async def assigned() -> bool:
            nonlocal probe
            probe += 1
            group = f"probe-{probe}-{name}"
            join = heartbeat(
                group_id=group,
                member_id="probe",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=(name,),
                topic_partitions=(),
            )
            answer = await self.ask(join, (1, 1))
            if answer.error_code != 0:
                return False
            await self.ask(heartbeat(group_id=group, member_id="probe", member_epoch=LEAVE_EPOCH))
            given = answer.assignment.topic_partitions
            return sum(len(each.partitions) for each in given) == partitions

        await eventually(assigned)

    async def fast_group(self, group: str, configs: Mapping[str, str] | None = None) -> None:
        """Let the group notice dead members soon."""
        settings = {**_FAST, **(configs or {})}
        if profile_named(self.profile).has_assignment_interval:
            settings.setdefault("consumer.assignment.interval.ms", "0")
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=_GROUP_RESOURCE,
            resource_name=group,
            configs=tuple(
                IncrementalAlterConfigsRequestAlterableConfig(name=name, value=value)
                for name, value in settings.items()
            ),
        )
        answer = await self.ask(IncrementalAlterConfigsRequest(resources=(resource,)))
        assert answer.responses[0].error_code == 0, answer

    async def describe(self, group: str) -> Any:
        """The broker's own description of a group."""
        request = api_named("ConsumerGroupDescribe").request(group_ids=(group,))
        return (await self.ask(request)).groups[0]

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        """What the group has committed of a topic, as an outsider reads it."""
        wanted = OffsetFetchRequestGroup(group_id=group, topics=None)
        answer = await self.ask(OffsetFetchRequest(groups=(wanted,)), (9, 9))
        return {
            each.partition_index: each.committed_offset
            for found in answer.groups[0].topics
            if found.name == topic
            for each in found.partitions
        }

    @asynccontextmanager
    async def producer(self, **settings: Any) -> AsyncGenerator[AIOKafkaProducer]:
        async with AIOKafkaProducer(bootstrap_servers=self.bootstrap, **settings) as producer:
            yield producer

    async def produce(self, topic: str, values: Mapping[int, Iterable[bytes]]) -> None:
        """Write values to partitions, in order."""
        async with self.producer(linger_ms=5) as producer:
            for partition, each in values.items():
                for value in each:
                    await producer.send(topic, value, partition=partition)
            await producer.flush()

    def consumer(
        self, *topics: str, group: str | None, **settings: Any
    ) -> Consumer[bytes | None, bytes | None]:
        """A consumer that starts at the beginning unless told otherwise."""
        settings.setdefault("auto_offset_reset", "earliest")
        settings.setdefault("fetch_max_wait_ms", 100)
        return Consumer(*topics, bootstrap_servers=self.bootstrap, group_id=group, **settings)


async def eventually(
    condition: Callable[[], bool | Awaitable[bool]], timeout_s: float = _WAIT_S
) -> None:
    """Return when the condition holds; fail when it does not in time."""
    deadline = time.monotonic() + timeout_s
    while True:
        result = condition()
        if not isinstance(result, bool):
            result = await result
        if result:
            return
        assert time.monotonic() < deadline, f"never came true: {condition}"
        await asyncio.sleep(0.02)


async def kill(consumer: Consumer[Any, Any]) -> None:
    """End a consumer as a crash would: no commit, no leave, connections gone."""
    engine = consumer._engine
    assert engine is not None
    assert engine.runtime.task is not None
    engine.poller.close()
    engine.runtime.task.cancel()
    await asyncio.gather(engine.runtime.task, return_exceptions=True)
    await engine.transport.close()
    consumer._runtime._closing = Closing(())
    await consumer._runtime._closing.finish()


@asynccontextmanager
async def polling(
    consumer: Consumer[Any, Any], seen: list[Record[Any, Any]] | None = None
) -> AsyncGenerator[list[Record[Any, Any]]]:
    """Ask for records in the background, as an application does all the time."""
    records: list[Record[Any, Any]] = [] if seen is None else seen

    async def poll() -> None:
        async for record in consumer:
            records.append(record)  # noqa: PERF401 - one by one, for others to see as they come

    task = asyncio.get_running_loop().create_task(poll())
    try:
        yield records
    finally:
        task.cancel()
        results = await asyncio.gather(task, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result


def by_partition(records: Iterable[Record[Any, Any]]) -> dict[TopicPartition, list[int]]:
    """Offsets in the order of their arrival."""
    found: dict[TopicPartition, list[int]] = {}
    for record in records:
        found.setdefault(TopicPartition(record.topic, record.partition), []).append(record.offset)
    return found
