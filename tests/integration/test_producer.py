"""The producer without transactions, on our broker and real Kafka."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from kip848_client import (
    BootstrapFailed,
    BrokerError,
    ConfigError,
    DeliveryTimedOut,
    LocalProtocolError,
    Producer,
    Record,
    RecordTooLarge,
    TopicPartition,
)
from tests.integration.cluster import Cluster
from tests.integration.reading import limit_messages, read

pytestmark = pytest.mark.asyncio


@asynccontextmanager
async def running(cluster: Cluster, **settings: Any) -> AsyncGenerator[Producer[Any, Any]]:
    producer: Producer[Any, Any] = Producer(bootstrap_servers=cluster.bootstrap, **settings)
    async with producer:
        yield producer


async def values(cluster: Cluster, topic: str, count: int) -> list[bytes | None]:
    return [each.value for each in await read(cluster, topic, count)]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"linger_ms": 0, "max_in_flight_requests_per_connection": 1},
        {"acks": 1},
        {"enable_idempotence": False, "acks": "all"},
    ],
)
async def test_records_arrive_once_and_in_order(cluster: Cluster, settings: Any) -> None:
    topic = cluster.unique("t")
    await cluster.create_topic(topic, 2)
    async with running(cluster, **settings) as producer:
        first = await producer.send_and_wait(topic, b"0", partition=0)
        assert first == (topic, 0, TopicPartition(topic, 0), 0, first.timestamp, 0, 0)
        futures = [await producer.send(topic, b"%d" % n, partition=0) for n in range(1, 2000)]
        await producer.flush()
        assert [each.result().offset for each in futures] == list(range(1, 2000))
    assert await values(cluster, topic, 2000) == [b"%d" % n for n in range(2000)]


async def test_nobody_acknowledges(cluster: Cluster) -> None:
    topic = cluster.unique("t")
    await cluster.create_topic(topic, 1)
    async with running(cluster, acks=0) as producer:
        assert (await producer.send_and_wait(topic, b"0")).offset == -1
        await producer.send(topic, b"1")
    assert await values(cluster, topic, 2) == [b"0", b"1"]


@pytest.mark.parametrize("compression", ["gzip", "snappy", "lz4", "zstd"])
async def test_compressed_records_are_read_by_both_consumers(
    cluster: Cluster, compression: str
) -> None:
    topic = cluster.unique("t")
    await cluster.create_topic(topic, 1)
    headers = [("h", b"1"), ("h", None)]
    async with running(cluster, compression_type=compression) as producer:
        for n in range(50):
            await producer.send(
                topic, b"v" * 100, b"%d" % n, headers=headers, timestamp_ms=1000 + n
            )
    ours: list[Record[bytes | None, bytes | None]] = await read(cluster, topic, 50)
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        theirs = [await consumer.getone() for _ in range(50)]
    for records in (ours, theirs):
        assert [each.key for each in records] == [b"%d" % n for n in range(50)]
        assert [each.timestamp for each in records] == list(range(1000, 1050))
        assert all(list(each.headers) == headers for each in records)
        assert all(each.value == b"v" * 100 for each in records)


async def test_send_waits_when_the_memory_is_used_up(cluster: Cluster) -> None:
    topic = cluster.unique("t")
    await cluster.create_topic(topic, 1)
    settings = {"buffer_memory": 4000, "max_batch_size": 1000, "linger_ms": 0}
    async with running(cluster, **settings) as producer:
        sent = [producer.send_and_wait(topic, b"%d" % n + b"-" * 300) for n in range(200)]
        places = await asyncio.gather(*sent)
        assert sorted(each.offset for each in places) == list(range(200))
        engine = producer._engine
        assert engine is not None
        assert engine.core.snapshot().held_bytes == 0


async def test_an_application_that_sends_without_a_pause_gives_way(cluster: Cluster) -> None:
    topic = cluster.unique("t")
    await cluster.create_topic(topic, 1)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with running(cluster, buffer_memory=100_000_000) as producer:
        await producer.send_and_wait(topic, b"first")
        task = asyncio.create_task(other())
        for _ in range(5000):
            await producer.send(topic, b"-" * 1000)
        task.cancel()
    assert turns >= 10  # three each time


async def test_a_topic_comes_into_being_by_sending_to_it(cluster: Cluster) -> None:
    topic = cluster.unique("new")
    async with running(cluster) as producer:
        assert (await producer.send_and_wait(topic, b"0")).offset == 0
        assert await producer.partitions_for(topic) == {0}


async def test_a_topic_that_is_not_there(cluster: Cluster) -> None:
    topic = cluster.unique("none")
    async with running(cluster, allow_auto_create_topics=False, max_block_ms=300) as producer:
        with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await producer.send(topic, b"0")
        with pytest.raises(ConfigError, match="not a topic name"):
            await producer.send("a b", b"0")


async def test_serializers_and_partitioners_of_users(cluster: Cluster) -> None:
    topic = cluster.unique("t")
    await cluster.create_topic(topic, 3)

    async def slow(value: Any) -> bytes:
        await asyncio.sleep(0)
        return json.dumps(value).encode()

    def text(key: str | None) -> bytes | None:
        return None if key is None else key.encode()

    settings = {
        "value_serializer": slow,
        "key_serializer": text,
        "partitioner": lambda key, every, available: max(every) if key == b"k" else min(available),
    }
    async with running(cluster, **settings) as producer:
        assert (await producer.send_and_wait(topic, {"a": 1}, "k")).partition == 2
        assert (await producer.send_and_wait(topic, None)).partition == 0
        with pytest.raises(TypeError, match="not JSON serializable"):
            await producer.send(topic, object())
        with pytest.raises(AttributeError):
            await producer.send(topic, 1, 5)
        assert (await producer.send_and_wait(topic, 2, "k")).offset == 1


async def test_what_cannot_be_sent(cluster: Cluster) -> None:
    topic = cluster.unique("t")
    await cluster.create_topic(topic, 2)
    async with running(cluster, max_request_size=2000) as producer:
        with pytest.raises(RecordTooLarge):
            await producer.send(topic, b"x" * 3000)
        wrong: dict[str, dict[str, Any]] = {
            "value of a record is bytes": {"value": "text"},
            "key of a record is bytes": {"key": 5},
            "no 2": {"partition": 2},
            "number of a partition": {"partition": -1},
            "timestamp_ms": {"timestamp_ms": "now"},
            "headers are": {"headers": {"a": b"1"}},
        }
        for says, arguments in wrong.items():
            with pytest.raises(ConfigError, match=says):
                await producer.send(topic, **arguments)
        assert (await producer.send_and_wait(topic, b"0", partition=0)).offset == 0


async def test_a_broker_refuses_a_record_and_no_other_suffers(cluster: Cluster) -> None:
    topic = cluster.unique("t")
    await cluster.create_topic(topic, 1)
    await limit_messages(cluster, topic, 1000)
    async with running(cluster, linger_ms=50) as producer:
        before = await producer.send(topic, b"0")
        large = await producer.send(topic, b"x" * 2000)
        after = await producer.send(topic, b"1")
        with pytest.raises(BrokerError, match="MESSAGE_TOO_LARGE"):
            await large
        assert ((await before).offset, (await after).offset) == (0, 1)
        assert (await producer.send_and_wait(topic, b"2")).offset == 2
    assert await values(cluster, topic, 3) == [b"0", b"1", b"2"]


async def test_calls_out_of_order(cluster: Cluster) -> None:
    topic = cluster.unique("t")
    await cluster.create_topic(topic, 1)
    producer = Producer(bootstrap_servers=cluster.bootstrap, linger_ms=10_000)
    with pytest.raises(LocalProtocolError, match="not started"):
        await producer.send(topic, b"0")
    await producer.start()
    with pytest.raises(LocalProtocolError, match="was started before"):
        await producer.start()
    with pytest.raises(ConfigError, match="transactional_id"):
        await producer.begin_transaction()
    waiting = await producer.send(topic, b"0")
    await asyncio.gather(producer.stop(), producer.stop())
    assert waiting.result().offset == 0
    with pytest.raises(LocalProtocolError, match="closed"):
        await producer.send(topic, b"0")
    assert repr(producer) == "<Producer transactional_id=None closed>"


async def test_a_send_that_is_cancelled_has_sent_nothing(cluster: Cluster) -> None:
    topic = cluster.unique("t")
    await cluster.create_topic(topic, 1)
    async with running(cluster) as producer:
        task = asyncio.create_task(producer.send(topic, b"no"))  # waits for metadata
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        future = await producer.send(topic, b"0")
        future.cancel()  # which does not take the record back
        assert (await producer.send_and_wait(topic, b"1")).offset == 1
    assert await values(cluster, topic, 2) == [b"0", b"1"]


async def test_no_broker() -> None:
    producer = Producer(bootstrap_servers="127.0.0.1:1")
    with pytest.raises(BootstrapFailed):
        await producer.start()
    with pytest.raises(LocalProtocolError, match="closed"):
        await producer.flush()


async def test_brokers_that_do_not_answer_any_more(cluster: Cluster) -> None:
    topic = cluster.unique("t")
    await cluster.create_topic(topic, 1)
    settings = {"request_timeout_ms": 300, "delivery_timeout_ms": 600, "linger_ms": 0}
    async with running(cluster, **settings) as producer:
        await producer.send_and_wait(topic, b"0")
        engine = producer._engine
        assert engine is not None
        engine.transport._nodes = dict.fromkeys(engine.transport._nodes, ("127.0.0.1", 1))
        engine.transport._servers = (("127.0.0.1", 1),)
        await engine.transport._produce_links.close()
        await engine.transport._links.close()
        with pytest.raises(DeliveryTimedOut):
            await producer.send_and_wait(topic, b"1")
