"""MockBroker and its in-process connections, as a user's test would use them."""

from __future__ import annotations

import time
from typing import Any

import anyio
import pytest

from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.metadata import MetadataRequest
from kip848_client.errors import ConfigError, TransportError, UnsupportedVersion
from mock_coordinator import MockBroker, NewRecord, VirtualClock
from tests.unit.mock_coordinator.broker_harness import BrokerHarness, fetch_partition


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.anyio
async def test_it_is_ready_within_ten_milliseconds() -> None:
    """Once: on a busy machine others may have the processor for most of the tries."""
    fastest = 1.0
    for _ in range(100):
        start = time.perf_counter()
        async with MockBroker({"t": 3}) as broker:
            fastest = min(fastest, time.perf_counter() - start)
            assert broker.port > 0
            assert broker.bootstrap == f"127.0.0.1:{broker.port}"
        if fastest < 0.01:
            break
    assert fastest < 0.01


@pytest.mark.anyio
async def test_in_process_only() -> None:
    async with MockBroker({"t": 1}, listen=False) as broker:
        assert broker.address == ("", 0)
        response = await broker.connect().request(MetadataRequest(topics=None))
        assert [topic.name for topic in response.topics] == ["t"]


@pytest.mark.anyio
async def test_real_timers_fire() -> None:
    config = {
        "group.consumer.min.session.timeout.ms": "50",
        "group.consumer.session.timeout.ms": "50",
        "group.consumer.min.heartbeat.interval.ms": "10",
        "group.consumer.heartbeat.interval.ms": "10",
    }
    async with MockBroker({"t": 1}, listen=False, config=config) as broker:
        await broker.connect().request(joining())
        group = broker.snapshot("g")
        assert group is not None
        assert group.members

        def is_empty() -> bool:
            now = broker.snapshot("g")
            return now is not None and not now.members

        await broker.wait_for(is_empty)


def joining() -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        rebalance_timeout_ms=1000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )


def test_virtual_time_ends_a_session() -> None:
    harness = BrokerHarness({"t": 1})
    harness.ask(joining())
    harness.broker.advance(44_999)
    group = harness.broker.snapshot("g")
    assert group is not None
    assert group.members
    harness.broker.advance(1)
    group = harness.broker.snapshot("g")
    assert group is not None
    assert not group.members
    assert harness.broker.snapshot("other") is None


def test_real_time_cannot_be_moved() -> None:
    with pytest.raises(ConfigError, match="VirtualClock"):
        MockBroker(listen=False).advance(1)


def test_records_and_their_fields() -> None:
    harness = BrokerHarness({"t": 2})
    headers = [("h", b"1"), ("n", None)]
    assert harness.broker.produce("t", NewRecord(b"v", b"k", 1234, headers), partition=1) == 0
    assert harness.broker.produce("t", None, b"w", key=b"k", partition=1) == 1
    first, second, third = harness.broker.records("t")
    assert (first.topic, first.partition, first.offset, first.timestamp_ms) == ("t", 1, 0, 1234)
    assert (first.key, first.value, list(first.headers)) == (b"k", b"v", headers)
    assert (second.value, second.timestamp_ms) == (None, harness.clock())
    assert third.offset == 2
    assert harness.broker.records("t", 0) == []
    with pytest.raises(KeyError):
        harness.broker.records("t", 9)
    with pytest.raises(KeyError):
        harness.broker.records("no")


def test_only_the_clients_requests_are_shown() -> None:
    harness = BrokerHarness({"t": 1})
    harness.broker.produce("t", b"x")
    harness.ask(MetadataRequest(topics=None))
    (entry,) = harness.broker.requests()
    assert (entry.api, entry.client_id, entry.version) == ("Metadata", "in-process", 13)
    assert harness.broker.requests("Produce") == []


def test_the_request_log_leaves_records_out_and_can_be_switched_off() -> None:
    harness = BrokerHarness({"t": 1})
    harness.produce_bytes("t", harness.batch(b"x" * 1000))
    (entry,) = harness.broker.requests("Produce")
    assert "xxxx" not in repr(entry.request)
    assert "name='t'" in repr(entry.request)
    assert len(harness.broker.records("t")) == 1
    quiet = MockBroker({"t": 1}, listen=False, clock=VirtualClock(), log_size=0)
    quiet.connect().ask(MetadataRequest(topics=None))
    assert quiet.requests() == []


def test_through_bytes_or_not() -> None:
    harness = BrokerHarness({"t": 1})
    direct = harness.broker.connect(through_bytes=False)
    request = MetadataRequest(topics=None, include_cluster_authorized_operations=True)
    assert direct.ask(request, 12).cluster_authorized_operations == 8096
    with pytest.raises(UnsupportedVersion, match="include_cluster_authorized_operations"):
        harness.ask(request, 12)


def test_a_closed_connection_says_why() -> None:
    harness = BrokerHarness()
    harness.connection.close()
    harness.connection.close()
    assert harness.connection.is_closed
    with pytest.raises(TransportError, match="closed by the client"):
        harness.ask(MetadataRequest(topics=None))


def test_asking_does_not_wait() -> None:
    harness = BrokerHarness({"t": 1})
    request = harness.fetch_request(fetch_partition(), max_wait_ms=100, min_bytes=1)
    with pytest.raises(TransportError, match="has no response yet"):
        harness.ask(request, 12)
    harness.broker.advance(100)


@pytest.mark.anyio
async def test_a_request_in_flight_fails_when_the_broker_restarts() -> None:
    harness = BrokerHarness({"t": 1})

    async def fetch() -> None:
        request = harness.fetch_request(fetch_partition(), max_wait_ms=60_000, min_bytes=1)
        with pytest.raises(TransportError, match="restarts"):
            await harness.connection.request(request, 12)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fetch)
        await harness.broker.wait_for(lambda: harness.broker.core.parked_requests == 1)
        harness.broker.restart()


def test_a_restart_keeps_the_group_and_the_records() -> None:
    harness = BrokerHarness({"t": 1})
    harness.broker.produce("t", b"x")
    harness.ask(joining())
    before = harness.broker.snapshot("g")
    harness.broker.restart()
    after = harness.broker.snapshot("g")
    assert before is not None
    assert after is not None
    assert after.without_timers() == before.without_timers()
    assert [r.value for r in harness.broker.records("t")] == [b"x"]
    assert harness.broker.produce("t", b"y") == 1


def test_two_brokers_may_share_a_clock() -> None:
    clock = VirtualClock()
    brokers = [MockBroker({"t": 1}, listen=False, clock=clock) for _ in range(2)]
    for broker in brokers:
        broker.connect().ask(joining())
    clock.advance(45_000)
    for broker in brokers:
        group = broker.snapshot("g")
        assert group is not None
        assert not group.members


def test_wrong_settings_are_errors_at_once() -> None:
    with pytest.raises(ConfigError, match=r"did you mean num\.partitions"):
        MockBroker(config={"num.partition": "1"})
    with pytest.raises(ConfigError, match="known: uniform, range"):
        MockBroker(config={"group.consumer.assignors": "mine"})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"topics": ["orders"]}, "expected a mapping of names to partition counts"),
        ({"topics": {"orders": "3"}}, "'orders': '3' is not a partition count"),
        ({"config": {"num.partitions": 3}}, "num.partitions = 3: expected a string"),
    ],
)
def test_values_of_the_wrong_kind_are_named(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        MockBroker(**options)
