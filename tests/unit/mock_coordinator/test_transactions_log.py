"""The journal of transaction coordinators as logs: compaction, cuts and restores change nothing
that counts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mock_coordinator.core.groups.service.splitting import partition_for
from mock_coordinator.core.logs.log import Logs, PartitionLog
from mock_coordinator.core.logs.record_batch import checksum_is_right, read_header
from mock_coordinator.core.profiles import profile_named
from mock_coordinator.core.topics.catalog import Catalog
from mock_coordinator.core.transaction_coordinator.records import (
    TransactionLog,
    TransactionMetadata,
    TransactionState,
)
from mock_coordinator.core.transaction_coordinator.state import TransactionsState
from mock_coordinator.core.transaction_coordinator.transactions_log import TransactionLogs
from tests.support.examples import examples

KAFKA = profile_named("4.4")


def new_logs(partitions: int = 1) -> TransactionLogs:
    return TransactionLogs(KAFKA, Catalog(), Logs(), partitions)


def change(name: str, number: int | None) -> TransactionLog:
    if number is None:
        return TransactionLog(name, None)
    value = TransactionMetadata(
        producer_id=number,
        producer_epoch=number % 7,
        timeout_ms=1000,
        state=TransactionState.ONGOING,
        partitions=(("t", number % 5),),
        last_update_ms=number,
        start_ms=number,
    )
    return TransactionLog(name, value)


def state_of(logs: TransactionLogs) -> dict[str, TransactionMetadata]:
    state = TransactionsState(logs.partition_of)
    for record in logs.records:
        state.apply(record)
    return {name: entry.value for name, entry in state}


changes = st.lists(
    st.builds(change, st.sampled_from("abcd"), st.none() | st.integers(0, 99)), max_size=30
)


@settings(max_examples=examples(200))
@given(changes, st.sets(st.integers(0, 30)), st.integers(0, 30))
def test_compaction_at_any_time_changes_no_state(
    history: list[TransactionLog], compactions: set[int], restart: int
) -> None:
    plain, compacted = new_logs(), new_logs()
    plain.of(0).compacts = False
    for number, record in enumerate(history):
        plain.append(number, record)
        compacted.append(number, record)
        if number in compactions:
            compacted.of(0).compact()
        if number == restart:
            again = PartitionLog()
            for batch in compacted.of(0).log.batches:
                assert checksum_is_right(read_header(batch.data), batch.data)
                again.restore(batch.data)
            assert again.batches == compacted.of(0).log.batches
        assert state_of(compacted) == state_of(plain)
    assert compacted.of(0).log.high_watermark == plain.of(0).log.high_watermark == len(history)


@settings(max_examples=examples(50))
@given(changes, st.integers(0, 30))
def test_a_log_can_be_cut_at_any_change(history: list[TransactionLog], keep: int) -> None:
    logs, short = new_logs(), new_logs()
    for number, record in enumerate(history):
        logs.append(number, record)
        if number < keep:
            short.append(number, record)
    logs.of(0).truncate(keep)
    assert logs.of(0).log.batches == short.of(0).log.batches


@settings(max_examples=examples(50))
@given(st.lists(st.text(max_size=5), unique=True, max_size=20))
def test_each_partition_has_its_own_ids(names: list[str]) -> None:
    logs = new_logs(7)
    logs.append(5, *(change(name, 1) for name in names))
    for partition in range(7):
        here = [record.transactional_id for record in logs.of(partition).records]
        assert here == [name for name in names if partition_for(name, 7) == partition]
        assert len(logs.of(partition).log.batches) == (1 if here else 0), "one batch"


def test_changes_without_end_keep_the_log_small() -> None:
    logs = new_logs()
    for number in range(20_000):
        logs.append(number, change("abc"[number % 3], number))
    assert len(logs.of(0).log.batches) <= 1100
    assert logs.of(0).log.high_watermark == 20_000
    newest = {"a": 19_998, "b": 19_999, "c": 19_997}
    assert {name: value.producer_id for name, value in state_of(logs).items()} == newest
