"""What clients count of their connections, over TCP, beside what the broker has seen of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kip848_client import BrokerError, Consumer, Kip848Error, Metrics, Producer
from kip848_client.observe.core.metrics import ClientMetrics
from kip848_client.runtime.net._measured import MeasuredConnection
from mock_coordinator import MockBroker, MockCluster
from mock_coordinator.driver.request_log import LoggedRequest
from mock_coordinator.security.options import ListenerOptions, SecurityOptions
from tests.integration.cluster import eventually

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

CONFIG = {"group.consumer.assignment.interval.ms": "0"}


def told(client: ClientMetrics, name: str, node: str | None = None) -> float:
    """A metric of one client, which may have been stopped."""
    (value,) = [
        each.value
        for each in client.samples()
        if each.name == name and each.tags.get("node-id") == node
    ]
    return value


def of(seen: list[LoggedRequest], client_id: str) -> list[LoggedRequest]:
    return [each for each in seen if each.client_id == client_id]


async def test_requests_and_connections_are_those_that_the_broker_saw() -> None:
    metrics = Metrics()
    settings: dict[str, Any] = {"metrics": metrics}
    async with asyncio.timeout(60), MockBroker({"t": 2}, config=CONFIG) as broker:
        settings["bootstrap_servers"] = broker.bootstrap
        async with Producer(client_id="p", **settings) as producer:
            (writing,) = metrics.clients
            for number in range(5):
                await producer.send_and_wait("t", bytes(1_000), partition=number % 2)
            assert told(writing, "connection-count") == 2  # one for records
        async with Consumer(
            "t", group_id="g", client_id="c", auto_offset_reset="earliest", **settings
        ) as consumer:
            (reading,) = metrics.clients
            for _ in range(5):
                await consumer.getone()
            await consumer.commit()
            await consumer.committed(("t", 0))
            assert told(reading, "connection-count") == 2  # one for fetches
        seen = broker.requests()
    for client, name in ((writing, "p"), (reading, "c")):
        requests = of(seen, name)
        assert told(client, "request-total") == len(requests)
        assert told(client, "connection-count") == 0
        connections = len({each.connection for each in requests})
        assert told(client, "connection-creation-total") == connections == 2
        assert told(client, "connection-close-total") == 2
        # a fetch may have been given up at the end
        assert len(requests) - 2 <= told(client, "response-total") <= len(requests)
        both = told(client, "request-total") + told(client, "response-total")
        assert told(client, "network-io-total") == both
        nodes = [told(client, "request-total", node) for node in ("node--1", f"node-{seen_by()}")]
        assert sum(nodes) == len(requests)
        assert all(nodes)
    assert told(writing, "outgoing-byte-total") > 5 * 1_000
    assert 1_000 < told(writing, "request-size-max") < 2_000
    assert told(reading, "incoming-byte-total") > 5 * 1_000
    assert told(reading, "request-latency-max", f"node-{seen_by()}") >= 0
    assert told(reading, "committed-time-ns-total") >= 0
    assert told(reading, "successful-authentication-total") == 0  # there was none


def seen_by() -> int:
    """The id of the only broker."""
    return 1


async def test_each_broker_is_measured_for_itself() -> None:
    metrics = Metrics()
    async with asyncio.timeout(60), MockCluster({"t": 2}, brokers=2, config=CONFIG) as cluster:
        for number, node in enumerate(cluster.nodes):
            cluster.move_leader("t", number, node.node_id)
        async with Producer(
            bootstrap_servers=cluster.bootstrap, client_id="p", acks=0, metrics=metrics
        ) as producer:
            (client,) = metrics.clients
            for number in range(2):
                for _ in range(number + 1):
                    await (await producer.send("t", b"v", partition=number))
            produced = [
                told(client, "request-total", f"node-{node.node_id}") for node in cluster.nodes
            ]
            # what is not answered does not keep later answers from theirs
            assert told(client, "request-total") - told(client, "response-total") == 3
            assert all(count >= 1 for count in produced)


async def test_logins_are_counted() -> None:
    listener = ListenerOptions(name="SASL", protocol="SASL_PLAINTEXT")
    users = {"root": "secret"}
    security = SecurityOptions(users=users, listeners=(listener,))
    metrics = Metrics()
    settings: dict[str, Any] = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "root",
        "metrics": metrics,
    }
    async with asyncio.timeout(60), MockBroker({"t": 1}, security=security) as broker:
        settings["bootstrap_servers"] = broker.bootstrap_of("SASL")
        async with Producer(sasl_plain_password="secret", **settings) as producer:
            (client,) = metrics.clients
            await producer.send_and_wait("t", b"v")
            assert told(client, "successful-authentication-total") == 2
            assert told(client, "failed-authentication-total") == 0
        producer = Producer(sasl_plain_password="wrong", **settings)
        starting = asyncio.create_task(producer.start())
        await eventually(lambda: bool(metrics.clients))
        (client,) = metrics.clients
        with pytest.raises(BrokerError):
            await starting
        assert told(client, "failed-authentication-total") >= 1
        assert told(client, "successful-authentication-total") == 0
        assert told(client, "connection-count") == 0
        await producer.stop()


async def test_nothing_is_measured_that_nobody_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: object, **__: object) -> None:
        raise Kip848Error("a connection that is measured")

    monkeypatch.setattr(MeasuredConnection, "__init__", made)
    async with (
        MockBroker({"t": 1}) as broker,
        Producer(bootstrap_servers=broker.bootstrap) as producer,
    ):
        await producer.send_and_wait("t", b"v")
