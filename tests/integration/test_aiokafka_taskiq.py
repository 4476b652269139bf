"""taskiq-aio-kafka imports aiokafka's classes by name: ``install`` before that is enough."""

from __future__ import annotations

import pytest

from tests.integration.cluster import Cluster
from tests.support.own_process import printed_by

_PROGRAM = """
import asyncio, sys
from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer, install
install()
from aiokafka.partitioner import DefaultPartitioner
from taskiq.receiver import Receiver
from taskiq_aio_kafka import AioKafkaBroker

async def main(bootstrap, topic):
    seen = []
    broker = AioKafkaBroker(bootstrap, kafka_topic=topic)
    # its default is kafka-python's, which cannot be called any more in kafka-python 3
    broker.configure_producer(partitioner=DefaultPartitioner())
    broker.configure_consumer(group_id=topic, auto_offset_reset="earliest", fetch_max_wait_ms=50)

    @broker.task
    async def work(number):
        seen.append(number)

    broker.is_worker_process = True
    await broker.startup()
    assert isinstance(broker._aiokafka_consumer, AIOKafkaConsumer)
    assert isinstance(broker._aiokafka_producer, AIOKafkaProducer)
    finish = asyncio.Event()
    receiver = Receiver(broker, max_async_tasks=2, run_startup=False)
    working = asyncio.create_task(receiver.listen(finish))
    for number in range(10):
        await work.kiq(number)
    while len(seen) < 10:
        await asyncio.sleep(0.05)
    finish.set()
    await working
    await broker.shutdown()
    print(sorted(seen))

asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), 40))
"""


@pytest.mark.asyncio
@pytest.mark.everything("a process of its own")
async def test_a_queue_of_tasks(cluster: Cluster) -> None:
    topic = cluster.unique("tasks")
    await cluster.create_topic(topic, 1)
    printed = await printed_by(_PROGRAM, cluster.bootstrap, topic)
    assert printed == str([*range(10)])
