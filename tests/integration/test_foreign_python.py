"""aiokafka and kafka-python against our broker: producing, reading by assignment, administering."""

from __future__ import annotations

import anyio.to_thread
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import TopicPartition

from mock_coordinator import MockBroker

pytestmark = [pytest.mark.foreign, pytest.mark.asyncio]

PROFILES = ("4.0", "4.4")

# kafka-python 3 reads its schemas with a function that Python 3.11 deprecates and 3.13 keeps
tolerant = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("compression", [None, "gzip", "snappy", "lz4", "zstd"])
async def test_aiokafka_writes_and_reads_by_assignment(
    profile: str, compression: str | None
) -> None:
    async with MockBroker({"t": 2}, profile=profile) as broker:
        producer = AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap,
            enable_idempotence=True,
            compression_type=compression,
        )
        async with producer:
            for i in range(60):
                await producer.send("t", b"%d" % i, key=b"k", partition=i % 2)
        consumer = AIOKafkaConsumer(
            bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest"
        )
        async with consumer:
            parts = [TopicPartition("t", 0), TopicPartition("t", 1)]
            consumer.assign(parts)
            got = [int((await consumer.getone()).value or b"") for _ in range(60)]
            assert sorted(got) == list(range(60))
            assert await consumer.end_offsets(parts) == dict.fromkeys(parts, 30)
            assert await consumer.beginning_offsets(parts) == dict.fromkeys(parts, 0)
            await consumer.seek_to_end()
            assert await consumer.position(parts[0]) == 30
            await producer_less_send(broker)
            assert (await consumer.getone()).value == b"more"
        assert [r.key for r in broker.records("t", 0)][:2] == [b"k", b"k"]


async def producer_less_send(broker: MockBroker) -> None:
    """A record that arrives while the consumer's fetch is parked."""
    await broker.wait_for(lambda: broker.core.parked_requests > 0)
    broker.produce("t", b"more", partition=1)


async def test_aiokafka_finds_offsets_by_time() -> None:
    async with MockBroker({"t": 1}) as broker:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
        now_ms = broker.driver.now_ms()
        async with producer:
            for i in range(5):
                await producer.send_and_wait("t", b"x", timestamp_ms=now_ms - 5000 + i * 1000)
        consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
        async with consumer:
            part = TopicPartition("t", 0)
            found = await consumer.offsets_for_times({part: now_ms - 3500})
            assert found[part].offset == 2
            assert found[part].timestamp == now_ms - 3000
            assert await consumer.offsets_for_times({part: now_ms}) == {part: None}


def kafka_python_round_trip(bootstrap: str) -> list[bytes]:
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.structs import TopicPartition as KafkaPartition

    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for i in range(20):
        producer.send("t", b"%d" % i, partition=0)
    producer.flush(timeout=10)
    producer.close(timeout=10)
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=5000
    )
    consumer.assign([KafkaPartition("t", 0)])
    got = [next(consumer).value for _ in range(20)]
    consumer.close()
    return got


@tolerant
@pytest.mark.parametrize("profile", PROFILES)
async def test_kafka_python_writes_and_reads(profile: str) -> None:
    async with MockBroker({"t": 1}, profile=profile) as broker:
        got = await anyio.to_thread.run_sync(kafka_python_round_trip, broker.bootstrap)
        assert got == [b"%d" % i for i in range(20)]
        assert [r.value for r in broker.records("t")] == got


def kafka_python_admin(bootstrap: str) -> list[str]:
    from kafka import KafkaAdminClient
    from kafka.admin import NewTopic

    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic("made", 3, 1)])
    topics = sorted(admin.list_topics())
    admin.delete_topics(["made"])
    admin.close()
    return topics


@tolerant
async def test_kafka_python_creates_and_deletes_topics() -> None:
    async with MockBroker({"t": 1}) as broker:
        assert await anyio.to_thread.run_sync(kafka_python_admin, broker.bootstrap) == ["made", "t"]
        assert list(broker.core.broker.catalog.topics) == ["t"]
