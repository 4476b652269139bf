"""Logins that end (KIP-368): the consumer replaces a connection before the broker closes it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

import pytest

from kip848_client import Consumer, OffsetAndMetadata, Producer, TopicPartition
from kip848_client.runtime.net import _connection
from mock_coordinator import MockBroker
from mock_coordinator.security.options import ListenerOptions, SecurityOptions
from tests.integration.cluster import Cluster
from tests.support.pytest_kafka import chosen_versions, skip_without_kafka
from tests.support.real_kafka import FAST_CONFIGS
from tests.support.secure_kafka import start_secure_kafka

pytestmark = pytest.mark.asyncio

LIFETIME_MS: Final = 1_500
LIFETIMES: Final = 2.3
REAL_S: Final = 6.5
"""Three times as long as sessions of the listener SHORT."""


def login(broker: MockBroker, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": broker.bootstrap_of("SASL"),
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": mechanism.lower(),
        "sasl_plain_password": "secret",
    }


async def consume(cluster: Cluster, options: Mapping[str, Any], topic: str, seconds: float) -> int:
    """Produce, read and commit one by one while sessions begin and end; then how many."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + seconds
    consumer = Consumer(topic, group_id=topic, auto_offset_reset="earliest", **options)
    offset = 0
    async with consumer, cluster.producer() as producer:
        while loop.time() < ends_s:
            await producer.send_and_wait(topic, b"%d" % offset)
            assert (await consumer.getone()).value == b"%d" % offset
            offset += 1
            done = {TopicPartition(topic, 0): OffsetAndMetadata(offset)}
            assert await consumer.commit() == done
            await asyncio.sleep(0.02)
    return offset


async def transact(options: Mapping[str, Any], topic: str, seconds: float) -> None:
    """Write in transactions, each of which lasts for a part of a session."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + seconds
    async with Producer(**options, transactional_id=topic) as producer:
        while loop.time() < ends_s:
            async with producer.transaction() as txn:
                await txn.send(topic, b"first", partition=0)
                await asyncio.sleep(0.4)
                await txn.send(topic, b"last", partition=0)


def logins(caplog: pytest.LogCaptureFixture) -> int:
    """How many there were. They are told at DEBUG, and that is all that is told of them."""
    said = [each for each in caplog.records if "logged in" in each.getMessage()]
    assert {each.levelno for each in said} <= {logging.DEBUG}
    assert not [each for each in caplog.records if "Authenticated" in each.getMessage()]
    troubles = [each.getMessage() for each in caplog.records if each.levelno > logging.INFO]
    assert [each for each in troubles if "in the clear" not in each] == []
    return len(said)


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
        seconds = LIFETIMES * LIFETIME_MS / 1000
        with caplog.at_level(logging.INFO), caplog.at_level(logging.DEBUG, "kip848_client"):
            await asyncio.gather(
                consume(cluster, login(broker, "PLAIN"), "t", seconds),
                consume(cluster, login(broker, "SCRAM-SHA-256"), "u", seconds),
            )
        await cluster.close()
    # for short requests and for fetches, and again for each end that fell into the time
    assert logins(caplog) >= len(users) * (2 + 4)
    complaints = [each.getMessage() for each in caplog.records if each.levelno > logging.INFO]
    assert len(complaints) == 1, complaints
    assert "in the clear" in complaints[0]


@pytest.mark.real_kafka
async def test_the_ends_of_sessions_at_kafka(
    request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    newest = chosen_versions(request.config)[-1]
    users = {"root": "secret"}
    with skip_without_kafka(), start_secure_kafka(newest, users, configs=FAST_CONFIGS) as secure:
        kafka = secure.kafka
        for topic in ("t", "u"):
            kafka.create_topic(topic, 1)
        options = {
            "bootstrap_servers": f"127.0.0.1:{secure.ports['SHORT']}",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "root",
            "sasl_plain_password": "secret",
        }
        cluster = Cluster(newest, kafka.profile, kafka.host, kafka.port)
        with caplog.at_level(logging.INFO), caplog.at_level(logging.DEBUG, "kip848_client"):
            count, _ = await asyncio.gather(
                consume(cluster, options, "t", REAL_S), transact(options, "u", REAL_S)
            )
        await cluster.close()
    assert count > 20
    # each client has two connections at least, and each of these more than two ends
    assert logins(caplog) >= 2 * 2 * 3
