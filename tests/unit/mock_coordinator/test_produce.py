"""Produce: the checks of a leader in its order, and what idempotent producers are told."""

from __future__ import annotations

import struct

import pytest

from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from kip848_client.core.wire.messages.transactions import InitProducerIdRequest
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import TransportError
from mock_coordinator import NewRecord
from mock_coordinator.batches import encode_batch
from mock_coordinator.core.logs.batch_writer import thinned_batch
from mock_coordinator.core.logs.record_batch import read_header, records_of
from tests.support.odd_records import field, raw_batch, raw_record
from tests.unit.mock_coordinator.broker_harness import START_MS, BrokerHarness


def patched(data: bytes, at: int, layout: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(layout, changed, at, value)
    return bytes(changed)


def rechecked(data: bytes) -> bytes:
    import crc32c

    return patched(data, 17, ">I", crc32c.crc32c(data[21:]))


def test_offsets_count_records_and_the_answer_has_the_log_start() -> None:
    harness = BrokerHarness({"t": 2})
    first = harness.produce_bytes("t", harness.batch(b"a", b"b"))
    assert (first.error_code, first.base_offset, first.log_start_offset) == (0, 0, 0)
    assert harness.produce_bytes("t", harness.batch(b"c")).base_offset == 2
    assert harness.produce_bytes("t", harness.batch(b"c"), partition=1).base_offset == 0
    assert harness.produce_bytes("t", harness.batch(b"c"), version=3).log_start_offset == -1
    assert [r.value for r in harness.broker.records("t", 0)] == [b"a", b"b", b"c", b"c"]
    assert [r.offset for r in harness.broker.records("t", 0)] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("topic", "partition", "code"), [("nope", 0, 3), ("t", 1, 3), ("t", -1, 3), ("a b", 0, 3)]
)
def test_an_unknown_partition(topic: str, partition: int, code: int) -> None:
    harness = BrokerHarness({"t": 1})
    answer = harness.produce_bytes(topic, harness.batch(b"x"), partition=partition)
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (code, -1, -1)


def test_from_version_13_topics_go_by_id() -> None:
    harness = BrokerHarness({"t": 1})
    topic_id = harness.broker.core.broker.catalog.topics["t"].topic_id
    for wanted, code in ((topic_id, 0), (b"7" * 16, 100), (bytes(16), 100)):
        data = ProduceRequestPartitionProduceData(index=0, records=harness.batch(b"x"))
        topic = ProduceRequestTopicProduceData(topic_id=wanted, partition_data=(data,))
        response = harness.ask(ProduceRequest(acks=1, topic_data=(topic,)), 13)
        assert response.responses[0].topic_id == wanted
        assert response.responses[0].partition_responses[0].error_code == code


GOOD = encode_batch([NewRecord(b"x"), NewRecord(b"y")], START_MS)


@pytest.mark.parametrize(
    ("name", "records", "code", "log_start"),
    [
        ("empty", b"", ErrorCode.INVALID_RECORD, -1),
        ("three bytes", b"xyz", ErrorCode.INVALID_RECORD, -1),
        ("ones", b"\1" * 100, ErrorCode.INVALID_RECORD, -1),
        ("cut", GOOD[:-3], ErrorCode.INVALID_RECORD, -1),
        ("two batches", GOOD + GOOD, ErrorCode.INVALID_RECORD, -1),
        ("old format", patched(GOOD, 16, ">b", 1), ErrorCode.INVALID_RECORD, -1),
        ("future format", patched(GOOD, 16, ">b", 3), 2, -1),
        ("checksum", patched(GOOD, 17, ">I", 1), 2, -1),
        ("loose bytes behind", GOOD + b"zz", 0, 0),
        ("more than there are", rechecked(patched(GOOD, 57, ">i", 3)), ErrorCode.INVALID_RECORD, 0),
        (
            "fewer than there are",
            rechecked(patched(GOOD, 57, ">i", 1)),
            ErrorCode.INVALID_RECORD,
            0,
        ),
        ("last offset", rechecked(patched(GOOD, 23, ">i", 5)), ErrorCode.INVALID_RECORD, 0),
        ("none", rechecked(patched(GOOD, 23, ">i", -1)), ErrorCode.INVALID_RECORD, 0),
        ("base offset", patched(GOOD, 0, ">q", 5), ErrorCode.INVALID_RECORD, 0),
        ("control", rechecked(patched(GOOD, 21, ">h", 0x20)), ErrorCode.INVALID_RECORD, 0),
        ("transactional", rechecked(patched(GOOD, 21, ">h", 0x10)), 53, -1),
        ("not gzip", rechecked(patched(GOOD, 21, ">h", 1)), -1, 0),
        ("no such codec", rechecked(patched(GOOD, 21, ">h", 7)), -1, 0),
        (
            "producer without sequence",
            rechecked(patched(GOOD, 43, ">q", 5)),
            ErrorCode.INVALID_RECORD,
            0,
        ),
    ],
)
def test_a_batch_that_does_not_add_up(name: str, records: bytes, code: int, log_start: int) -> None:
    del name
    harness = BrokerHarness({"t": 1})
    answer = harness.produce_bytes("t", records)
    assert (answer.error_code, answer.log_start_offset) == (code, log_start)
    assert len(harness.broker.records("t")) == (0 if code else 2)


def test_no_records_at_all_end_the_connection() -> None:
    with pytest.raises(TransportError):
        BrokerHarness({"t": 1}).produce_bytes("t", None)


@pytest.mark.parametrize(("codec", "code"), [(0, 0), (1, -1)])
def test_offsets_inside_a_batch_are_looked_at_where_it_is_compressed(codec: int, code: int) -> None:
    """Asked on Kafka 4.4.0."""
    data = raw_batch(raw_record(0) + raw_record(0), 2, codec=codec, first_ms=START_MS)
    harness = BrokerHarness({"t": 1})
    assert harness.produce_bytes("t", data).error_code == code


def test_header_names_are_kept_as_they_came() -> None:
    """Also where a log is compacted, which writes batches again."""
    names = [b"caf\xe9", b"\xed\xa0\x80", "\u00e4".encode()]
    headers = [field(name) + field(b"x") for name in names]
    data = raw_batch(raw_record(0, headers=headers), 1, first_ms=START_MS)
    harness = BrokerHarness({"t": 1})
    assert harness.produce_bytes("t", data).error_code == 0
    (shown,) = harness.broker.records("t")
    assert [name for name, _ in shown.headers] == ["caf\ufffd", "\ufffd", "\u00e4"]
    header = read_header(data)
    records = list(records_of(header, data) or ())
    assert thinned_batch(header, records)[61:] == data[61:]


def test_transactional_batches_need_the_id_of_their_transaction() -> None:
    harness = BrokerHarness({"t": 1})
    batch = rechecked(patched(GOOD, 21, ">h", 0x10))
    assert (
        harness.produce_bytes("t", batch).error_code
        == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    )


def test_zstd_is_refused_before_version_7() -> None:
    harness = BrokerHarness({"t": 1})
    zstd = rechecked(patched(GOOD, 21, ">h", 4))
    assert (
        harness.produce_bytes("t", zstd, version=6).error_code
        == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    )


def test_too_large() -> None:
    harness = BrokerHarness()
    harness.broker.create_topic("t", config={"max.message.bytes": str(len(GOOD) - 1)})
    assert harness.produce_bytes("t", GOOD).error_code == ErrorCode.MESSAGE_TOO_LARGE
    harness.broker.create_topic("u", config={"max.message.bytes": str(len(GOOD))})
    assert harness.produce_bytes("u", GOOD).error_code == 0


def test_larger_than_a_segment() -> None:
    harness = BrokerHarness()
    sizes = {"max.message.bytes": "5000000", "segment.bytes": "1048576"}
    harness.broker.create_topic("t", config=sizes)
    for size, code in ((1_048_576, 0), (1_048_577, 18)):
        batch = encode_batch([NewRecord(bytes(size - 72))], 0)
        assert (len(batch), harness.produce_bytes("t", batch).error_code) == (size, code)


def test_log_append_time_replaces_the_producers() -> None:
    harness = BrokerHarness()
    harness.broker.create_topic("t", config={"message.timestamp.type": "LogAppendTime"})
    old = encode_batch([NewRecord(b"x", timestamp_ms=5), NewRecord(b"y", timestamp_ms=6)], 0)
    assert harness.produce_bytes("t", old).log_append_time_ms == START_MS
    assert [r.timestamp_ms for r in harness.broker.records("t")] == [START_MS, START_MS]


def test_a_maximum_timestamp_that_is_wrong_is_put_right() -> None:
    harness = BrokerHarness({"t": 1})
    wrong = rechecked(patched(GOOD, 35, ">q", START_MS + 99))
    assert harness.produce_bytes("t", wrong).error_code == 0
    (batch,) = harness.broker.core.broker.logs.of(
        harness.broker.core.broker.catalog.topics["t"], 0
    ).batches  # type: ignore[union-attr]  # the partition exists
    assert batch.max_timestamp == START_MS
    assert struct.unpack_from(">q", batch.data, 35)[0] == START_MS


def test_timestamps_out_of_range() -> None:
    harness = BrokerHarness({"t": 1})
    hour = 3_600_000
    late = encode_batch(
        [NewRecord(b"x"), NewRecord(b"y", timestamp_ms=START_MS + hour + 1)], START_MS
    )
    answer = harness.produce_bytes("t", late)
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert answer.error_message == "One or more records have been rejected due to invalid timestamp"
    (error,) = answer.record_errors
    assert error.batch_index == 1
    assert error.batch_index_error_message == (
        f"Timestamp {START_MS + hour + 1} of message with offset 1 is out of range. The timestamp "
        f"should be within [{START_MS - 9223372036854775807}, {START_MS + hour}]"
    )
    unstamped = encode_batch([NewRecord(b"x", timestamp_ms=-1)], 0)
    assert harness.produce_bytes("t", unstamped).error_code == 0


def test_a_compacted_topic_needs_keys() -> None:
    harness = BrokerHarness()
    harness.broker.create_topic("t", config={"cleanup.policy": "compact"})
    answer = harness.produce_bytes("t", GOOD)
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [e.batch_index for e in answer.record_errors] == [0, 1]
    text = "Compacted topic cannot accept message without key in topic partition t-0"
    assert answer.error_message == (
        "One or more records have been rejected due to 2 record errors in total, and only showing "
        f"the first three errors at most: [RecordError(batchIndex=0, message='{text}'), "
        f"RecordError(batchIndex=1, message='{text}')]"
    )


def test_acks() -> None:
    harness = BrokerHarness({"t": 1})
    assert harness.produce_bytes("t", GOOD, acks=1).error_code == 0
    assert harness.produce_bytes("t", GOOD, acks=2).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def acks_0(topic: str, records: bytes) -> ProduceRequest:
    data = ProduceRequestPartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=0, topic_data=(ProduceRequestTopicProduceData(name=topic, partition_data=(data,)),)
    )


def test_acks_0_has_no_answer_and_a_failure_closes_the_connection() -> None:
    harness = BrokerHarness({"t": 1})
    assert harness.ask(acks_0("t", GOOD), 9) is None
    assert len(harness.broker.records("t")) == 2
    with pytest.raises(TransportError, match="acks=0"):
        harness.ask(acks_0("nope", GOOD), 9)
    assert harness.connection.is_closed


def test_an_internal_topic_is_not_for_clients() -> None:
    harness = BrokerHarness({"__consumer_offsets": 1})
    assert (
        harness.produce_bytes("__consumer_offsets", GOOD).error_code
        == ErrorCode.INVALID_TOPIC_EXCEPTION
    )


def test_of_two_entries_for_a_partition_the_later_counts() -> None:
    harness = BrokerHarness({"t": 1})
    entries = tuple(
        ProduceRequestPartitionProduceData(index=0, records=harness.batch(value))
        for value in (b"1", b"2")
    )
    topic = ProduceRequestTopicProduceData(name="t", partition_data=entries)
    response = harness.ask(ProduceRequest(acks=1, topic_data=(topic,)), 9)
    assert len(response.responses[0].partition_responses) == 1
    assert [r.value for r in harness.broker.records("t")] == [b"2"]


# -- idempotent producers ------------------------------------------------------------------------


class Producer:
    """Sends batches of one producer id to partition 0 of ``t``; returns (error, base offset)."""

    def __init__(self, producer_id: int = 1, **config: str) -> None:
        self.harness = BrokerHarness({"t": 1}, **config)
        self.producer_id = producer_id

    def send(self, count: int, sequence: int, epoch: int = 0) -> tuple[int, int]:
        records = encode_batch(
            [NewRecord(b"x")] * count,
            START_MS,
            producer_id=self.producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        answer = self.harness.produce_bytes("t", records)
        return answer.error_code, answer.base_offset


def test_a_retry_gets_the_first_answer() -> None:
    producer = Producer()
    assert producer.send(2, 0) == (0, 0)
    assert producer.send(2, 0) == (0, 0)
    assert producer.send(1, 2) == (0, 2)
    assert producer.send(1, 3) == (0, 3)
    assert producer.send(1, 2) == (0, 2)
    assert len(producer.harness.broker.records("t")) == 4


def test_gaps_overlaps_and_what_is_forgotten_are_out_of_order() -> None:
    producer = Producer()
    for sequence in range(6):
        assert producer.send(1, sequence) == (0, sequence)
    for count, sequence in ((1, 9), (2, 4), (1, 0), (1, 7)):
        assert producer.send(count, sequence) == (45, -1)


def test_epochs() -> None:
    producer = Producer()
    producer.send(1, 0)
    assert producer.send(1, 5, epoch=1) == (45, -1)
    assert producer.send(1, 0, epoch=1) == (0, 1)
    assert producer.send(1, 1, epoch=0) == (47, -1)


def test_an_unknown_producer_may_start_anywhere_and_sequences_wrap() -> None:
    producer = Producer()
    assert producer.send(2, 0x7FFFFFFF) == (0, 0)
    assert producer.send(1, 1) == (0, 2)
    other = Producer(2)
    assert other.send(1, 0x7FFFFFFF) == (0, 0)
    assert other.send(1, 0) == (0, 1)


def test_a_producer_is_forgotten_in_time() -> None:
    producer = Producer(
        producer_id_expiration_ms="1000", producer_id_expiration_check_interval_ms="500"
    )
    producer.send(1, 0)
    assert producer.send(1, 5) == (45, -1)
    producer.harness.broker.advance(1000)
    assert producer.send(1, 5) == (0, 1)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (InitProducerIdRequest(transactional_id=None), 0),
        (InitProducerIdRequest(transactional_id=None, producer_id=5, producer_epoch=0), 0),
        (InitProducerIdRequest(transactional_id=None, producer_epoch=0), 42),
        (InitProducerIdRequest(transactional_id=None, producer_id=5), 42),
        (InitProducerIdRequest(transactional_id=""), 42),
        (InitProducerIdRequest(transactional_id="t"), 50),  # without a timeout
    ],
)
def test_init_producer_id(request_: InitProducerIdRequest, code: int) -> None:
    harness = BrokerHarness()
    answer = harness.ask(request_, 5)
    assert answer.error_code == code
    assert (answer.producer_id, answer.producer_epoch) == ((0, 0) if code == 0 else (-1, -1))
    if code == 0:
        assert harness.ask(request_, 5).producer_id == 1
