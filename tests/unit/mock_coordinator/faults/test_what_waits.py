"""What a fault holds back, when something else happens meanwhile."""

from __future__ import annotations

import gc
import logging
from typing import Any

import anyio
import pytest

from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest, MetadataResponse
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import TransportError
from mock_coordinator import InProcessConnection, MockBroker
from mock_coordinator.core.faults import (
    Action,
    Delay,
    Disconnect,
    Fault,
    Match,
    Moment,
    MoveCoordinator,
    Refuse,
    Throttle,
)
from mock_coordinator.core.groups.service.shards import GroupShards
from mock_coordinator.driver.clock import VirtualClock

JOIN = ConsumerGroupHeartbeatRequest(
    group_id="g",
    member_id="A",
    rebalance_timeout_ms=1000,
    subscribed_topic_names=("t",),
    topic_partitions=(),
)
HEARTBEATS = Match(api="ConsumerGroupHeartbeat")


def broker(*faults: Fault) -> MockBroker:
    made = MockBroker({"t": 2}, listen=False, clock=VirtualClock())
    made.faults.add(*faults)
    return made


async def answers(made: MockBroker, *asked: tuple[InProcessConnection, Any]) -> list[Any]:
    """What comes within a second."""
    got: list[Any] = [None] * len(asked)

    async def ask(number: int, connection: InProcessConnection, request: Any) -> None:
        try:
            got[number] = await connection.request(request)
        except TransportError as err:
            got[number] = str(err)

    async with anyio.create_task_group() as tasks:
        for number, (connection, request) in enumerate(asked):
            tasks.start_soon(ask, number, connection, request)
        await anyio.wait_all_tasks_blocked()
        made.advance(1000)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    return got


@pytest.mark.asyncio
async def test_a_fault_hits_a_request_that_a_throttled_connection_sent() -> None:
    made = broker(
        Fault(Throttle(300), HEARTBEATS),
        Fault(Refuse(ErrorCode.NOT_COORDINATOR), HEARTBEATS, nth=2),
    )
    connection = made.connect()
    got = await answers(made, (connection, JOIN), (connection, JOIN), (connection, JOIN))
    assert [(each.throttle_time_ms, each.error_code) for each in got] == [(300, 0), (0, 16), (0, 0)]


def test_a_throttled_connection_that_is_lost_is_not_read_any_more() -> None:
    made = broker(Fault(Throttle(300), Match(api="Metadata")))
    connection = made.connect()
    connection.ask(MetadataRequest(topics=None))
    with pytest.raises(TransportError, match="has no response yet"):
        connection.ask(JOIN)
    connection.close()
    made.advance(1000)
    assert made.snapshot("g") is None


def test_a_request_that_is_held_back_does_not_reach_the_next_life_of_the_broker() -> None:
    made = broker(Fault(Delay(500, Moment.REQUEST), HEARTBEATS))
    with pytest.raises(TransportError, match="has no response yet"):
        made.connect().ask(JOIN)
    made.restart()
    made.advance(1000)
    assert made.snapshot("g") is None


@pytest.mark.asyncio
async def test_a_held_request_that_the_broker_fails_on_costs_its_connection_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    made = broker(Fault(Delay(500, Moment.REQUEST), times=2))

    def failing(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(GroupShards, "handle", failing)
    caplog.set_level(logging.CRITICAL, "mock_coordinator")
    bad, good = made.connect(), made.connect()
    got = await answers(made, (bad, JOIN), (good, MetadataRequest(topics=None)))
    assert "the broker failed on a request" in got[0]
    assert got[1].error_code == 0


def test_a_coordinator_that_cannot_be_moved_stays(caplog: pytest.LogCaptureFixture) -> None:
    made = broker(Fault(MoveCoordinator(7), HEARTBEATS))
    assert made.connect().ask(JOIN).error_code == 0
    assert "7" in caplog.text


def test_an_answer_that_nobody_waits_for_any_more_is_dropped() -> None:
    def responses() -> int:
        return sum(type(each) is MetadataResponse for each in gc.get_objects())

    made = broker(Fault(Delay(500), Match(api="Metadata")))
    connection = made.connect()
    before = responses()
    with pytest.raises(TransportError, match="has no response yet"):
        connection.ask(MetadataRequest(topics=()))
    made.advance(1000)
    assert responses() <= before


@pytest.mark.asyncio
async def test_who_waits_for_a_condition_looks_again_after_a_restart() -> None:
    made = MockBroker(listen=False, clock=VirtualClock())
    before = made.core
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(made.wait_for, lambda: made.core is not before, 5)
        await anyio.wait_all_tasks_blocked()
        made.restart()


@pytest.mark.parametrize(
    "action", [Refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER), Delay(100), Throttle(500)]
)
def test_what_a_test_does_through_the_broker_is_hit_by_no_fault(action: Action) -> None:
    made = broker(Fault(action, times=None))
    made.create_topic("u")
    assert [made.produce("u", b"x") for _ in range(2)] == [0, 1]
    assert made.faults.hits == ()
    made.restart()
    assert made.requests() == []


@pytest.mark.asyncio
async def test_what_it_does_may_cause_an_answer_that_is_hit() -> None:
    made = broker(Fault(Disconnect(), Match(api="Fetch")))
    partition = FetchRequestFetchPartition(partition=0, partition_max_bytes=1000)
    topic_id = bytes(made.core.broker.catalog.topics["t"].topic_id)
    topic = FetchRequestFetchTopic(topic_id=topic_id, partitions=(partition,))
    fetch = FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1000, topics=(topic,))
    failed: list[str] = []

    async def ask() -> None:
        try:
            await made.connect().request(fetch)
        except TransportError as err:
            failed.append(str(err))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        made.produce("t", b"x")
    assert "instead of the response" in failed[0]
