"""OpenTelemetry's and ddtrace's instrumentation of aiokafka see what our classes do."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import aiokafka
import pytest
from opentelemetry.instrumentation.aiokafka import AIOKafkaInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, install
from tests.integration.cluster import Cluster

COUNT = 6


@pytest.fixture
def unwrapped() -> Iterator[None]:
    """What was inherited is inherited again: who unwraps a method leaves it on the class."""
    classes = (AIOKafkaConsumer, AIOKafkaProducer)
    before = [{*vars(each)} for each in classes]
    yield
    for each, names in zip(classes, before, strict=True):
        for name in {*vars(each)} - names:
            delattr(each, name)


async def exchange(cluster: Cluster, topic: str, group: str, producer: Any, consumer: Any) -> None:
    """Send and read, with whatever classes are given."""
    async with producer(bootstrap_servers=cluster.bootstrap) as sending:
        for number in range(COUNT - 1):
            await sending.send(topic, b"%d" % number, headers=[("mine", b"1")])
        await sending.send_and_wait(topic, b"last", key=b"k")
    settings = {"group_id": group, "auto_offset_reset": "earliest", "fetch_max_wait_ms": 50}
    async with consumer(topic, bootstrap_servers=cluster.bootstrap, **settings) as reading:
        first = await reading.getone()
        assert {"mine", "traceparent"} <= {name for name, _ in first.headers}
        async for record in reading:
            if record.offset == 2:
                break
        found = await reading.getmany(timeout_ms=5_000)
        assert sum(map(len, found.values())) == COUNT - 3


@pytest.mark.asyncio
@pytest.mark.everything("aiokafka itself waits 3 s for each group")
@pytest.mark.usefixtures("unwrapped")
@pytest.mark.parametrize("order", ["instrumented first", "installed first", "imported"])
async def test_opentelemetry_sees_what_it_sees_of_aiokafkas(cluster: Cluster, order: str) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = AIOKafkaInstrumentor()
    theirs = cluster.unique("theirs"), aiokafka.AIOKafkaProducer, aiokafka.AIOKafkaConsumer
    ours = cluster.unique("ours"), AIOKafkaProducer, AIOKafkaConsumer
    seen: list[Counter[Any]] = []
    for topic, producer, consumer in (theirs, ours):
        await cluster.create_topic(topic, 1)
        exporter.clear()
        with ExitStack() as stack:
            if consumer is AIOKafkaConsumer and order == "installed first":
                stack.enter_context(install())
            instrumentor.instrument(tracer_provider=provider)
            stack.callback(instrumentor.uninstrument)
            if consumer is AIOKafkaConsumer and order == "instrumented first":
                stack.enter_context(install())
                assert aiokafka.AIOKafkaConsumer is AIOKafkaConsumer
            await exchange(cluster, topic, f"group-{topic}", producer, consumer)
        spans = exporter.get_finished_spans()
        seen.append(Counter(_described(each, topic) for each in spans))
    assert seen[1] == seen[0]
    offsets = {dict(told)["messaging.kafka.message.offset"] for _, told in seen[1]}
    assert {str(number) for number in range(COUNT)} <= offsets


_TOLD = (
    "messaging.consumer.group.name",
    "messaging.destination.name",
    "messaging.destination.partition.id",
    "messaging.kafka.message.key",
    "messaging.kafka.message.offset",
    "messaging.message.id",
    "messaging.operation.type",
    "server.address",
)


def _described(span: ReadableSpan, topic: str) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """The name and what is told, without the name of the topic."""
    given = span.attributes or {}
    told = tuple((name, str(given.get(name)).replace(topic, "T")) for name in _TOLD)
    return span.name.replace(topic, "T"), told


_DDTRACE = """
import asyncio, os, sys
if sys.argv[3] == "patched first":
    from ddtrace.contrib.internal.aiokafka.patch import patch
    patch()
from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, install
install()
if sys.argv[3] != "patched first":
    from ddtrace.contrib.internal.aiokafka.patch import patch
    patch()
import aiokafka
from ddtrace.trace import TraceFilter, tracer

class Keep(TraceFilter):
    def process_trace(self, trace):
        names.extend(span.name for span in trace)
        return None

names = []
tracer.configure(trace_processors=[Keep()])

async def main(bootstrap, topic):
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(5):
            await producer.send_and_wait(topic, b"%d" % number)
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest"
    )
    async with consumer:
        assert type(consumer) is AIOKafkaConsumer
        for _ in range(3):
            await consumer.getone()
        assert sum(map(len, (await consumer.getmany(timeout_ms=5000)).values())) == 2
        assert consumer._client._dd_cluster_id, "the client is not alive"

asyncio.run(asyncio.wait_for(main(sys.argv[1], sys.argv[2]), 40))
from collections import Counter
print(sorted(Counter(names).items()))
"""


@pytest.mark.asyncio
@pytest.mark.everything("ddtrace takes seconds to be imported")
@pytest.mark.parametrize("order", ["patched first", "installed first"])
async def test_ddtrace_sees_each_record(cluster: Cluster, order: str) -> None:
    topic = cluster.unique(order.replace(" ", "-"))
    await cluster.create_topic(topic, 1)
    silent = {
        "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
        "DD_REMOTE_CONFIGURATION_ENABLED": "0",
    }
    command = [sys.executable, "-c", _DDTRACE, cluster.bootstrap, topic, order]
    ran = await asyncio.to_thread(
        subprocess.run,
        command,
        env={**os.environ, **silent},
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.strip() == "[('kafka.consume', 4), ('kafka.produce', 5)]"
