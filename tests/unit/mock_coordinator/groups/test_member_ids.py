"""How a coordinator makes the ids of members that bring none."""

from __future__ import annotations

import uuid
from typing import Any

from kip848_client.core.types import format_topic_id
from kip848_client.core.wire.messages.classic_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from mock_coordinator.core.outputs import Reply
from mock_coordinator.core.profiles import DEFAULT_PROFILE, profile_named
from mock_coordinator.core.settings.broker_config import BrokerConfig

DASH = bytes.fromhex("fa4c0de2b54e4a2c9a0be1d2c3f4a5b6")
"""In base64 it begins with a dash."""
OTHER = bytes.fromhex("1a4c0de2b54e4a2c9a0be1d2c3f4a5b6")


def answer_to(request: Any, version: int, *drawn: bytes) -> Any:
    """What a broker answers that draws these ids next."""
    said: list[bytes] = []
    config = BrokerConfig(profile_named(DEFAULT_PROFILE), {})
    core = ClusterCore.create(config, lambda: said.pop(0) if said else OTHER, 0)
    said += drawn
    (reply,) = core.step(0, RequestReceived(1, 1, version, ClientInfo("client"), request))
    assert isinstance(reply, Reply)
    return reply.response


def test_an_id_of_the_classic_protocol_is_the_uuid_that_was_drawn() -> None:
    """Java's ``UUID.randomUUID``: all are as good."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
    request = JoinGroupRequest(
        group_id="g", protocol_type="consumer", protocols=(protocol,), session_timeout_ms=10_000
    )
    answer = answer_to(request, 9, DASH, OTHER)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id == f"client-{uuid.UUID(bytes=DASH)}"


def test_an_id_of_the_consumer_protocol_begins_with_no_dash() -> None:
    """Kafka's ``Uuid.randomUuid``, which draws again."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=("foo",),
        topic_partitions=(),
    )
    answer = answer_to(request, 0, DASH, DASH, OTHER)
    assert answer.error_code == ErrorCode.NONE, answer
    assert answer.member_id == format_topic_id(OTHER)
    assert format_topic_id(DASH).startswith("-")
