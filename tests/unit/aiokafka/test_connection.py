"""When a login is about to end, on aiokafka's real connection."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.admin import SaslAuthenticateRequest, SaslHandShakeRequest

from kip848_client.runtime.net._connection import Connection
from tests.unit.waiting import some_rounds

pytestmark = pytest.mark.asyncio


class Login:
    """A connection whose broker answers at once, with ``session_lifetime_ms`` where given. Time
    passes by ``pass_s``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connection = Connection("127.0.0.1", 1)
        self._now_s = 1_000.0
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(self.connection, "_loop", SimpleNamespace(time=lambda: self._now_s))

    def pass_s(self, seconds: float) -> None:
        self._now_s += seconds

    async def ask(self, request: Any, **answer: Any) -> Any:
        async def answered() -> Any:
            self.pass_s(1)  # on the way
            return SimpleNamespace(**answer)

        self._monkeypatch.setattr(AIOKafkaConnection, "send", lambda *_: answered())
        return await self.connection.send(request)

    async def due_after_s(self, limit_s: int) -> float | None:
        """Seconds until it is due."""
        for passed in range(limit_s + 1):
            if self.connection.is_due:
                return passed
            self.pass_s(1)
        return None


async def test_it_is_due_before_its_login_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(20):
        login = Login(monkeypatch)
        await login.ask(SaslAuthenticateRequest(b""), session_lifetime_ms=0)  # SCRAM's first
        await login.ask(SaslAuthenticateRequest(b""), session_lifetime_ms=1_000_000)
        due = await login.due_after_s(1_000)
        assert due is not None
        assert 849 <= due <= 950  # a second of it was used on the way


async def test_a_login_without_an_end_is_never_due(monkeypatch: pytest.MonkeyPatch) -> None:
    login = Login(monkeypatch)
    await login.ask(SaslAuthenticateRequest(b""))  # version 0 has no such field
    await login.ask(SaslAuthenticateRequest(b""), session_lifetime_ms=0)
    await login.ask(SaslHandShakeRequest("PLAIN"), session_lifetime_ms=1)
    assert await login.due_after_s(10_000) is None


async def test_it_waits_for_what_is_not_answered_yet() -> None:
    connection = Connection("127.0.0.1", 1)
    await connection.answered(60)
    one, two = (asyncio.get_running_loop().create_future() for _ in range(2))
    connection._requests.extend([(1, None, one), (2, None, two)])
    waiting = asyncio.get_running_loop().create_task(connection.answered(60))
    one.set_result(None)
    await some_rounds()
    assert not waiting.done()
    two.cancel()  # whoever asked has given up
    await waiting
    two = asyncio.get_running_loop().create_future()
    connection._requests.append((3, None, two))
    await connection.answered(0)  # the time is over
