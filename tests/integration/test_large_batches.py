"""Batches that unpack to a lot: in a thread while all else goes on, and not beyond the limit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest
from aiokafka.errors import CorruptRecordException

from kip848_client import BatchUnreadable, Consumer, Producer, Record, TopicPartition
from kip848_client.aiokafka import AIOKafkaConsumer
from kip848_client.core.compression import Unpacked, unpack
from kip848_client.records import _unpacking
from tests.integration.cluster import Cluster

pytestmark = pytest.mark.asyncio

MB = 1 << 20
LARGE = 8 * MB
CODECS = ["gzip", "snappy", "lz4", "zstd"]

Records = list[Record[Any, Any]]


async def write(cluster: Cluster, topic: str, codec: str) -> None:
    """Partition 0: three small records, a large one and a small one in one batch, three small ones.
    Partition 1: six small ones."""
    await cluster.create_topic(topic, 2)
    producer: Producer[Any, Any] = Producer(
        bootstrap_servers=cluster.bootstrap,
        compression_type=codec,
        linger_ms=5_000,
        max_request_size=64 * MB,
        max_batch_size=64 * MB,
        buffer_memory=256 * MB,
    )
    batches = [[b"0", b"1", b"2"], [b"3" * LARGE, b"4"], [b"5", b"6", b"7"]]
    async with producer:
        for batch in batches:
            for value in batch:
                await producer.send(topic, value, partition=0)
            await producer.flush()
        for number in range(6):
            await producer.send(topic, b"%d" % number, partition=1)
        await producer.flush()


async def by_getone(consumer: Any) -> Records:
    return [await consumer.getone()]


async def by_iteration(consumer: Any) -> Records:
    async for record in consumer:
        return [record]
    return []


async def by_getmany(consumer: Any) -> Records:
    found = await consumer.getmany(timeout_ms=200)
    return [record for records in found.values() for record in records]


async def by_getmany_at_once(consumer: Any) -> Records:
    found = await consumer.getmany(timeout_ms=0)
    await asyncio.sleep(0.001)
    return [record for records in found.values() for record in records]


async def by_batches(consumer: Any) -> Records:
    views = await consumer.getbatches(timeout_ms=200)
    return [record for view in views.values() async for record in view.records_async()]


async def slowly(data: bytes) -> bytes:
    await asyncio.sleep(0)
    return data


async def plain(cluster: Cluster, topic: str, **settings: Any) -> AsyncGenerator[Any]:
    async with cluster.consumer(group=None, **settings) as consumer:
        consumer.assign([(topic, 0), (topic, 1)])
        yield consumer


async def awaited(cluster: Cluster, topic: str, **settings: Any) -> AsyncGenerator[Any]:
    async for consumer in plain(cluster, topic, value_deserializer=slowly, **settings):
        yield consumer


async def swapped(cluster: Cluster, topic: str, **settings: Any) -> AsyncGenerator[Any]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest", **settings
    )
    async with consumer:
        consumer.assign([TopicPartition(topic, 0), TopicPartition(topic, 1)])
        yield consumer


Opened = Callable[..., AsyncGenerator[Any]]
Way = Callable[[Any], Awaitable[Records]]
WAYS = [
    (plain, by_getone),
    (plain, by_iteration),
    (plain, by_getmany),
    (plain, by_getmany_at_once),
    (plain, by_batches),
    (awaited, by_getone),
    (awaited, by_getmany),
    (awaited, by_batches),
    (swapped, by_getone),
    (swapped, by_iteration),
    (swapped, by_getmany),
]
each_way = pytest.mark.parametrize(
    ("opened", "way"), WAYS, ids=[f"{a.__name__}-{b.__name__}" for a, b in WAYS]
)


def offsets(records: Records, partition: int) -> list[int]:
    return [record.offset for record in records if record.partition == partition]


class HeldUp:
    """Unpacking in a thread waits for ``go``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go, self.begun = threading.Event(), threading.Event()
        self.threads: list[str] = []
        monkeypatch.setattr(_unpacking, "unpack", self._unpack)

    def _unpack(self, *arguments: Any, **keywords: Any) -> Unpacked:
        self.threads.append(threading.current_thread().name)
        self.begun.set()
        assert self.go.wait(20)
        return unpack(*arguments, **keywords)


@each_way
async def test_others_go_on_while_a_large_batch_is_unpacked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, opened: Opened, way: Way
) -> None:
    held_up = HeldUp(monkeypatch)
    topic = cluster.unique(f"large-{opened.__name__}-{way.__name__}")
    await write(cluster, topic, "zstd")
    records: Records = []
    async for consumer in opened(cluster, topic):
        async with asyncio.timeout(20):
            while len(records) < 9:  # all that is not behind the large batch
                records += await way(consumer)
            assert offsets(records, 0) == [0, 1, 2]
            assert offsets(records, 1) == list(range(6))
            asking = asyncio.ensure_future(way(consumer))
            assert await asyncio.to_thread(held_up.begun.wait, 20)
            held_up.go.set()
            records += await asking
            while len(records) < 14:
                records += await way(consumer)
    assert offsets(records, 0) == list(range(8))
    assert [len(each.value) for each in records if each.partition == 0][3] == LARGE
    assert set(held_up.threads) == {"kip848-unpacking"}


@pytest.mark.parametrize("codec", CODECS)
async def test_a_large_batch_of_each_codec(cluster: Cluster, codec: str) -> None:
    topic = cluster.unique(f"large-{codec}")
    await write(cluster, topic, codec)
    async with cluster.consumer(group=None) as consumer, asyncio.timeout(20):
        consumer.assign([(topic, 0)])
        records = [await consumer.getone() for _ in range(8)]
        assert [len(each.value or b"") for each in records] == [1, 1, 1, LARGE, 1, 1, 1, 1]
        consumer.seek((topic, 0), 4)  # in the middle of the large batch
        assert (await consumer.getone()).value == b"4"


@each_way
async def test_beyond_the_limit_a_batch_is_an_error_of_its_own(
    cluster: Cluster, opened: Opened, way: Way
) -> None:
    topic = cluster.unique(f"limited-{opened.__name__}-{way.__name__}")
    await write(cluster, topic, "zstd")
    records: Records = []
    errors: list[Exception] = []
    async for consumer in opened(cluster, topic, max_decompressed_batch_bytes=6 * MB):
        async with asyncio.timeout(20):
            while len(records) < 9 or len(errors) < 2:
                try:
                    records += await way(consumer)
                except (BatchUnreadable, CorruptRecordException) as err:
                    errors.append(err)
            assert offsets(records, 0) == [0, 1, 2]
            assert offsets(records, 1) == list(range(6))
            for error in errors:
                told = str(error)
                assert f"{topic}-0: the records from offset 3 to 4 cannot be read" in told
                assert "max_decompressed_batch_bytes=6291456" in told
                assert f"seek(({topic!r}, 0), 5)" in told
            if opened is not swapped:
                error = errors[0]
                assert isinstance(error, BatchUnreadable)
                where = (error.topic, error.partition, error.offset, error.next_offset)
                assert where == (topic, 0, 3, 5)
            consumer.seek(TopicPartition(topic, 0), 5)
            while len(records) < 12:
                records += await way(consumer)
    assert offsets(records, 0) == [0, 1, 2, 5, 6, 7]


@pytest.mark.parametrize("codec", CODECS)
async def test_what_comes_before_the_limit_is_handed_out(cluster: Cluster, codec: str) -> None:
    topic = cluster.unique(f"before-{codec}")
    await cluster.create_topic(topic, 1)
    async with Producer(
        bootstrap_servers=cluster.bootstrap,
        compression_type=codec,
        linger_ms=5_000,
        max_request_size=64 * MB,
        max_batch_size=64 * MB,
    ) as producer:
        for value in (b"0", b"1" * MB, b"2" * LARGE, b"3"):
            await producer.send(topic, value, partition=0)
        await producer.flush()
    consumer: Consumer[Any, Any] = cluster.consumer(group=None, max_decompressed_batch_bytes=2 * MB)
    async with consumer, asyncio.timeout(20):
        consumer.assign([(topic, 0)])
        assert [(await consumer.getone()).offset for _ in range(2)] == [0, 1]
        for _ in range(2):
            with pytest.raises(BatchUnreadable) as caught:
                await consumer.getone()
            assert (caught.value.offset, caught.value.next_offset) == (2, 4)


async def test_a_consumer_stops_while_a_batch_is_unpacked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_up = HeldUp(monkeypatch)
    topic = cluster.unique("stopped")
    await write(cluster, topic, "zstd")
    async with cluster.consumer(group=None) as consumer, asyncio.timeout(20):
        consumer.assign([(topic, 0)])
        while not held_up.threads:
            await consumer.getmany(timeout_ms=50)
        consumer.seek((topic, 0), 5)  # what is unpacked is not wanted any more
        assert (await consumer.getone()).offset == 5
    held_up.go.set()
