"""ListOffsets and OffsetForLeaderEpoch."""

from __future__ import annotations

import gzip
import struct
from typing import Any

import pytest

from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochRequestOffsetForLeaderPartition,
    OffsetForLeaderEpochRequestOffsetForLeaderTopic,
)
from mock_coordinator import NewRecord
from mock_coordinator.batches import encode_batch
from tests.unit.mock_coordinator.broker_harness import BrokerHarness

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)
NOTHING = (0, -1, -1)


def new_broker(profile: str = "4.4") -> BrokerHarness:
    """Offsets 0 to 3 with timestamps 1000, 1000, 3000, 2000; topic ``e`` is empty."""
    harness = BrokerHarness({"t": 2, "e": 1}, profile=profile)
    for times in ((1000, 1000), (3000,), (2000,)):
        records = [NewRecord(b"x", timestamp_ms=time) for time in times]
        assert harness.produce_bytes("t", encode_batch(records, 0)).error_code == 0
    return harness


def asked(
    harness: BrokerHarness, timestamp: int, version: int = 10, **more: Any
) -> tuple[int, int, int]:
    topic = more.pop("topic", "t")
    partition = ListOffsetsRequestListOffsetsPartition(
        partition_index=more.pop("partition", 0),
        timestamp=timestamp,
        current_leader_epoch=more.pop("epoch", -1),
    )
    topics = (ListOffsetsRequestListOffsetsTopic(name=topic, partitions=(partition,)),)
    request = ListOffsetsRequest(replica_id=-1, topics=topics, **more)
    answer = harness.ask(request, version).topics[0].partitions[0]
    expected_epoch = 0 if version >= 4 and answer.offset >= 0 else -1
    assert answer.leader_epoch == expected_epoch
    return answer.error_code, answer.timestamp, answer.offset


@pytest.mark.parametrize("version", range(1, 12))
def test_both_ends_in_every_version(version: int) -> None:
    harness = new_broker()
    assert asked(harness, LATEST, version) == (0, -1, 4)
    assert asked(harness, EARLIEST, version) == (0, -1, 0)
    assert asked(harness, LATEST, version, topic="e") == (0, -1, 0)


@pytest.mark.parametrize(
    ("timestamp", "answer"),
    [
        (0, (0, 1000, 0)),
        (1000, (0, 1000, 0)),
        (1001, (0, 3000, 2)),
        (3000, (0, 3000, 2)),
        (3001, NOTHING),
        (MAX_TIMESTAMP, (0, 3000, 2)),
        (EARLIEST_LOCAL, (0, -1, 0)),
        (LATEST_TIERED, NOTHING),
        (PENDING_UPLOAD, NOTHING),
        (-7, (35, -1, -1)),
    ],
)
def test_by_timestamp_and_special_ones(timestamp: int, answer: tuple[int, int, int]) -> None:
    assert asked(new_broker(), timestamp, 11) == answer


@pytest.mark.parametrize("timestamp", [0, MAX_TIMESTAMP, LATEST_TIERED])
def test_an_empty_partition_has_nothing(timestamp: int) -> None:
    assert asked(new_broker(), timestamp, 11, topic="e") == NOTHING


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [(MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (PENDING_UPLOAD, 11)],
)
def test_special_timestamps_have_their_first_version(timestamp: int, since: int) -> None:
    harness = new_broker()
    for version in range(1, 12):
        refused = asked(harness, timestamp, version)[0] == 35
        assert refused is (version < since)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"topic": "nope"}, 3),
        ({"topic": "a b"}, 3),
        ({"partition": 9}, 3),
        ({"partition": -1}, 3),
        ({"epoch": 0}, 0),
        ({"epoch": 1}, 75),
        ({"isolation_level": 1}, 0),
        ({"isolation_level": 9}, -1),
    ],
)
def test_refusals(more: dict[str, Any], code: int) -> None:
    assert asked(new_broker(), LATEST, **more)[0] == code


def test_a_partition_asked_twice_is_refused() -> None:
    wanted = tuple(
        ListOffsetsRequestListOffsetsPartition(partition_index=p, timestamp=LATEST)
        for p in (0, 0, 1)
    )
    topics = (ListOffsetsRequestListOffsetsTopic(name="t", partitions=wanted),)
    response = new_broker().ask(ListOffsetsRequest(replica_id=-1, topics=topics), 10)
    found = [(p.partition_index, p.error_code) for p in response.topics[0].partitions]
    assert found == [(1, 0), (0, 42)]


def test_log_append_time_counts_the_batch() -> None:
    harness = BrokerHarness()
    harness.broker.create_topic("t", config={"message.timestamp.type": "LogAppendTime"})
    harness.produce_bytes("t", harness.batch(b"a", b"b"))
    assert asked(harness, MAX_TIMESTAMP) == (0, harness.clock(), 0)


def test_inside_a_compressed_batch() -> None:
    harness = BrokerHarness({"t": 1})
    plain = encode_batch([NewRecord(b"a", timestamp_ms=1), NewRecord(b"b", timestamp_ms=9)], 0)
    body = struct.pack(">h", 1) + plain[23:61] + gzip.compress(plain[61:])
    import crc32c

    head = plain[:8] + struct.pack(">iibI", len(body) + 9, -1, 2, crc32c.crc32c(body))
    assert harness.produce_bytes("t", head + body).error_code == 0
    assert asked(harness, 5) == (0, 9, 1)


@pytest.mark.parametrize(
    ("epoch", "current", "answer"),
    [
        (0, -1, (0, 0, 4)),
        (0, 0, (0, 0, 4)),
        (5, -1, (0, -1, -1)),
        (-1, -1, (0, -1, -1)),
        (0, 1, (75, -1, -1)),
    ],
)
@pytest.mark.parametrize("version", [2, 3, 4])
def test_offset_for_leader_epoch(
    version: int, epoch: int, current: int, answer: tuple[int, int, int]
) -> None:
    assert epoch_end(new_broker(), epoch, version, current=current) == answer


def test_a_client_behind_the_leaders_epoch_is_fenced() -> None:
    harness = new_broker()
    log = harness.broker.core.broker.logs.of(harness.broker.core.broker.catalog.topics["t"], 0)
    assert log is not None
    log.leader_epoch = 2
    assert asked_epoch(harness, 1) == 74
    assert asked_epoch(harness, 2) == 0


def asked_epoch(harness: BrokerHarness, current: int) -> int:
    return epoch_end(harness, 2, 4, current=current)[0]


def test_offset_for_leader_epoch_of_nothing() -> None:
    harness = new_broker()
    assert epoch_end(harness, 0, 4, topic="nope") == (3, -1, -1)
    assert epoch_end(harness, 0, 4, partition=9) == (3, -1, -1)
    assert epoch_end(harness, 0, 4, topic="e") == (0, 0, 0)


def epoch_end(
    harness: BrokerHarness,
    epoch: int,
    version: int,
    *,
    topic: str = "t",
    partition: int = 0,
    current: int = -1,
) -> tuple[int, int, int]:
    wanted = OffsetForLeaderEpochRequestOffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current, leader_epoch=epoch
    )
    topics = (OffsetForLeaderEpochRequestOffsetForLeaderTopic(topic=topic, partitions=(wanted,)),)
    answer = (
        harness.ask(OffsetForLeaderEpochRequest(topics=topics), version).topics[0].partitions[0]
    )
    return answer.error_code, answer.leader_epoch, answer.end_offset
