"""Logins that succeed and that fail, with every client: no error and no line of any log, at level
DEBUG, shows the password or the token."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

import pytest

from kip848_client import Admin, Consumer, Producer
from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kip848_client.connect import Worker
from kip848_client.errors import Kip848Error
from mock_coordinator import MockBroker
from mock_coordinator.security import ListenerOptions, SecurityOptions
from tests.support.secrets_shown import SECRET, shows, texts_of

pytestmark = pytest.mark.asyncio


class Nothing:
    async def on_assigned(self, items: Any) -> None: ...
    async def on_revoked(self, items: Any) -> None: ...
    async def on_lost(self, items: Any) -> None: ...


class Tokens:
    async def token(self) -> str:
        return SECRET


CLIENTS: Final[dict[str, Callable[..., Any]]] = {
    "Consumer": lambda **settings: Consumer("t", group_id="g", **settings),
    "Producer": Producer,
    "Admin": Admin,
    "Worker": lambda **settings: Worker({"copy": 1}, Nothing(), group_id="w", **settings),
    "AIOKafkaConsumer": lambda **settings: AIOKafkaConsumer("t", group_id="g", **settings),
    "AIOKafkaProducer": AIOKafkaProducer,
}


@contextlib.asynccontextmanager
async def secured(password: str) -> AsyncGenerator[str]:
    security = SecurityOptions(
        users={"alice": password},
        listeners=(ListenerOptions(name="SASL", protocol="SASL_PLAINTEXT"),),
    )
    async with MockBroker({"t": 1}, security=security) as broker:
        yield broker.bootstrap_of("SASL")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"])
@pytest.mark.parametrize("fits", [True, False])
@pytest.mark.parametrize("client", CLIENTS)
async def test_a_login(
    client: str, fits: bool, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "")
    for name in ("aiokafka", "kip848_client", "mock_coordinator"):
        caplog.set_level(logging.DEBUG, name)
    async with secured(SECRET if fits else f"not {SECRET[::-1]}") as bootstrap:
        made = CLIENTS[client](
            bootstrap_servers=bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username="alice",
            sasl_plain_password=SECRET,
            sasl_oauth_token_provider=Tokens() if "OAUTH" in mechanism else None,
        )
        if fits and mechanism != "OAUTHBEARER":  # which the bundled broker does not offer
            async with made:
                assert not shows(iter((repr(made), str(made))))
        else:
            with pytest.raises(Exception) as caught:
                await made.start()
            assert not shows(texts_of(caught.value))
            assert not isinstance(caught.value, AssertionError)
            with contextlib.suppress(Kip848Error):
                await made.stop()
    formatter = logging.Formatter("%(message)s")
    assert not shows(formatter.format(each) for each in caplog.records)
    assert not shows(repr(each.args) for each in caplog.records)


@pytest.mark.parametrize("client", CLIENTS)
async def test_nobody_answers(client: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "")
    made = CLIENTS[client](
        bootstrap_servers="127.0.0.1:1",
        security_protocol="SASL_PLAINTEXT",
        sasl_plain_username="alice",
        sasl_plain_password=SECRET,
    )
    with pytest.raises(Exception) as caught:
        await made.start()
    assert not shows(texts_of(caught.value))
    with contextlib.suppress(Kip848Error):
        await made.stop()
    assert not shows(each.getMessage() for each in caplog.records)
