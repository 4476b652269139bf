"""The core's step: what was due comes first, consequences follow, a crash keeps the disk."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.api_versions import ApiVersionsRequest
from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.metadata import MetadataRequest
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.inputs import (
    LOCAL_CLIENT,
    ConnectionLost,
    RequestReceived,
    TimerFired,
)
from mock_coordinator.core.outputs import CloseConnection, Output, Reply
from mock_coordinator.core.settings.broker_config import BrokerConfig
from tests.unit.mock_coordinator.broker_harness import START_MS, BrokerHarness, counting

FAST = {
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.assignment.interval.ms": "0",
}


def core() -> ClusterCore:
    made = ClusterCore.create(BrokerConfig(values=FAST), counting(), START_MS)
    broker = made.broker
    broker.catalog.create("t", 2, broker.new_topic_id())
    made.step(START_MS, TimerFired())
    return made


def join(member: str, group: str = "g") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=("t",),
        topic_partitions=(),
    )


def received(request: Message, version: int = 1) -> RequestReceived:
    return RequestReceived(7, 1, version, LOCAL_CLIENT, request)


def only_reply(outputs: Sequence[Output]) -> Reply:
    (output,) = outputs
    assert isinstance(output, Reply)
    return output


def test_a_reply_goes_back_where_its_request_came_from() -> None:
    event = RequestReceived(7, 99, 12, LOCAL_CLIENT, MetadataRequest(topics=None))
    reply = only_reply(core().step(START_MS, event))
    assert (reply.connection, reply.correlation, reply.version, reply.api_key) == (7, 99, 12, 3)


def test_a_version_that_is_not_served_closes_and_for_api_versions_falls_back() -> None:
    made = core()
    (output,) = made.step(START_MS, received(MetadataRequest(), 99))
    assert output == CloseConnection(7, "API key 3 version 99 is not served")
    reply = only_reply(made.step(START_MS, received(ApiVersionsRequest(), 99)))
    assert reply.version == 0


def test_a_session_that_is_over_is_over_before_the_next_request() -> None:
    made = core()
    made.step(START_MS, received(join("a")))
    assert made.deadline_ms == START_MS + 1000
    group = made.groups.snapshot("g")
    assert group is not None
    assert len(group.members) == 1
    describe = received(ConsumerGroupDescribeRequest(group_ids=("g",)))
    made.step(START_MS + 1000, describe)
    group = made.groups.snapshot("g")
    assert group is not None
    assert not group.members


def test_an_early_timer_is_harmless() -> None:
    made = core()
    made.step(START_MS, received(join("a")))
    before = made.groups.snapshot("g")
    assert made.step(START_MS + 999, TimerFired()) == ()
    assert made.groups.snapshot("g") == before


def test_a_topic_that_grows_is_told_to_the_group() -> None:
    harness = BrokerHarness(
        {"t": 1}, **{name.replace(".", "_"): value for name, value in FAST.items()}
    )
    first = harness.ask(join("a"), 1)
    assert [list(p.partitions) for p in first.assignment.topic_partitions] == [[0]]
    harness.broker.add_partitions("t", 3)
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="a", member_epoch=first.member_epoch
    )
    again = harness.ask(beat, 1)
    assert [list(p.partitions) for p in again.assignment.topic_partitions] == [[0, 1, 2]]


def commit(offset: int, topic: str = "t") -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    return OffsetCommitRequest(
        group_id="simple",
        topics=(OffsetCommitRequestTopic(name=topic, partitions=(partition,)),),
    )


def test_a_restart_keeps_topics_records_groups_and_producer_ids() -> None:
    made = core()
    made.step(START_MS, received(join("a")))
    made.step(START_MS, received(commit(5), 8))
    made.broker.disk.next_producer_id = 3
    before = made.groups.snapshot("g")
    again = made.restarted(START_MS + 10)
    after = again.groups.snapshot("g")
    assert before is not None
    assert after is not None
    assert after.without_timers() == before.without_timers()
    assert again.broker.catalog.names == ("t",)
    assert again.broker.disk.next_producer_id == 3
    assert again.groups.group_ids == made.groups.group_ids
    assert again.deadline_ms == START_MS + 10 + 1000, "sessions start anew"


def test_a_lost_connection_that_nobody_knows_is_harmless() -> None:
    assert core().step(START_MS, ConnectionLost(12345)) == ()


def test_nothing_is_waited_for_until_a_group_was_asked_for_and_then_the_cleanup() -> None:
    made = core()
    assert made.deadline_ms is None
    made.groups.handle(START_MS + 5, received(ConsumerGroupDescribeRequest(group_ids=("g",)), 1))
    assert made.deadline_ms == START_MS + 600_000, "as if it had been looked after all the time"


def test_ids_that_never_change_are_noticed() -> None:
    made = ClusterCore.create(BrokerConfig(), lambda: b"1" * 16, START_MS)
    made.broker.catalog.create("t", 1, made.broker.new_topic_id())
    with pytest.raises(RuntimeError, match="taken or reserved"):
        made.broker.new_topic_id()


def test_the_address_can_be_corrected() -> None:
    made = core()
    made.advertise("example", 1)
    reply = only_reply(made.step(START_MS, received(MetadataRequest(topics=None), 12)))
    response: object = reply.response
    assert "host='example', port=1" in repr(response)
