"""``__consumer_offsets`` as a topic: one decision is one batch, Fetch reads it, its size follows
what the groups are and not how often they changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mock_coordinator.batches import stored_records
from mock_coordinator.core.groups.record_format import decode_record
from mock_coordinator.core.groups.records.state_records import (
    GroupEpoch,
    GroupEpochMetadata,
    OffsetAndMetadata,
    OffsetCommit,
    StateRecord,
    TransactionEnd,
)
from mock_coordinator.core.groups.state.groups_state import GroupsState
from mock_coordinator.core.logs.log import Logs, PartitionLog
from mock_coordinator.core.logs.record_batch import checksum_is_right, read_header
from mock_coordinator.core.profiles import profile_named
from mock_coordinator.core.state.offsets_log import OffsetsLog
from mock_coordinator.core.topics.catalog import Catalog
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC
from tests.support.examples import examples
from tests.unit.mock_coordinator.broker_harness import BrokerHarness, fetch_partition

KAFKA = profile_named("4.4")


def new_log() -> OffsetsLog:
    return OffsetsLog(KAFKA, Catalog(), Logs(), 0)


def commit(
    offset: int | None, partition: int = 0, producer: tuple[int, int] | None = None
) -> OffsetCommit:
    value = None
    if offset is not None:
        value = OffsetAndMetadata(offset=offset, commit_timestamp_ms=1)
    return OffsetCommit("g", "t", partition, value, producer)


def state_of(log: OffsetsLog) -> tuple[object, object]:
    state = GroupsState(KAFKA)
    for record in log.records:
        state.apply(record)
    return dict(state.offsets), [
        (group_id, getattr(group, "epoch", None))
        for group_id, group in sorted(state.groups.items())
    ]


def test_one_decision_is_one_batch() -> None:
    log = new_log()
    log.append(7, [commit(1), commit(2, 1), GroupEpochMetadata("h", GroupEpoch(3))])
    log.append(9, [commit(4)])
    first, second = log.log.batches
    header = read_header(first.data)
    assert (header.base_offset, header.count, header.base_timestamp) == (0, 3, 7)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, 0)
    assert checksum_is_right(header, first.data)
    assert (second.base_offset, second.last_offset) == (3, 3)
    assert log.records == [
        commit(1),
        commit(2, 1),
        GroupEpochMetadata("h", GroupEpoch(3)),
        commit(4),
    ]


def test_a_listener_hears_each_decision() -> None:
    log, heard = new_log(), list[tuple[int, list[StateRecord]]]()
    log.watched_by(lambda partition, records: heard.append((partition, list(records))))
    log.append(1, [commit(1), commit(2, 1)])
    log.append(1, [commit(3)])
    assert heard == [(0, [commit(1), commit(2, 1)]), (0, [commit(3)])]


def test_offsets_of_a_transaction_are_batches_of_its_producer() -> None:
    log = new_log()
    log.append(1, [commit(1)])
    log.append(2, [commit(5, 0, (77, 2)), commit(6, 1, (77, 2))])
    assert log.log.last_stable_offset == 1
    header = read_header(log.log.batches[1].data)
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch) == (77, 2)
    log.append(3, [TransactionEnd("", 77, 2, committed=True)])
    assert read_header(log.log.batches[2].data).is_control
    assert log.log.last_stable_offset == log.log.high_watermark == 4
    assert log.records == [
        commit(1),
        commit(5, 0, (77, 2)),
        commit(6, 1, (77, 2)),
        TransactionEnd("", 77, 2, committed=True),
    ]


def test_compaction_keeps_the_last_record_of_each_key_at_its_offset() -> None:
    log = new_log()
    for number in range(10):
        log.append(1, [commit(number), commit(number, 1 + number % 2)])
    before = state_of(log)
    log.compact()
    assert state_of(log) == before
    kept = [(batch.base_offset, read_header(batch.data).count) for batch in log.log.batches]
    assert kept == [(16, 1), (18, 2)]
    assert log.log.high_watermark == 20
    assert log.log.read(0, 1 << 20) == b"".join(batch.data for batch in log.log.batches)
    for batch in log.log.batches:
        assert checksum_is_right(read_header(batch.data), batch.data)


def test_a_tombstone_outlives_one_compaction() -> None:
    log = new_log()
    log.append(1, [commit(1)])
    log.append(1, [commit(None)])
    log.append(1, [commit(2, 1)])
    log.compact()
    assert log.records == [commit(None), commit(2, 1)]
    log.append(1, [commit(3, 1)])
    log.compact()
    assert log.records == [commit(3, 1)]


def test_compaction_leaves_open_transactions_alone_and_settles_the_others() -> None:
    log = new_log()
    log.append(1, [commit(1, 0, (1, 0))])
    log.append(1, [commit(2, 1, (2, 0))])
    log.append(1, [TransactionEnd("", 1, 0, committed=True)])
    log.append(1, [TransactionEnd("", 2, 0, committed=False)])
    log.append(1, [commit(3, 2, (3, 0))])
    log.append(1, [commit(4, 3)])
    before = state_of(log)
    log.compact()
    assert state_of(log) == before
    assert log.records == [commit(1), commit(3, 2, (3, 0)), commit(4, 3)]
    log.append(1, [TransactionEnd("", 3, 0, committed=True)])
    log.append(1, [commit(5, 3)])
    after = state_of(log)
    log.compact()
    assert state_of(log) == after
    assert log.records == [commit(1), commit(3, 2), commit(5, 3)]


PRODUCER = st.tuples(st.integers(1, 3), st.just(0))
decisions = st.lists(
    st.one_of(
        st.builds(commit, st.integers(0, 99), st.integers(0, 3)),
        st.builds(commit, st.integers(0, 99), st.integers(0, 3), PRODUCER),
        st.builds(commit, st.none(), st.integers(0, 3)),
        st.builds(TransactionEnd, st.just(""), st.integers(1, 3), st.just(0), st.booleans()),
    ),
    max_size=30,
)


@settings(max_examples=examples(200))
@given(decisions, st.sets(st.integers(0, 30)), st.integers(0, 30))
def test_compaction_at_any_time_changes_no_state(
    history: list[OffsetCommit | TransactionEnd], compactions: set[int], restart: int
) -> None:
    """Two logs with the same history, one of them compacted now and then and read again once: the
    state is the same at every record."""
    plain, compacted = new_log(), new_log()
    plain.compacts = False
    for number, record in enumerate(history):
        for log in (plain, compacted):
            log.append(number, [record])
        if number in compactions:
            compacted.compact()
        if number == restart:
            again = PartitionLog()
            for batch in compacted.log.batches:
                again.restore(batch.data)
            assert again.batches == compacted.log.batches
            assert again.last_stable_offset == compacted.log.last_stable_offset
        offsets, _ = state_of(plain)
        assert state_of(compacted)[0] == offsets
    assert compacted.log.high_watermark == plain.log.high_watermark


@settings(max_examples=examples(50))
@given(decisions, st.integers(0, 30))
def test_a_log_can_be_cut_at_any_decision(
    history: list[OffsetCommit | TransactionEnd], keep: int
) -> None:
    log, short = new_log(), new_log()
    for number, record in enumerate(history):
        log.append(number, [record])
        if number < keep:
            short.append(number, [record])
    log.truncate(keep)
    assert log.log.batches == short.log.batches
    assert log.log.last_stable_offset == short.log.last_stable_offset
    assert log.log.high_watermark == short.log.high_watermark


@pytest.mark.everything("200,000 commits")
def test_commits_without_end_keep_the_log_small() -> None:
    log = new_log()
    largest = 0
    for number in range(200_000):
        log.append(number, [commit(number, number % 3)])
        if number % 1000 == 0:
            largest = max(largest, sum(len(batch.data) for batch in log.log.batches))
    assert len(log.log.batches) <= 1100
    assert largest < 150_000
    assert log.log.high_watermark == 200_000
    (offsets, _) = state_of(log)
    assert offsets == {"g": {"t": {p: commit(199_997 + (p + 1) % 3).value for p in range(3)}}}


def test_any_client_can_read_the_groups_records() -> None:
    harness = BrokerHarness({"t": 1}, offsets_topic_num_partitions="1")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    topic = OffsetCommitRequestTopic(name="t", partitions=(partition,))
    request = OffsetCommitRequest(group_id="g", topics=(topic,))
    harness.ask(request, 9)  # before anybody has looked for the coordinator
    harness.ask(FindCoordinatorRequest(key="g", key_type=0), 3)
    harness.ask(request, 9)
    broker = harness.broker.core.broker
    found = broker.catalog.topics[OFFSETS_TOPIC]
    log = broker.logs.of(found, 0)
    assert log is not None
    decoded = [decode_record(r.key or b"", r.value) for r in stored_records(OFFSETS_TOPIC, 0, log)]
    assert [type(record) for record in decoded] == [OffsetCommit, OffsetCommit]
    fetched = harness.ask(harness.fetch_request(fetch_partition(), topic=OFFSETS_TOPIC), 12)
    assert fetched.responses[0].partitions[0].records == log.read(0, 1 << 20)
