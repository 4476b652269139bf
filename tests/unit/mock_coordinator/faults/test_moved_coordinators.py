"""Coordinators that a fault moves: with one broker or several, before anybody asked for one."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kip848_client.wire.messages.classic_group import JoinGroupRequest, JoinGroupRequestProtocol
from kip848_client.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mock_coordinator import InProcessConnection, MockBroker, MockCluster
from mock_coordinator.clock import VirtualClock
from mock_coordinator.core.faults import Fault, Match, MoveCoordinator
from mock_coordinator.core.topic_names import OFFSETS_TOPIC

LOADING, NOT_COORDINATOR = 14, 16

JOIN = ConsumerGroupHeartbeatRequest(
    group_id="g",
    member_id="A",
    rebalance_timeout_ms=1000,
    subscribed_topic_names=("t",),
    topic_partitions=(),
)
HEARTBEATS = Match(api="ConsumerGroupHeartbeat")


def classic() -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        member_id="",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="p", metadata=b""),),
    )


@pytest.mark.parametrize("node_id", [None, 1])
def test_the_only_broker_loads_its_groups_again(node_id: int | None) -> None:
    made = MockBroker({"t": 2}, listen=False, clock=VirtualClock())
    made.faults.add(Fault(MoveCoordinator(node_id), HEARTBEATS))
    made.core.groups.load_ms = 500
    connection = made.connect()
    assert connection.ask(JOIN).error_code == LOADING
    made.advance(500)
    assert connection.ask(JOIN).error_code == 0
    topic = made.core.broker.catalog.topics[OFFSETS_TOPIC]
    partition = made.core.groups.partition_of("g")
    assert made.core.broker.partition_state(topic, partition).leader_epoch == 1


@pytest.mark.asyncio
async def test_who_waits_at_the_only_broker_is_sent_away() -> None:
    made = MockBroker(listen=False, clock=VirtualClock())
    made.faults.add(Fault(MoveCoordinator(), Match(api="JoinGroup"), nth=2))
    first, second = made.connect(), made.connect()
    answers: list[Any] = []

    async def join(connection: InProcessConnection) -> None:
        answers.append(await connection.request(classic(), 3))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(join, first)
        await anyio.wait_all_tasks_blocked()
        assert answers == []
        tasks.start_soon(join, second)
        await anyio.wait_all_tasks_blocked()
        assert [answer.error_code for answer in answers] == [NOT_COORDINATOR]
        made.advance(10_000)
    assert [answer.error_code for answer in answers] == [NOT_COORDINATOR, 0]
    assert len(answers[1].members) == 1


def test_the_next_broker_that_runs_takes_over() -> None:
    made = MockCluster({"t": 2}, brokers=3, listen=False, clock=VirtualClock())
    made.faults.add(Fault(MoveCoordinator(), HEARTBEATS, times=4))
    connection = made.connect()
    seen: list[int | None] = []
    for _ in range(4):
        assert connection.ask(JOIN).error_code == 0
        seen.append(made.coordinator_of("g"))
    assert None not in seen
    assert len(set(seen)) == 3
    assert seen[0] == seen[3]
