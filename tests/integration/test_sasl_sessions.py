"""Logins that end (KIP-368): the consumer replaces a connection before the broker closes it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import pytest

from kip848_client import Consumer, OffsetAndMetadata, TopicPartition
from kip848_client._aiokafka import _connection
from mock_coordinator import MockBroker
from mock_coordinator.security.options import ListenerOptions, SecurityOptions
from tests.integration.cluster import Cluster
from tests.support.real_kafka import FAST_CONFIGS

pytestmark = pytest.mark.asyncio

LIFETIME_MS: Final = 1_500
LIFETIMES: Final = 2.3


def login(broker: MockBroker, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.bootstrap_of("SASL"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": mechanism.lower(),
        "sasl_plain_password": "secret",
    }


async def consume(cluster: Cluster, broker: MockBroker, mechanism: str, topic: str) -> None:
    """Produce, read and commit one by one while sessions begin and end."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + LIFETIMES * LIFETIME_MS / 1000
    consumer = Consumer(
        topic, group_id=topic, auto_offset_reset="earliest", **login(broker, mechanism)
    )
    offset = 0
    async with consumer, cluster.producer() as producer:
        while loop.time() < ends_s:
            await producer.send_and_wait(topic, b"%d" % offset)
            assert (await consumer.getone()).value == b"%d" % offset
            offset += 1
            done = {TopicPartition(topic, 0): OffsetAndMetadata(offset)}
            assert await consumer.commit() == done
            await asyncio.sleep(0.02)


async def test_the_ends_of_sasl_sessions_pass_unnoticed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # 5 % of so short a lifetime is less than what a busy machine holds an event loop up for
    monkeypatch.setattr(_connection, "_DUE_AFTER", (0.3, 0.4))
    listener = ListenerOptions(name="SASL", protocol="SASL_PLAINTEXT", max_reauth_ms=LIFETIME_MS)
    users = {"plain": "secret", "scram-sha-256": "secret"}
    security = SecurityOptions(users=users, listeners=(listener,))
    topics = {"t": 1, "u": 1}
    async with MockBroker(topics, config=FAST_CONFIGS, security=security) as broker:
        cluster = Cluster("mock", "4.4", broker.host, broker.port)
        with caplog.at_level(logging.INFO):
            await asyncio.gather(
                consume(cluster, broker, "PLAIN", "t"),
                consume(cluster, broker, "SCRAM-SHA-256", "u"),
            )
        await cluster.close()
    said = [each.getMessage() for each in caplog.records]
    for user in users:
        # for short requests and for fetches, and again for each end that fell into the time
        assert sum(f"Authenticated as {user}" in each for each in said) >= 2 + 4, said
    complaints = [each.getMessage() for each in caplog.records if each.levelno > logging.INFO]
    assert len(complaints) == 1, complaints
    assert "in the clear" in complaints[0]
