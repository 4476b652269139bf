"""Deleting records, pages of topics."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.error_codes import ErrorCode
from tests.support.plain_message import message
from tests.unit.mock_coordinator.broker_harness import BrokerHarness


def deleted(
    harness: BrokerHarness, offset: int, *, topic: str = "t", partition: int = 0
) -> tuple[int, int]:
    partitions = [{"partition_index": partition, "offset": offset}]
    asked = message("DeleteRecords", topics=[{"name": topic, "partitions": partitions}])
    result = harness.ask(asked).topics[0].partitions[0]
    return result.error_code, result.low_watermark


def offset_at(harness: BrokerHarness, timestamp: int) -> int:
    partitions = [{"partition_index": 0, "timestamp": timestamp}]
    topics = [{"name": "t", "partitions": partitions}]
    answer = harness.ask(message("ListOffsets", replica_id=-1, topics=topics), 7)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def test_deleting_moves_the_start_of_the_log_forward_and_never_back() -> None:
    harness = BrokerHarness({"t": 1})
    for _ in range(2):
        harness.produce_bytes("t", harness.batch(b"a", b"b", b"c"))
    assert deleted(harness, 2) == (0, 2)
    assert (offset_at(harness, -2), offset_at(harness, -1), offset_at(harness, 0)) == (2, 6, 2)
    log = harness.broker.core.broker.logs.of(harness.broker.core.broker.catalog.topics["t"], 0)
    assert log is not None
    assert len(log.batches) == 2
    assert deleted(harness, 4) == (0, 4)
    assert deleted(harness, 1) == (0, 4)
    assert len(log.batches) == 1, "a batch without records is gone"
    assert deleted(harness, -1) == (0, 6)
    assert not log.batches
    harness.produce_bytes("t", harness.batch(b"d"))
    assert (offset_at(harness, -2), offset_at(harness, -1)) == (6, 7)
    assert log.read(6, 1000)


def test_a_fetch_below_the_start_is_out_of_range() -> None:
    harness = BrokerHarness({"t": 1})
    harness.produce_bytes("t", harness.batch(b"a", b"b"))
    assert deleted(harness, 1) == (0, 1)
    assert harness.fetch(0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert harness.fetch(1).error_code == 0


@pytest.mark.parametrize(
    ("topic", "partition", "offset", "code"),
    [
        ("t", 0, 3, 1),
        ("t", 0, -2, 1),
        ("t", 1, 0, 3),
        ("no", 0, 0, 3),
        ("__consumer_offsets", 0, 0, 17),
        ("compacted", 0, 0, 44),
    ],
)
def test_what_is_not_deleted(topic: str, partition: int, offset: int, code: int) -> None:
    harness = BrokerHarness({"t": 1, "compacted": 1})
    harness.ask(message("FindCoordinator", coordinator_keys=["g"]), 4)
    harness.broker.core.broker.catalog.topics["compacted"].config["cleanup.policy"] = "compact"
    harness.produce_bytes("t", harness.batch(b"a", b"b"))
    assert deleted(harness, offset, topic=topic, partition=partition) == (code, -1)


def page(
    harness: BrokerHarness, limit: int, cursor: Any = None
) -> tuple[list[tuple[str, int]], Any]:
    answer = harness.ask(
        message("DescribeTopicPartitions", response_partition_limit=limit, cursor=cursor)
    )
    found = [(t.name, p.partition_index) for t in answer.topics for p in t.partitions]
    return found, answer.next_cursor


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 100])
def test_the_pages_together_are_all_partitions(limit: int) -> None:
    harness = BrokerHarness({"b": 3, "a": 2, "c": 1})
    found: list[tuple[str, int]] = []
    cursor: Any = None
    while True:
        part, following = page(harness, limit, cursor)
        assert len(part) <= limit
        found += part
        if following is None:
            break
        cursor = {
            "topic_name": following.topic_name,
            "partition_index": following.partition_index,
        }
    assert found == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2), ("c", 0)]


def test_the_broker_limits_pages_too() -> None:
    harness = BrokerHarness({"a": 3}, max_request_partition_size_limit="2")
    assert page(harness, 100)[0] == [("a", 0), ("a", 1)]
