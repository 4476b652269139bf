"""Commits and heartbeats whose records make a batch larger than the topic's maximum: refused whole,
by -1."""

from __future__ import annotations

import pytest

from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.unit.mock_coordinator.broker_harness import BrokerHarness


def commit(harness: BrokerHarness, rows: int, metadata: str) -> list[int]:
    row = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=metadata
    )
    topic = OffsetCommitRequestTopic(name="t", partitions=(row,) * rows)
    request = OffsetCommitRequest(group_id="g", topics=(topic,))
    return [row.error_code for row in harness.ask(request, 9).topics[0].partitions]


@pytest.mark.parametrize(
    ("rows", "metadata", "code"),
    [(10_000, "", 0), (20_000, "", -1), (300, "m" * 3000, 0), (400, "m" * 3000, -1)],
)
def test_as_kafka_4_4_0_answers(rows: int, metadata: str, code: int) -> None:
    harness = BrokerHarness({"t": 1})
    assert set(commit(harness, rows, metadata)) == {code}
    group = harness.broker.snapshot("g")
    stored = group is not None and bool(group.offsets)
    assert stored is (code == 0)
    assert commit(harness, 1, "") == [0]


def test_the_limit_is_a_setting() -> None:
    harness = BrokerHarness({"t": 1}, message_max_bytes="1000")
    assert commit(harness, 1, "m" * 1000) == [-1]
    assert commit(harness, 1, "") == [0]


def join(harness: BrokerHarness, names: int) -> tuple[int, str | None, int]:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=tuple(f"{number:05}{'x' * 200}" for number in range(names)),
        topic_partitions=(),
    )
    answer = harness.ask(request, 1)
    return answer.error_code, answer.error_message, answer.member_epoch


@pytest.mark.parametrize("profile", ["4.0", "4.4"])
def test_a_member_that_is_more_than_a_batch_is_not_taken(profile: str) -> None:
    harness = BrokerHarness({"t": 1}, profile=profile)
    assert join(harness, 6000) == (-1, None, 0)
    assert harness.broker.snapshot("g") is None
    epoch = 1 if profile == "4.0" else 2
    assert join(harness, 4000) == (0, None, epoch)
    assert join(harness, 6000) == (-1, None, 0)
    assert join(harness, 4000) == (0, None, epoch)
