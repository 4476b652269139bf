"""Closed is closed: what was stopped does not start, whichever of the two calls came first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kip848_client import (
    Admin,
    Consumer,
    ConsumerClosed,
    ExactlyOnceProcessor,
    LocalProtocolError,
    Producer,
)
from kip848_client.connect import Worker

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(20)]

NOWHERE = "127.0.0.1:9"


@asynccontextmanager
async def silent() -> AsyncGenerator[tuple[str, asyncio.Event]]:
    """A server that takes connections and says nothing; its address, and whether somebody came."""
    came = asyncio.Event()
    writers: list[asyncio.StreamWriter] = []

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        came.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", came
    finally:
        for each in writers:
            each.close()
        server.close()


async def test_a_consumer() -> None:
    consumer = Consumer("orders", bootstrap_servers=NOWHERE, group_id="g")
    events = consumer.events()
    assert not consumer.was_stopped
    await consumer.stop()
    await consumer.stop()
    assert "closed" in repr(consumer)
    assert consumer.was_stopped
    assert [each async for each in events] == []
    assert str(consumer.health().state) == "CLOSED"
    with pytest.raises(ConsumerClosed, match="stopped before"):
        await consumer.start()
    calls: tuple[Any, ...] = (
        consumer.unsubscribe,
        lambda: consumer.subscribe(["other"]),
    )
    for call in calls:
        with pytest.raises(ConsumerClosed, match="is closed"):
            call()
    with pytest.raises(ConsumerClosed, match="is closed"):
        await consumer.getone()
    by_hand = Consumer(bootstrap_servers=NOWHERE)
    await by_hand.stop()
    with pytest.raises(ConsumerClosed, match="is closed"):
        by_hand.assign([("orders", 0)])


async def test_a_producer() -> None:
    producer = Producer(bootstrap_servers=NOWHERE)
    assert not producer.was_stopped
    await producer.stop()
    await producer.stop()
    assert "closed" in repr(producer)
    assert producer.was_stopped
    with pytest.raises(LocalProtocolError, match="stopped before"):
        await producer.start()
    with pytest.raises(LocalProtocolError, match="is closed"):
        await producer.send_and_wait("orders", b"1")


async def test_an_admin() -> None:
    admin = Admin(bootstrap_servers=NOWHERE)
    await admin.stop()
    with pytest.raises(LocalProtocolError, match="stopped before"):
        await admin.start()
    with pytest.raises(LocalProtocolError, match="is stopped"):
        await admin.list_groups()


@pytest.mark.parametrize("which", ["consumer", "producer"])
async def test_a_client_that_was_stopped_is_not_given_to_a_processor(which: str) -> None:
    consumer = Consumer(
        bootstrap_servers=NOWHERE,
        group_id="g",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    producer = Producer(bootstrap_servers=NOWHERE, transactional_id="t")
    await (consumer if which == "consumer" else producer).stop()
    processor = ExactlyOnceProcessor("orders", lambda _: None, consumer=consumer, producer=producer)
    with pytest.raises(LocalProtocolError, match="leave them alone"):
        await processor.start()
    assert not consumer.subscription()


async def test_an_admin_that_is_stopped_while_it_starts() -> None:
    async with silent() as (address, came):
        admin = Admin(bootstrap_servers=address, request_timeout_ms=60_000)
        starting = asyncio.create_task(admin.start())
        await came.wait()
        with pytest.raises(LocalProtocolError, match="was started before"):
            await admin.start()
        async with asyncio.timeout(5):
            await admin.stop()
            with pytest.raises(LocalProtocolError, match="stopped while it started"):
                await starting
        with pytest.raises(LocalProtocolError, match="is stopped"):
            await admin.list_groups()


async def test_an_admin_whose_start_is_cancelled() -> None:
    async with silent() as (address, came):
        admin = Admin(bootstrap_servers=address, request_timeout_ms=60_000)
        starting = asyncio.create_task(admin.start())
        await came.wait()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        with pytest.raises(LocalProtocolError, match="was stopped before"):
            await admin.start()


def _of_kind(kind: str, address: str) -> Any:
    consumer: dict[str, Any] = {"bootstrap_servers": address, "group_id": "g"}
    if kind == "consumer":
        return Consumer("orders", **consumer)
    if kind == "producer":
        return Producer(bootstrap_servers=address)
    if kind == "admin":
        return Admin(bootstrap_servers=address)
    if kind == "worker":
        return Worker(
            {"a": 1}, _Idle(), bootstrap_servers=address, group_id="w", rest_advertised_url="u"
        )
    return ExactlyOnceProcessor(
        "orders",
        lambda _: None,
        consumer=Consumer(**consumer, enable_auto_commit=False, isolation_level="read_committed"),
        producer=Producer(bootstrap_servers=address, transactional_id="t"),
    )


class _Idle:
    """A listener that starts nothing."""

    on_assigned = on_revoked = on_lost = lambda _self, _items: None


@pytest.mark.parametrize("kind", ["consumer", "producer", "admin", "worker", "processor"])
async def test_a_start_that_is_cancelled_while_another_task_stops_the_client(kind: str) -> None:
    """A cancellation that is swallowed makes a task group go on, or raise two errors."""
    async with silent() as (address, came):
        client = _of_kind(kind, address)
        starting = asyncio.create_task(client.start())
        await came.wait()
        stopping = asyncio.create_task(client.stop())
        await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait([starting, stopping], timeout=10)
        assert starting.cancelled()
        assert stopping.done()
        assert stopping.exception() is None


@pytest.mark.parametrize("kind", ["consumer", "producer", "admin", "worker"])
async def test_a_start_is_not_cancelled_by_a_stop(kind: str) -> None:
    async with silent() as (address, came):
        client = _of_kind(kind, address)
        starting = asyncio.create_task(client.start())
        await came.wait()
        await client.stop()
        with pytest.raises((ConsumerClosed, LocalProtocolError), match="stopped"):
            await starting
