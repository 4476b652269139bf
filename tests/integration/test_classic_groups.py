"""Classic groups over sockets: requests that wait, and connections that do not live to see it."""

from __future__ import annotations

import anyio
import anyio.to_thread
import pytest

from kip848_client.core.wire import api_named
from kip848_client.core.wire.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from mock_coordinator import MockBroker
from mock_coordinator.core.groups.classic.snapshot import ClassicSnapshot
from tests.support.wire_connection import ConnectionLostError, WireConnection

pytestmark = pytest.mark.asyncio

_JOIN = api_named("JoinGroup")
_VERSION = 3  # members are let in at once


def request(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        member_id=member_id,
        protocol_type="connect",
        protocols=(JoinGroupRequestProtocol(name="p", metadata=b""),),
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
    )


async def off(function: object, *arguments: object) -> JoinGroupResponse:
    """Run a blocking call beside the broker's event loop."""
    assert callable(function)
    answer = await anyio.to_thread.run_sync(lambda: function(*arguments))
    assert isinstance(answer, JoinGroupResponse)
    return answer


def group(broker: MockBroker) -> ClassicSnapshot:
    snapshot = broker.snapshot("g")
    assert snapshot is not None
    assert snapshot.classic is not None
    return snapshot.classic


def joining(broker: MockBroker) -> int:
    """How many members wait in the join phase."""
    snapshot = broker.snapshot("g")
    if snapshot is None or snapshot.classic is None:
        return 0
    return sum(member.joining for member in snapshot.classic.members.values())


async def test_a_member_whose_connection_is_lost_still_counts() -> None:
    """A coordinator does not look at connections, so a rebalance does not wait for it again."""
    config = {"group.initial.rebalance.delay.ms": "0"}
    async with MockBroker(config=config) as broker:
        leader = WireConnection(broker.host, broker.port)
        first = await off(leader.request, request(), _VERSION)
        lost = WireConnection(broker.host, broker.port)
        lost.send(request(), _VERSION)
        await broker.wait_for(lambda: joining(broker) == 1)
        lost.close()
        again = await off(leader.request, request(first.member_id), _VERSION)
        assert (again.error_code, again.generation_id, len(again.members)) == (0, 2, 2)
        assert len(group(broker).members) == 2
        leader.close()


async def test_a_connection_whose_request_is_never_answered_is_idle() -> None:
    """The member joins again over another connection: the first request is forgotten."""
    config = {
        "group.initial.rebalance.delay.ms": "0",
        "connections.max.idle.ms": "400",
    }
    async with MockBroker(config=config) as broker:
        one = WireConnection(broker.host, broker.port)
        first = await off(one.request, request(), _VERSION)
        other = WireConnection(broker.host, broker.port)
        other.send(request(), _VERSION)
        await broker.wait_for(lambda: joining(broker) == 1)
        with pytest.raises(ConnectionLostError):
            await anyio.to_thread.run_sync(other.receive_frame)
        assert joining(broker) == 1
        retry = WireConnection(broker.host, broker.port)
        again = await off(retry.request, request(first.member_id), _VERSION)
        assert again.generation_id == 2
        for connection in (one, other, retry):
            connection.close()
