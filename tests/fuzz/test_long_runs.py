"""What a broker remembers of those who came, asked once and never came back."""

from __future__ import annotations

from kip848_client.core.wire.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.error_codes import ErrorCode
from tests.unit.mock_coordinator.broker_harness import BrokerHarness


def test_member_ids_that_are_handed_out_and_never_used_are_forgotten() -> None:
    harness = BrokerHarness({"t": 1})
    for number in range(300):
        request = JoinGroupRequest(
            group_id=f"g{number % 3}",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="x", metadata=b""),),
        )
        assert harness.ask(request, 9).error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert harness.broker.core.deadline_ms is not None, "their session timeouts"
    harness.clock.advance(1_020_000)
    assert [harness.broker.snapshot(f"g{number}") for number in range(3)] == [None] * 3


def test_groups_whose_members_died_are_forgotten() -> None:
    harness = BrokerHarness({"t": 2})
    for number in range(50):
        request = ConsumerGroupHeartbeatRequest(
            group_id=f"c{number}",
            member_id="m",
            rebalance_timeout_ms=1000,
            subscribed_topic_names=("t",),
            topic_partitions=(),
        )
        assert harness.ask(request, 1).error_code == 0
        harness.clock.advance(3000)
    assert len(harness.broker.core.groups.group_ids) == 50
    harness.clock.advance(3 * 3_600_000)
    assert harness.broker.core.groups.group_ids == ()
