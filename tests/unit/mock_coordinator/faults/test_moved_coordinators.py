"""Coordinators that a fault moves: with one broker or several, before anybody asked for one."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kip848_client.core.wire import api_named
from kip848_client.core.wire.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.transactions import InitProducerIdRequest
from mock_coordinator import InProcessConnection, MockBroker, MockCluster
from mock_coordinator.core.faults import Fault, Match, MoveCoordinator
from mock_coordinator.core.faults.as_json import fault_from_json
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC
from mock_coordinator.driver.clock import VirtualClock

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


def init(connection: InProcessConnection, name: str) -> tuple[int, int, int]:
    request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    answer = connection.ask(request, 5)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def test_the_coordinator_of_a_transactional_id_moves() -> None:
    made = MockCluster(brokers=3, listen=False, clock=VirtualClock())
    before = made.transaction_coordinator_of("x")
    assert before is not None
    here = made.connect(node_id=before)
    assert init(here, "x")[0] == 0
    made.faults.add(Fault(MoveCoordinator(), Match(transactional_id="x"), nth=2))
    made.load_time_ms = 300
    assert init(here, "x") == (0, 0, 1), "the first one that matches is served"
    assert init(here, "x")[0] == NOT_COORDINATOR
    after = made.transaction_coordinator_of("x")
    assert after not in (None, before)
    there = made.connect(node_id=after)
    assert init(there, "x")[0] == LOADING
    made.advance(300)
    assert init(there, "x") == (0, 0, 2)


def test_the_only_broker_loads_its_transactional_ids_again() -> None:
    made = MockBroker(listen=False, clock=VirtualClock())
    made.faults.add(Fault(MoveCoordinator(), Match(api="InitProducerId"), nth=2))
    made.load_time_ms = 300
    connection = made.connect()
    connection.ask(api_named("FindCoordinator").request(key_type=1, coordinator_keys=("x",)))
    assert init(connection, "x") == (0, 0, 0)
    assert init(connection, "x")[0] == LOADING
    made.advance(300)
    assert init(connection, "x") == (0, 0, 1)


def test_in_json() -> None:
    row = {"match": {"transactional_id": "x"}, "move_coordinator": "next"}
    assert fault_from_json(row) == Fault(MoveCoordinator(), Match(transactional_id="x"))
