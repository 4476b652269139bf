"""Metrics that are pushed to real brokers (KIP-714), which have a plug-in that writes them down."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client import Consumer, Metrics, Producer
from kip848_client.core.wire import api_named
from kip848_client.core.wire.messages.configs import (
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from kip848_client.errors import LocalProtocolError, UnsupportedVersion
from kip848_client.runtime.telemetry import _telemetry_driver
from tests.integration.cluster import eventually
from tests.support.pytest_kafka import chosen_versions, skip_without_kafka
from tests.support.real_kafka import FAST_CONFIGS, RealKafka
from tests.support.telemetry.payload_writer import PayloadWriter, Push

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120), pytest.mark.real_kafka]

_CLIENT_METRICS: Final = 16
_INTERVAL_MS: Final = 500
_MAX_BYTES: Final = 6_000
_PARTITIONS: Final = 12
"""Whose metrics are more than that."""

REQUIRED_OF_CONSUMERS: Final = {
    "org.apache.kafka.consumer.connection.creation.rate",
    "org.apache.kafka.consumer.connection.creation.total",
    "org.apache.kafka.consumer.coordinator.assigned.partitions",
    "org.apache.kafka.consumer.coordinator.commit.latency.avg",
    "org.apache.kafka.consumer.coordinator.commit.latency.max",
    "org.apache.kafka.consumer.coordinator.rebalance.latency.avg",
    "org.apache.kafka.consumer.coordinator.rebalance.latency.max",
    "org.apache.kafka.consumer.coordinator.rebalance.latency.total",
    "org.apache.kafka.consumer.fetch.manager.fetch.latency.avg",
    "org.apache.kafka.consumer.fetch.manager.fetch.latency.max",
    "org.apache.kafka.consumer.node.request.latency.avg",
    "org.apache.kafka.consumer.node.request.latency.max",
    "org.apache.kafka.consumer.poll.idle.ratio.avg",
}
"""KIP-714's list."""
REQUIRED_OF_PRODUCERS: Final = {
    "org.apache.kafka.producer.connection.creation.rate",
    "org.apache.kafka.producer.connection.creation.total",
    "org.apache.kafka.producer.node.request.latency.avg",
    "org.apache.kafka.producer.node.request.latency.max",
    "org.apache.kafka.producer.produce.throttle.time.avg",
    "org.apache.kafka.producer.produce.throttle.time.max",
    "org.apache.kafka.producer.record.queue.time.avg",
    "org.apache.kafka.producer.record.queue.time.max",
}


class Listening:
    """A broker, and what clients pushed to it."""

    def __init__(self, kafka: RealKafka, writer: PayloadWriter) -> None:
        self.kafka = kafka
        self.writer = writer

    def pushes(self, client_id: str) -> list[Push]:
        return [each for each in self.writer.pushes() if each.client_id == client_id]

    def subscribe(self, client_id: str, metrics: str, interval_ms: int = _INTERVAL_MS) -> None:
        """Ask a client for metrics, as ``kafka-client-metrics.sh`` does."""
        wanted = {
            "metrics": metrics,
            "interval.ms": str(interval_ms),
            "match": f"client_id={client_id}",
        }
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=_CLIENT_METRICS,
            resource_name=client_id,
            configs=tuple(
                IncrementalAlterConfigsRequestAlterableConfig(
                    name=name, config_operation=0, value=value
                )
                for name, value in wanted.items()
            ),
        )
        request = api_named("IncrementalAlterConfigs").request(resources=(resource,))
        with self.kafka.connect() as connection:
            (answer,) = connection.request(request, 1).responses
            assert answer.error_code == 0, answer


@contextmanager
def listening(version: str, folder: Path, **configs: str) -> Generator[Listening]:
    with skip_without_kafka():
        writer = PayloadWriter(version, folder)
        started = RealKafka.start(
            version, {**FAST_CONFIGS, **writer.configs, **configs}, plugins=[writer.jar]
        )
        kafka = started.__enter__()
    try:
        yield Listening(kafka, writer)
    finally:
        started.__exit__(None, None, None)


@pytest.fixture(scope="module")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Listening]:
    version = chosen_versions(request.config)[-1]
    with listening(version, tmp_path_factory.mktemp("pushes")) as found:
        yield found


def values_of(push: Push, name: str, **labels: str) -> list[float]:
    """The points of a metric that have these labels."""
    found: list[float] = []
    for metric in push.metrics:
        if metric.name == name:
            data: Any = getattr(metric, metric.WhichOneof("data"))
            for point in data.data_points:
                said = {each.key: each.value.string_value for each in point.attributes}
                if labels.items() <= said.items():
                    found.append(point.as_double)
    return found


def total_of(pushes: list[Push], name: str, **labels: str) -> float:
    """What the differences of a counter sum up to."""
    return sum(sum(values_of(push, name, **labels)) for push in pushes)


def clients(
    broker: Listening, topic: str, reader: str, writer: str
) -> tuple[Producer[Any, Any], Consumer[Any, Any]]:
    """A producer and a consumer that count."""
    metrics = Metrics()
    consumer = Consumer(
        topic,
        bootstrap_servers=broker.kafka.bootstrap,
        group_id=reader,
        group_instance_id="i-1",
        client_rack="r-1",
        client_id=reader,
        auto_offset_reset="earliest",
        auto_commit_interval_ms=100,
        metrics=metrics,
    )
    producer = Producer(
        bootstrap_servers=broker.kafka.bootstrap,
        client_id=writer,
        transactional_id=writer,
        metrics=metrics,
    )
    return producer, consumer


def check_course(pushes: list[Push], instance_id: str) -> None:
    """Whether they came as they should, of one client from its start to its end."""
    assert {each.instance_id for each in pushes} == {instance_id}
    assert [each.terminating for each in pushes] == [*[False] * (len(pushes) - 1), True]
    assert {each.content_type for each in pushes} == {"OTLP"}
    steps = [b.at_ms - a.at_ms for a, b in itertools.pairwise(pushes[:-1])]
    assert all(each >= _INTERVAL_MS for each in steps), steps


async def test_a_consumer_and_a_producer_push_what_java_pushes(
    broker: Listening, unique: Callable[[str], str]
) -> None:
    topic, reader, writer = unique("pushed"), unique("reader"), unique("writer")
    for client_id in (reader, writer):
        broker.subscribe(client_id, "*")
    broker.kafka.create_topic(topic, 2)
    producer, consumer = clients(broker, topic, reader, writer)
    async with producer, consumer:
        for _ in range(2):
            async with producer.transaction() as txn:
                for number in range(10):
                    await txn.send(topic, b"value", partition=number % 2)
            for _ in range(10):
                await consumer.getone()
        await consumer.getmany(timeout_ms=0)  # records count when they are done with
        instances = {
            reader: await consumer.client_instance_id(),
            writer: await producer.client_instance_id(20_000),
        }
        await eventually(lambda: min(len(broker.pushes(each)) for each in instances) >= 4)
        member = consumer.group_metadata().member_id
    for client_id, instance_id in instances.items():
        check_course(broker.pushes(client_id), instance_id)
    of_reader, of_writer = broker.pushes(reader), broker.pushes(writer)
    assert of_reader[-1].names >= REQUIRED_OF_CONSUMERS
    assert of_writer[-1].names >= REQUIRED_OF_PRODUCERS
    assert of_reader[-1].labels == {
        "group_id": reader,
        "group_instance_id": "i-1",
        "group_member_id": member,
        "client_rack": "r-1",
    }
    assert of_writer[-1].labels == {"transactional_id": writer}
    fetched = "org.apache.kafka.consumer.fetch.manager.records.consumed.total"
    sent = "org.apache.kafka.producer.topic.record.send.total"
    # of the client, and of the topic: two points of one name
    assert total_of(of_reader, fetched, topic=topic) == 20
    assert total_of(of_reader, fetched) == 40
    assert total_of(of_writer, sent, topic=topic) == 20
    assert values_of(
        of_reader[-2], "org.apache.kafka.consumer.coordinator.assigned.partitions"
    ) == [2]
    latency = "org.apache.kafka.producer.node.request.latency.max"
    (slowest,) = values_of(of_writer[-1], latency, node_id="node-1")
    assert 0 <= slowest < 60_000
    assert "kip848.consumer.coordinator.member.epoch" in of_reader[0].names


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4])
async def test_brokers_can_read_each_compression(
    broker: Listening, unique: Callable[[str], str], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_telemetry_driver, "_CODECS", (number,))
    name = unique(f"compressed-{number}")
    broker.subscribe(name, "org.apache.kafka.producer.connection.creation")
    async with Producer(
        bootstrap_servers=broker.kafka.bootstrap, client_id=name, metrics=Metrics()
    ) as producer:
        await producer.client_instance_id()
    (push,) = await pushed(broker, name)
    assert push.terminating
    assert push.names == {
        "org.apache.kafka.producer.connection.creation.rate",
        "org.apache.kafka.producer.connection.creation.total",
    }


async def pushed(broker: Listening, client_id: str, count: int = 1) -> list[Push]:
    await eventually(lambda: len(broker.pushes(client_id)) >= count)
    return broker.pushes(client_id)


async def test_a_subscription_that_changes_is_asked_for_again(
    broker: Listening, unique: Callable[[str], str]
) -> None:
    name = unique("changing")
    broker.subscribe(name, "org.apache.kafka.producer.connection.creation.total")
    async with Producer(
        bootstrap_servers=broker.kafka.bootstrap, client_id=name, metrics=Metrics()
    ) as producer:
        await pushed(broker, name, 2)
        first = await producer.client_instance_id()
        broker.subscribe(name, "org.apache.kafka.producer.record.send.total", 300)
        wanted = {"org.apache.kafka.producer.record.send.total"}
        await eventually(lambda: broker.pushes(name)[-1].names == wanted)
        assert await producer.client_instance_id() == first
    assert {each.instance_id for each in broker.pushes(name)} == {first}


async def test_who_is_not_asked_for_metrics_pushes_none_and_has_an_instance_id(
    broker: Listening, unique: Callable[[str], str]
) -> None:
    name = unique("unasked")
    async with Producer(
        bootstrap_servers=broker.kafka.bootstrap, client_id=name, metrics=Metrics()
    ) as producer:
        assert len(await producer.client_instance_id()) == 22
    assert broker.pushes(name) == []


async def test_what_is_too_large_is_pushed_in_turns(
    tmp_path: Path, kafka_version: str, unique: Callable[[str], str]
) -> None:
    limit = {"telemetry.max.bytes": str(_MAX_BYTES)}
    name, topic = unique("large"), unique("large")
    with listening(kafka_version, tmp_path, **limit) as broker:
        broker.subscribe(name, "org.apache.kafka.consumer", 200)
        broker.kafka.create_topic(topic, _PARTITIONS)
        async with Consumer(
            topic,
            bootstrap_servers=broker.kafka.bootstrap,
            group_id=name,
            client_id=name,
            auto_offset_reset="earliest",
            metrics=Metrics(),
        ) as consumer:
            await consumer.wait_assigned(20_000)
            reading = asyncio.ensure_future(consumer.getone())
            lag = "org.apache.kafka.consumer.fetch.manager.records.lag"

            def told() -> set[str]:
                """The partitions whose lag was told."""
                return {
                    str(n)
                    for n in range(_PARTITIONS)
                    if any(values_of(each, lag, partition=str(n)) for each in broker.pushes(name))
                }

            await eventually(lambda: len(told()) == _PARTITIONS)
            reading.cancel()
        pushes = broker.pushes(name)
        assert all(len(each.payload) <= _MAX_BYTES for each in pushes)
        assert not any(
            all(values_of(each, lag, partition=str(n)) for n in range(_PARTITIONS))
            for each in pushes
        )
        total = "org.apache.kafka.consumer.coordinator.assigned.partitions"
        assert all(values_of(each, total) for each in broker.pushes(name))


async def test_a_broker_without_a_reporter_takes_none(
    real_kafka: RealKafka, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        async with Producer(bootstrap_servers=real_kafka.bootstrap, metrics=Metrics()) as producer:
            with pytest.raises(UnsupportedVersion, match="GetTelemetrySubscriptions"):
                await producer.client_instance_id()
        async with Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
            with pytest.raises(LocalProtocolError, match="metrics=Metrics"):
                await producer.client_instance_id()
    assert caplog.records == []
