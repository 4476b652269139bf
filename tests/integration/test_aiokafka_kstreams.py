"""kstreams subclasses aiokafka's classes when it is imported: ``install`` before that is enough."""

from __future__ import annotations

import pytest

from tests.integration.cluster import Cluster
from tests.support.own_process import printed_by

_PROGRAM = """
import asyncio, sys
from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, install
install()
from kstreams import ConsumerRecord, create_engine
from kstreams.backends.kafka import Kafka

async def main(bootstrap, topic):
    seen = []
    engine = create_engine(title="test", backend=Kafka(bootstrap_servers=[bootstrap]))

    @engine.stream(topic, group_id=topic, auto_offset_reset="earliest", fetch_max_wait_ms=50)
    async def consume(record: ConsumerRecord):
        seen.append(record.value)

    await engine.start()
    assert isinstance(engine._producer, AIOKafkaProducer)
    for number in range(10):
        await engine.send(topic, value=b"%d" % number)
    while len(seen) < 10:
        await asyncio.sleep(0.05)
    [stream] = engine._streams
    assert isinstance(stream.consumer, AIOKafkaConsumer), type(stream.consumer)
    await engine.stop()
    print(sorted(seen))

asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 40))
"""


@pytest.mark.asyncio
@pytest.mark.everything("a process of its own")
async def test_a_stream(cluster: Cluster) -> None:
    topic = cluster.unique("streamed")
    await cluster.create_topic(topic, 2)
    printed = await printed_by(_PROGRAM, cluster.bootstrap, topic)
    assert printed == str([b"%d" % number for number in range(10)])
