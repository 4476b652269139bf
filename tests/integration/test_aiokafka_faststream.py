"""FastStream with our classes below, by ``install``: not a line of an application changes."""

from __future__ import annotations

import asyncio
from typing import Any

import aiokafka
import pytest
from faststream.kafka import KafkaBroker, TestKafkaBroker
from faststream.kafka.opentelemetry import KafkaTelemetryMiddleware
from faststream.kafka.prometheus import KafkaPrometheusMiddleware
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, install
from tests.integration.cluster import Cluster, eventually
from tests.integration.faststream_app import KINDS, Application

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.timeout(120),
    pytest.mark.everything("an application of FastStream takes seconds to start and to stop"),
]

VALUES = 30


async def topics_of(cluster: Cluster, test: str) -> dict[str, str]:
    names = {kind: cluster.unique(f"{test}-{kind}") for kind in KINDS}
    for name in names.values():
        await cluster.create_topic(name, 2)
    return names


async def publish(broker: KafkaBroker, names: dict[str, str]) -> None:
    for kind, name in names.items():
        if kind != "chained":
            for number in range(VALUES):
                await broker.publish(b"v%d" % number, name)


async def test_every_kind_of_subscriber(cluster: Cluster) -> None:
    names = await topics_of(cluster, "kinds")
    with install():
        application = Application(cluster.bootstrap, names.__getitem__)
        async with application.broker:
            await application.broker.start()
            below: Any = application.broker.config.producer
            assert isinstance(below._producer.producer, AIOKafkaProducer)
            await publish(application.broker, names)
            await eventually(lambda: application.is_done(VALUES), 30)
    assert application.consumers == {AIOKafkaConsumer}
    assert len(application.workers) >= 2
    assert application.passed >= 6 * VALUES


async def test_two_instances_share_the_groups(cluster: Cluster) -> None:
    names = await topics_of(cluster, "two")
    with install():
        first, second = (Application(cluster.bootstrap, names.__getitem__) for _ in range(2))
        async with first.broker, second.broker:
            await asyncio.gather(first.broker.start(), second.broker.start())
            await publish(first.broker, names)

            def seen(kind: str) -> set[bytes]:
                return {*first.seen[kind], *second.seen[kind]}

            await eventually(lambda: all(len(seen(kind)) == VALUES for kind in KINDS), 30)
    counts = first.seen["one"] + second.seen["one"]
    assert set(counts.values()) == {1}


async def test_its_middlewares_know_the_records(cluster: Cluster) -> None:
    names = await topics_of(cluster, "observed")
    registry, exporter = CollectorRegistry(), InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    middlewares: tuple[Any, ...] = (
        KafkaPrometheusMiddleware(registry=registry, app_name="app"),
        KafkaTelemetryMiddleware(tracer_provider=provider),
    )
    with install():
        application = Application(cluster.bootstrap, names.__getitem__, middlewares)
        async with application.broker:
            await application.broker.start()
            await publish(application.broker, names)
            await eventually(lambda: application.is_done(VALUES), 30)
    found = {
        sample.labels["handler"]: sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "faststream_received_messages_total"
    }
    assert found[names["one"]] == found[names["many"]] == found[names["workers"]] == VALUES
    assert found[names["manual"]] == VALUES + 1
    processed = [each for each in exporter.get_finished_spans() if each.name.endswith("process")]
    assert sum(each.name.startswith(names["one"]) for each in processed) == VALUES


async def test_its_own_test_broker_needs_no_broker() -> None:
    with install():
        broker = KafkaBroker("127.0.0.1:1")
        seen: list[bytes] = []

        @broker.subscriber("t", group_id="g")
        async def handle(value: bytes) -> None:
            seen.append(value)

        async with TestKafkaBroker(broker) as test:
            await test.publish(b"x", "t")
    assert seen == [b"x"]
    assert aiokafka.AIOKafkaConsumer is not AIOKafkaConsumer
