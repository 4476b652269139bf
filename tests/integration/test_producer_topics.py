"""Topics that are written to: created by being asked for, and never brought back by that."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from kip848_client.core.wire.messages.metadata import MetadataRequest
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError
from kip848_client.producer import Producer
from mock_coordinator import MockBroker
from tests.integration.cluster import Cluster, eventually

pytestmark = pytest.mark.asyncio

REFRESH_MS: Final = 50


async def topics_of(cluster: Cluster) -> set[str]:
    answer = await cluster.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    return {each.name for each in answer.topics}


def producer(cluster: Cluster, **settings: Any) -> Producer[Any, Any]:
    return Producer(bootstrap_servers=cluster.bootstrap, **settings)


async def test_a_topic_is_created_by_being_written_to(cluster: Cluster) -> None:
    new = cluster.unique("new")
    async with producer(cluster) as one:
        places = await asyncio.gather(*[one.send_and_wait(new, b"%d" % n) for n in range(20)])
    assert {each.topic for each in places} == {new}
    assert new in await topics_of(cluster)


async def test_it_is_not_where_the_user_says_no(cluster: Cluster) -> None:
    new = cluster.unique("new")
    async with producer(cluster, allow_auto_create_topics=False, max_block_ms=500) as one:
        with pytest.raises(BrokerError) as refused:
            await one.send(new, b"value")
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert new not in await topics_of(cluster)


async def test_a_name_that_no_topic_can_have_is_refused_at_once(cluster: Cluster) -> None:
    """What brokers think of it: ``send`` does not even ask them."""
    async with producer(cluster) as one:
        assert one._engine is not None
        async with asyncio.timeout(10):
            with pytest.raises(BrokerError) as refused:
                await one._engine.producing.learn("no/topic", 60_000)
    assert refused.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert "no/topic" in str(refused.value)


async def test_a_topic_that_was_deleted_does_not_come_back(cluster: Cluster) -> None:
    topic, other = cluster.unique("t"), cluster.unique("other")
    async with producer(cluster, metadata_max_age_ms=REFRESH_MS, linger_ms=0) as one:
        await one.send_and_wait(topic, b"value")
        await cluster.delete_topic(topic)

        async def is_gone() -> bool:
            return topic not in await topics_of(cluster)

        await eventually(is_gone)
        for number in range(5):  # each is answered by metadata that is newer
            await one.send_and_wait(other + str(number), b"value")
            await asyncio.sleep(2 * REFRESH_MS / 1000)  # real brokers, real time
        assert topic not in await topics_of(cluster)


async def test_a_producer_that_writes_nothing_knows_the_brokers_all_the_same() -> None:
    async with MockBroker({"t": 1}) as broker:
        address = broker.bootstrap
        async with Producer(bootstrap_servers=address, metadata_max_age_ms=REFRESH_MS):
            asked = len(broker.requests("Metadata"))
            await eventually(lambda: len(broker.requests("Metadata")) >= asked + 3)
