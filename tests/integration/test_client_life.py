"""The rules of a client's life, each tested with all five client classes."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from kip848_client import (
    Admin,
    Consumer,
    ConsumerClosed,
    ConsumerNotStarted,
    ExactlyOnceProcessor,
    Kip848Error,
    LocalProtocolError,
    Producer,
    TransportError,
)
from kip848_client.connect import Worker
from mock_coordinator import MockBroker

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(20)]

NOWHERE: Final = "127.0.0.1:9"
CLOSED: Final = (ConsumerClosed, LocalProtocolError)
KINDS: Final = ("consumer", "producer", "admin", "worker", "processor")
all_clients = pytest.mark.parametrize("kind", KINDS)

CALLS: Final[dict[str, Callable[[Any], Any]]] = {
    "consumer": lambda one: one.getone(),
    "producer": lambda one: one.send_and_wait("orders", b"1"),
    "admin": lambda one: one.list_groups(),
    "worker": lambda one: one.run(),
    "processor": lambda one: one.run(),
}
"""A call that needs a client that runs."""


def client_of(kind: str, address: str) -> Any:
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


@asynccontextmanager
async def silent() -> AsyncGenerator[tuple[str, asyncio.Event]]:
    """A server that accepts connections and never answers: its address, and whether one came."""
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


@all_clients
async def test_a_call_before_the_start_names_start(kind: str) -> None:
    client = client_of(kind, NOWHERE)
    error = ConsumerNotStarted if kind == "consumer" else LocalProtocolError
    with pytest.raises(error, match=f"the {kind} is not started; call start"):
        await CALLS[kind](client)


@all_clients
async def test_a_stop_before_the_start_forbids_it(kind: str) -> None:
    client = client_of(kind, NOWHERE)
    await client.stop()
    await client.stop()
    with pytest.raises(CLOSED, match=f"the {kind} was stopped before; create a new one"):
        await client.start()
    with pytest.raises(CLOSED, match=f"the {kind} is closed"):
        await CALLS[kind](client)


@all_clients
async def test_a_client_is_started_once(kind: str) -> None:
    async with MockBroker({"orders": 1}) as broker:
        client = client_of(kind, broker.bootstrap)
        async with client:
            with pytest.raises(LocalProtocolError, match=f"the {kind} was started before"):
                await client.start()
        with pytest.raises(CLOSED, match=f"the {kind} was stopped before"):
            await client.start()
        await client.stop()


@all_clients
async def test_a_start_is_ended_by_a_stop_but_not_cancelled(kind: str) -> None:
    async with silent() as (address, came):
        client = client_of(kind, address)
        starting = asyncio.create_task(client.start())
        await came.wait()
        with pytest.raises(LocalProtocolError, match="was started before"):
            await client.start()
        async with asyncio.timeout(10):
            await client.stop()
            with pytest.raises(CLOSED, match=f"the {kind} was stopped while it started"):
                await starting


@all_clients
@pytest.mark.parametrize("stops", [False, True])
async def test_a_start_that_is_cancelled_ends_cancelled(kind: str, stops: bool) -> None:
    """Also while another task stops the client. A cancellation that is swallowed makes a task group
    continue, or raise two errors."""
    async with silent() as (address, came):
        client = client_of(kind, address)
        starting = asyncio.create_task(client.start())
        await came.wait()
        stopping = asyncio.create_task(client.stop()) if stops else None
        await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait([starting], timeout=10)
        assert starting.cancelled()
        if stopping is not None:
            await asyncio.wait_for(stopping, 10)
        with pytest.raises(CLOSED, match="was stopped before"):
            await client.start()


@all_clients
async def test_a_start_that_fails_closes_the_client(kind: str) -> None:
    client = client_of(kind, NOWHERE)
    before = asyncio.all_tasks()
    with pytest.raises(TransportError, match=r"127\.0\.0\.1:9"):
        await client.start()
    with pytest.raises(CLOSED, match="was stopped before"):
        await client.start()
    assert {each for each in asyncio.all_tasks() - before if not each.done()} == set()
    await client.stop()


@all_clients
async def test_a_client_belongs_to_the_loop_of_its_start(kind: str) -> None:
    errors: list[BaseException] = []

    async def call(client: Any) -> None:
        for each in (CALLS[kind], lambda one: one.start(), lambda one: one.stop()):
            try:
                await each(client)
            except LocalProtocolError as err:
                errors.append(err)

    async with MockBroker({"orders": 1}) as broker, client_of(kind, broker.bootstrap) as client:
        thread = threading.Thread(target=lambda: asyncio.run(call(client)))
        thread.start()
        await asyncio.to_thread(thread.join)
    assert len(errors) == 3
    for each in errors:
        assert f"this {kind} was started in another event loop (or thread)" in str(each)


@pytest.mark.parametrize("kind", ["consumer", "producer", "worker"])
async def test_a_client_whose_task_was_cancelled_reports_it_from_each_call(kind: str) -> None:
    async with MockBroker({"orders": 1}) as broker:
        client = client_of(kind, broker.bootstrap)
        await client.start()
        client._runtime.task.cancel()
        await asyncio.wait([client._runtime.task])
        for _ in range(2):
            with pytest.raises(
                Kip848Error, match=f"the {kind} was cancelled from outside; stop the {kind} and"
            ):
                await CALLS[kind](client)
        await client.stop()


@all_clients
async def test_a_stop_leaves_no_task_and_can_be_repeated(kind: str) -> None:
    before = asyncio.all_tasks()
    async with MockBroker({"orders": 1}) as broker:
        client = client_of(kind, broker.bootstrap)
        await client.start()
        await asyncio.gather(client.stop(), client.stop())
        await client.stop()
    assert {each for each in asyncio.all_tasks() - before if not each.done()} == set()


@pytest.mark.parametrize("kind", ["producer", "admin"])
async def test_a_client_that_nobody_stops_warns(kind: str) -> None:
    async with MockBroker({"orders": 1}) as broker:
        client = client_of(kind, broker.bootstrap)
        await client.start()
        runtime = client._runtime
        forgotten = [client]
        del client
        with pytest.warns(ResourceWarning, match="was never stopped"):
            forgotten.clear()
        await runtime.close(0).finish()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            client_of(kind, NOWHERE)
            gc.collect()
