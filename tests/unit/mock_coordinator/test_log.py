"""The record log by itself: reading from anywhere, and batches that cannot be opened."""

from __future__ import annotations

import struct

import pytest

from kip848_client.core.compression import pack
from kip848_client.core.types import TopicId
from kip848_client.errors import WireError
from mock_coordinator import NewRecord
from mock_coordinator.batches import encode_batch, stored_records
from mock_coordinator.core.logs.log import Logs, PartitionLog, TimestampedOffset
from mock_coordinator.core.topics.catalog import Catalog

ZSTD = 4


def log_of(*sizes: int) -> PartitionLog:
    """Batches of so many records, all with timestamp 7."""
    log = PartitionLog()
    for size in sizes:
        log.append(encode_batch([NewRecord(b"x", timestamp_ms=7)] * size, 0), size, 7)
    return log


@pytest.mark.parametrize("offset", range(7))
def test_reading_from_any_offset_begins_with_the_batch_that_holds_it(offset: int) -> None:
    log = log_of(1, 3, 2)
    expected = b"".join(b.data for b in log.batches if b.last_offset >= offset)
    assert log.read(offset, 1 << 20) == expected


def test_an_empty_log() -> None:
    log = PartitionLog()
    assert log.read(0, 100, at_least_one=True) == b""
    assert (log.high_watermark, log.last_stable_offset, log.latest_timestamp()) == (0, 0, None)
    assert log.first_at_or_after(0) is None
    assert log.end_of_epoch(0) == (0, 0)


def test_without_room_nothing_is_read_unless_one_batch_must_be() -> None:
    log = log_of(1, 1)
    assert log.read(0, 0) == b""
    assert log.read(0, 0, at_least_one=True) == log.batches[0].data
    assert log.read(0, -1) == b""


def test_a_batch_that_cannot_be_opened_is_believed() -> None:
    data = bytearray(encode_batch([NewRecord(b"x", timestamp_ms=7)], 0))
    data[22] = ZSTD
    log = PartitionLog()
    log.append(bytes(data), 1, 7)
    assert log.first_at_or_after(5) == TimestampedOffset(7, 0)


def test_a_batch_that_unpacks_to_too_much_is_as_precise_as_it_gets() -> None:
    plain = encode_batch([NewRecord(bytes(65 << 20), timestamp_ms=7)], 0)
    data = bytearray(plain[:61] + pack(ZSTD, plain[61:]))
    data[22] = ZSTD
    struct.pack_into(">i", data, 8, len(data) - 12)
    log = PartitionLog()
    log.append(bytes(data), 1, 7)
    assert log.first_at_or_after(5) == TimestampedOffset(7, 0)
    with pytest.raises(WireError, match="t-0 holds a batch at offset 0 that unpacks to more"):
        list(stored_records("t", 0, log))


def test_logs_exist_for_the_partitions_of_their_topic_and_go_with_it() -> None:
    catalog = Catalog()
    logs = Logs()
    topic = catalog.create("t", 2, TopicId(b"1" * 16))
    log = logs.of(topic, 1)
    assert log is not None
    assert logs.of(topic, 1) is log
    assert logs.of(topic, 2) is None
    assert logs.of(topic, -1) is None
    logs.note_growth(topic, 1)
    assert logs.take_grown() == ((topic.topic_id, 1),)
    assert logs.take_grown() == ()
    logs.drop_topic(topic.topic_id, 2)
    assert logs.of(topic, 1) is not log


def test_a_log_that_was_cut_knows_where_its_leader_epochs_ended() -> None:
    log = log_of(3)
    for epoch in (1, 2):
        log.begin_epoch(epoch)
        log.append(encode_batch([NewRecord(b"x")], 0), 1, 0)
    log.truncate(4)
    assert log.high_watermark == 4
    log.begin_epoch(3)
    log.append(encode_batch([NewRecord(b"y")], 0), 1, 0)
    assert [log.end_of_epoch(epoch) for epoch in (0, 1, 2, 3)] == [(0, 3), (1, 4), (1, 4), (3, 5)]


def test_a_log_that_begins_within_a_batch_can_be_cut() -> None:
    log = log_of(3, 1, 1)
    log.delete_before(1)
    log.truncate(4)
    assert (log.log_start_offset, log.high_watermark) == (1, 4)
    log.truncate(2)
    assert (log.log_start_offset, log.high_watermark, log.batches) == (1, 1, [])


@pytest.mark.parametrize(("start", "stable"), [(1, 0), (2, 2), (3, 2), (4, 4), (5, 5), (6, 6)])
def test_what_is_deleted_cannot_be_undecided(start: int, stable: int) -> None:
    """A transaction is open whose first records are below the start of the log: undecided is what
    begins with the batch in which the log begins."""
    log = PartitionLog()
    records = [NewRecord(b"x")] * 2
    log.restore(encode_batch(records, 0, producer_id=5, producer_epoch=0, attributes=0x10))
    log.append(encode_batch(records, 0), 2, 0)
    for _ in range(2):
        log.append(encode_batch(records[:1], 0), 1, 0)
    assert log.last_stable_offset == 0
    log.delete_before(start)
    assert (log.last_stable_offset, log.high_watermark) == (stable, 6)


@pytest.mark.parametrize(
    ("start", "ends"),
    [
        (0, [(0, 3), (1, 6), (2, 7)]),
        (3, [(0, 3), (1, 6), (2, 7)]),
        (5, [(0, 5), (1, 6), (2, 7)]),
        (6, [(0, 6), (1, 6), (2, 7)]),
        (7, [(0, 7), (1, 7), (2, 7)]),
    ],
)
def test_an_epoch_does_not_end_before_the_log_begins(
    start: int, ends: list[tuple[int, int]]
) -> None:
    """As brokers of Kafka 4.0.2 and 4.4.0 answered to OffsetForLeaderEpoch and Fetch."""
    log = log_of(3)
    for epoch, size in ((1, 3), (2, 1)):
        log.begin_epoch(epoch)
        log.append(encode_batch([NewRecord(b"x")] * size, 0), size, 0)
    log.delete_before(start)
    assert [log.end_of_epoch(epoch) for epoch in (0, 1, 2)] == ends


def test_an_epoch_older_than_the_oldest_that_is_known_is_taken_as_it_is() -> None:
    """It wrote nothing that is left to differ from."""
    log = log_of(3)
    log.begin_epoch(2)
    log.append(encode_batch([NewRecord(b"x")] * 3, 0), 3, 0)
    assert log.end_of_epoch(1) == (0, 3)
    log.delete_before(5)
    assert log.end_of_epoch(1) == (1, 5)
