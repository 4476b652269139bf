"""A login that a broker refuses before it has seen a password: the error says what to set."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import pytest

from kip848_client import BootstrapFailed, BrokerError, Consumer, Producer
from kip848_client.admin import Admin
from kip848_client.core.ports import ConnectionBroken
from mock_coordinator import Fault, Match, MockBroker
from mock_coordinator.core.faults import Disconnect
from mock_coordinator.security.options import ListenerOptions, SecurityOptions

pytestmark = pytest.mark.asyncio

PATIENCE_S: Final = 10
CLIENTS: Final[tuple[Callable[..., Any], ...]] = (
    Admin,
    Producer,
    lambda **settings: Consumer("t", group_id="g", **settings),
)


def login(address: str, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": "secret",
    }


async def refused(make: Callable[..., Any], settings: dict[str, Any]) -> BrokerError:
    client = make(**settings)
    with pytest.raises(BrokerError) as failed:
        async with asyncio.timeout(PATIENCE_S):
            await client.start()
    await client.stop()
    return failed.value


@pytest.mark.parametrize("make", CLIENTS, ids=["admin", "producer", "consumer"])
async def test_a_listener_without_sasl_is_told(make: Callable[..., Any]) -> None:
    async with MockBroker({"t": 1}) as broker:
        error = await refused(make, login(broker.bootstrap, "SCRAM-SHA-256"))
    assert error.name == "ILLEGAL_SASL_STATE"
    assert broker.bootstrap in str(error)
    assert "the listener has no SASL: set security_protocol to PLAINTEXT, or" in str(error)


async def test_the_mechanisms_of_the_listener_are_told() -> None:
    listener = ListenerOptions(
        name="SASL", protocol="SASL_PLAINTEXT", mechanisms=("PLAIN", "SCRAM-SHA-512")
    )
    security = SecurityOptions(listeners=(listener,), users={"alice": "secret"})
    async with MockBroker({"t": 1}, security=security) as broker:
        error = await refused(Admin, login(broker.bootstrap_of("SASL"), "SCRAM-SHA-256"))
    assert error.name == "UNSUPPORTED_SASL_MECHANISM"
    said = "sasl_mechanism is SCRAM-SHA-256; the listener offers PLAIN, SCRAM-SHA-512"
    assert said in str(error)


async def test_who_does_not_log_in_where_that_is_wanted_is_told_so() -> None:
    security = SecurityOptions(listeners=(ListenerOptions(name="SASL", protocol="SASL_PLAINTEXT"),))
    said = "security_protocol is PLAINTEXT; if this goes on, see whether the listener wants a login"
    async with MockBroker({"t": 1}, security=security) as broker:
        address = broker.bootstrap_of("SASL")
        async with Admin(bootstrap_servers=address) as admin:
            with pytest.raises(ConnectionBroken, match=said):
                await admin.list_topics(timeout_ms=300)
        producer = Producer(bootstrap_servers=address)
        with pytest.raises(ConnectionBroken, match=said):
            await producer.start()
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            await admin.list_topics()
            broker.faults.add(Fault(Disconnect(), Match(api="Metadata"), times=None))
            with pytest.raises(ConnectionBroken) as broken:
                await admin.list_topics(timeout_ms=50)
            assert "login" not in str(broken.value)


async def test_tls_where_there_is_none_points_at_the_protocol() -> None:
    async with MockBroker({"t": 1}) as broker:
        with pytest.raises(BootstrapFailed, match="security_protocol is the listener's"):
            await Admin(bootstrap_servers=broker.bootstrap, security_protocol="SSL").start()
