"""How a broker begins and ends: in which task, with which errors, and what is left behind."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest
from kip848_client.errors import BrokerError, ConfigError, TransportError
from mock_coordinator import InProcessConnection, MockBroker, MockCluster, VirtualClock
from mock_coordinator.security import ListenerOptions, SecurityOptions


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def port_is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def joining() -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )


async def as_a_fixture() -> AsyncGenerator[MockBroker]:
    async with MockBroker({"t": 1}) as broker:
        yield broker


@pytest.mark.asyncio
async def test_one_task_may_enter_and_another_leave() -> None:
    """As with pytest-asyncio, which runs the two halves of a fixture in two tasks."""
    fixture = as_a_fixture()

    async def half() -> MockBroker:
        return await anext(fixture)

    broker = await asyncio.create_task(half())
    async with await anyio.connect_tcp("127.0.0.1", broker.port):
        assert not port_is_free(broker.port)
    with pytest.raises(StopAsyncIteration):  # in this task
        await anext(fixture)
    assert port_is_free(broker.port)


@pytest.mark.anyio
async def test_a_broker_that_ends_early_ends_its_block() -> None:
    async def failing() -> None:
        raise OSError("no space left")

    broker = MockBroker({"t": 1})

    async def body() -> None:
        async with broker:
            assert broker._tasks is not None
            broker._tasks.start_soon(failing)
            await anyio.sleep_forever()

    with pytest.raises(ExceptionGroup) as raised:
        await body()
    assert raised.group_contains(OSError, match="no space left")
    await anyio.lowlevel.checkpoint()  # the cancellation was the broker's own, and is over
    assert port_is_free(broker.port)


@pytest.mark.anyio
async def test_a_block_that_is_cancelled_leaves_nothing_behind() -> None:
    broker = MockBroker({"t": 1})
    with anyio.move_on_after(0.05) as scope:
        async with broker:
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert port_is_free(broker.port)


@pytest.mark.anyio
async def test_an_error_of_the_body_stays_as_it_is() -> None:
    with pytest.raises(KeyError):
        async with MockBroker({"t": 1}):
            raise KeyError


@pytest.mark.anyio
async def test_a_broker_runs_once_at_a_time_and_again() -> None:
    clock = VirtualClock()
    broker = MockBroker({"t": 1}, clock=clock)
    for _ in range(2):
        async with broker:
            with pytest.raises(RuntimeError, match="is already running"):
                await broker.__aenter__()
            await broker.connect().request(joining())
            broker.advance(60_000)
            group = broker.snapshot("g")
            assert group is not None
            assert not group.members


@pytest.mark.anyio
async def test_brokers_that_cannot_listen_let_go_of_what_they_had() -> None:
    async with MockCluster(brokers=3) as first:
        taken = first.nodes[1].port
        await first.stop_broker(1)
        cluster = MockCluster(brokers=3, port=taken - 1)
        if not port_is_free(taken - 1):
            pytest.skip(f"somebody uses port {taken - 1}")
        with pytest.raises(OSError, match="in use"):
            await cluster.__aenter__()
        assert port_is_free(taken - 1)


@pytest.mark.anyio
async def test_a_listener_whose_certificate_cannot_be_read_leaves_no_port_bound() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    listener = ListenerOptions(
        name="TLS", protocol="SSL", port=port, certificate="/nowhere.pem", key="/nowhere.key"
    )
    broker = MockBroker(security=SecurityOptions(listeners=(listener,)))
    with pytest.raises(ConfigError, match="listener TLS") as refused:
        await broker.__aenter__()
    assert port_is_free(port), "although the error and all that it has seen is still there"
    del refused


def test_a_folder_is_free_after_topics_that_cannot_be(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(BrokerError, match="INVALID_PARTITIONS"):
            MockBroker({"t": 0}, data_dir=tmp_path)
    MockBroker({"t": 1}, data_dir=tmp_path).close()


def test_a_broker_whose_listeners_cannot_be_made_lets_go_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no listener")

    with monkeypatch.context() as patch:
        patch.setattr("mock_coordinator.mock_broker.extra_servers", refuse)
        with pytest.raises(OSError, match="no listener") as kept:
            MockBroker({"t": 1}, data_dir=tmp_path)
    MockBroker({"t": 1}, data_dir=tmp_path).close()
    assert kept.tb, "the error, and with it the broker that failed, are still held"


@pytest.mark.anyio
async def test_a_clock_goes_on_without_the_brokers_that_are_closed(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with MockBroker({"t": 1}, clock=clock, data_dir=tmp_path) as first:
        await first.connect().request(joining())
    async with MockBroker({"t": 1}, clock=clock, data_dir=tmp_path) as second:
        clock.advance(60_000)
        group = second.snapshot("g")
        assert group is not None
        assert not group.members
    assert first.records("t") == []
    with pytest.raises(RuntimeError, match="is closed"):
        first.produce("t", b"late")
    with pytest.raises(RuntimeError, match="is closed"):
        first.restart()


@pytest.mark.anyio
async def test_waiting_in_vain_says_so() -> None:
    async with MockBroker({"t": 1}, clock=VirtualClock(), listen=False) as broker:
        with pytest.raises(TimeoutError, match=r"within 0.01 s; a virtual clock moves only"):
            await broker.wait_for(lambda: False, 0.01)
    async with MockBroker({"t": 1}, listen=False) as broker:
        with pytest.raises(TimeoutError, match=r"within 0.01 s$"):
            await broker.wait_for(lambda: False, 0.01)


@pytest.mark.anyio
async def test_in_process_connections_end_with_the_broker_or_after_it() -> None:
    async with MockBroker({"t": 1}) as broker:
        connection = broker.connect()
        await connection.request(MetadataRequest(topics=None))
    assert connection.is_closed
    connection.close()


@pytest.mark.anyio
async def test_who_waits_in_process_when_the_broker_ends_waits_no_more() -> None:
    request = FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        topics=(FetchRequestFetchTopic(topic="t", partitions=(FetchRequestFetchPartition(),)),),
    )

    async def fetch(connection: InProcessConnection) -> None:
        with anyio.fail_after(10), pytest.raises(TransportError, match="the broker has ended"):
            await connection.request(request, 12)

    async with anyio.create_task_group() as tasks, MockBroker({"t": 1}) as broker:
        tasks.start_soon(fetch, broker.connect())
        await broker.wait_for(lambda: bool(broker.requests("Fetch")))
