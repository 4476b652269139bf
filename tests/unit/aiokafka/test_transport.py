"""Which connection a request goes out on, and what is left of them when the client begins anew."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kip848_client.core.ports import NotSent
from kip848_client.core.wire.messages.fetch import FetchRequest, FetchResponse
from kip848_client.core.wire.messages.metadata import MetadataRequest, MetadataResponse
from kip848_client.errors import ConsumerClosed, Kip848Error
from kip848_client.runtime.net import _first_answer, _links
from kip848_client.runtime.net._connection import ConnectionOptions
from kip848_client.runtime.net._transport import KafkaTransport
from tests.unit.consumer.fakes import FakeClock
from tests.unit.waiting import some_rounds

pytestmark = pytest.mark.asyncio

FETCH = FetchRequest(max_wait_ms=500, min_bytes=1)
METADATA = MetadataRequest(topics=())


class Connection:
    """Answers metadata at once; a fetch waits at the broker."""

    _versions: dict[int, tuple[int, int]]

    def __init__(self, address: tuple[str, int], options: ConnectionOptions) -> None:
        self.address = address
        self.patience_ms = options.request_timeout_ms
        self.sent: list[str] = []
        self.waiting: asyncio.Future[Any] | None = None
        self.closed = False
        self.is_due = False
        self._versions = {}

    def connected(self) -> bool:
        return not self.closed

    def send(self, request: Any) -> asyncio.Future[Any]:
        self.sent.append(request.api.name)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if request.api.name == "Fetch" or self.waiting is not None:
            self.waiting = future
        else:
            future.set_result(MetadataResponse())
        return future

    def close(self, reason: Any = None) -> None:
        del reason
        self.closed = True
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_exception(ConnectionError("closed"))


class TransportHarness:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened: list[Connection] = []

        async def open_connection(host: str, port: int, options: Any, *_: object) -> Connection:
            self.opened.append(Connection((host, port), options))
            return self.opened[-1]

        monkeypatch.setattr(_links, "open_connection", open_connection)
        self.transport = KafkaTransport(
            "seed:1", "g", ConnectionOptions("c", 30_000), FakeClock(), fetch_max_wait_ms=500
        )
        self.transport.learn_brokers([(1, "one", 1)])


async def test_what_waits_at_the_broker_holds_nothing_else_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = TransportHarness(monkeypatch)
    fetching = asyncio.ensure_future(it.transport.fetch(1, FETCH, timeout_ms=30_500))
    await some_rounds()
    assert await it.transport.broker(1, METADATA) == MetadataResponse()
    assert await it.transport.any_broker(METADATA) == MetadataResponse()
    assert [(each.address, each.sent) for each in it.opened] == [
        (("one", 1), ["Fetch"]),
        (("one", 1), ["Metadata", "Metadata"]),
    ]
    assert [each.patience_ms for each in it.opened] == [30_500, 30_000]
    assert it.opened[0].waiting is not None
    it.opened[0].waiting.set_result(FetchResponse())
    assert await fetching == FetchResponse()


async def test_a_broker_may_be_known_from_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    it = TransportHarness(monkeypatch)
    with pytest.raises(NotSent, match="broker 2 is not in the cluster's metadata"):
        await it.transport.fetch(2, FETCH, timeout_ms=1)
    it.transport.add_brokers([(2, "two", 2)])
    for node_id in (1, 2):
        await it.transport.broker(node_id, METADATA)
    assert [each.address for each in it.opened] == [("one", 1), ("two", 2)]
    it.transport.learn_brokers([(1, "one", 1)])
    with pytest.raises(NotSent):
        await it.transport.broker(2, METADATA)


async def test_a_frozen_broker_does_not_hold_up_what_any_broker_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has a connection, so it is the first to be asked."""
    monkeypatch.setattr(_first_answer, "_HEAD_START_S", 0.001)
    it = TransportHarness(monkeypatch)
    it.transport.add_brokers([(2, "two", 2)])
    await it.transport.broker(1, METADATA)
    it.opened[0].waiting = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(5):
        assert await it.transport.any_broker(METADATA, timeout_ms=30_000) == MetadataResponse()
    assert it.opened[0].sent == ["Metadata", "Metadata"]
    assert not it.opened[0].closed, "it may answer yet"
    before = asyncio.all_tasks()
    await it.transport.close()
    assert len(before) == 2
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_beginning_anew_leaves_no_connection_and_asks_the_bootstrap_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = TransportHarness(monkeypatch)
    await it.transport.broker(1, METADATA)
    fetching = asyncio.ensure_future(it.transport.fetch(1, FETCH, timeout_ms=30_500))
    await some_rounds()
    await it.transport.begin_anew()
    assert all(each.closed for each in it.opened)
    with pytest.raises(Kip848Error) as caught:
        await fetching
    assert not isinstance(caught.value, ConsumerClosed)
    with pytest.raises(NotSent):
        await it.transport.fetch(1, FETCH, timeout_ms=1)
    assert await it.transport.any_broker(METADATA) == MetadataResponse()
    assert it.opened[-1].address == ("seed", 1)


async def test_who_is_about_to_use_a_connection_hears_of_the_new_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not that the consumer is closed: that would be told to the application."""
    it = TransportHarness(monkeypatch)
    link = it.transport._links.to("one", 1)
    await it.transport.begin_anew()
    with pytest.raises(NotSent, match="starts over"):
        await link.send(METADATA, (0, 13), 1_000)
    link = it.transport._links.to("one", 1)
    await it.transport.close()
    with pytest.raises(ConsumerClosed):
        await link.send(METADATA, (0, 13), 1_000)
