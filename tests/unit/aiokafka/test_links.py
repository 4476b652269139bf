"""A connection for short requests: when it is kept, and when it is given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError

from kip848_client.core.ports import ConnectionBroken, NotSent
from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kip848_client.errors import RequestTimedOut
from kip848_client.runtime.net import _links
from kip848_client.runtime.net._connection import ConnectionOptions
from kip848_client.runtime.net._links import Link
from tests.unit.consumer.fakes import FakeClock

pytestmark = pytest.mark.asyncio

REQUEST = FindCoordinatorRequest(key_type=0, coordinator_keys=("g",))
ANSWER = FindCoordinatorResponse()


class Connection:
    """Answers come in the order of the requests, as on TCP: one that is missing holds the later
    ones up. ``fates``: of each request, ``None`` for no answer."""

    _versions: dict[int, tuple[int, int]]

    def __init__(self, *fates: object) -> None:
        self._fates = list(fates)
        self._stuck = False
        self.closed = False
        self.is_due = False
        self.waited_for = False

    def connected(self) -> bool:
        return not self.closed

    def send(self, _request: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        fate = self._fates.pop(0)
        self._stuck = self._stuck or fate is None
        if isinstance(fate, Exception):
            future.set_exception(fate)
        elif not self._stuck:
            future.set_result(fate)
        return future

    async def answered(self, _timeout_s: float) -> None:
        self.waited_for = True
        assert not self.closed

    def close(self, reason: Any = None) -> None:
        del reason
        self.closed = True


def link_over(monkeypatch: pytest.MonkeyPatch, *connections: Connection) -> Link:
    opened = iter(connections)

    async def open_connection(*_: object) -> Connection:
        return next(opened)

    monkeypatch.setattr(_links, "open_connection", open_connection)
    return Link("a", 1, ConnectionOptions("c", 30_000), FakeClock())


async def test_an_answer_that_is_missing_takes_the_connection_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or every later answer would wait behind it, and each request would time out."""
    first, second = Connection(None, ANSWER), Connection(ANSWER)
    link = link_over(monkeypatch, first, second)
    with pytest.raises(RequestTimedOut):
        await link.send(REQUEST, (0, 4), 1)
    assert first.closed
    assert await link.send(REQUEST, (0, 4), 1_000) == ANSWER
    assert not second.closed


async def test_who_waits_for_a_connection_that_fails_does_not_wait_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten requests to a broker that takes connections and says nothing took ten times as long."""
    attempts = 0
    fails = asyncio.Event()

    async def open_connection(*_: object) -> Connection:
        nonlocal attempts
        attempts += 1
        if attempts > 1:
            return Connection(ANSWER)
        await fails.wait()
        raise OSError("mute")

    monkeypatch.setattr(_links, "open_connection", open_connection)
    link = Link("a", 1, ConnectionOptions("c", 30_000), FakeClock())
    waiting = [asyncio.create_task(link.send(REQUEST, (0, 4), 1_000)) for _ in range(10)]
    await asyncio.sleep(0)
    fails.set()
    for failed in await asyncio.gather(*waiting, return_exceptions=True):
        assert isinstance(failed, NotSent)
        assert "mute" in str(failed)
    assert attempts == 1
    assert await link.send(REQUEST, (0, 4), 1_000) == ANSWER


async def test_a_connection_that_answers_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    only = Connection(ANSWER, ANSWER)
    link = link_over(monkeypatch, only)
    for _ in range(2):
        assert await link.send(REQUEST, (0, 4), 1_000) == ANSWER
    assert not only.closed


async def test_a_connection_that_broke_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Connection(KafkaConnectionError("cut")), Connection(ANSWER)
    link = link_over(monkeypatch, first, second)
    with pytest.raises(ConnectionBroken):
        await link.send(REQUEST, (0, 4), 1_000)
    assert first.closed
    assert await link.send(REQUEST, (0, 4), 1_000) == ANSWER


async def test_a_connection_whose_login_is_about_to_end_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = Connection(ANSWER), Connection(ANSWER)
    link = link_over(monkeypatch, first, second)
    assert await link.send(REQUEST, (0, 4), 1_000) == ANSWER
    first.is_due = True
    assert await link.send(REQUEST, (0, 4), 1_000) == ANSWER
    assert first.waited_for, "what was asked before would have been lost"
    assert first.closed
    assert not second.closed
