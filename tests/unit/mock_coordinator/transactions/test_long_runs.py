"""Days of virtual time and thousands of producers: what is kept follows who is there, not who has
ever been there."""

from __future__ import annotations

import pytest

from mock_coordinator.core.logs.log import PartitionLog
from tests.unit.mock_coordinator.transactions.transactions_harness import TOPIC, TransactionsHarness

MINUTE_MS = 60_000
DAY_MS = 86_400_000
IDS = 10_000
EACH_MS = 5 * DAY_MS // IDS


def log_of(broker: TransactionsHarness, topic: str, partition: int = 0) -> PartitionLog:
    core = broker.harness.broker.core.broker
    log = core.logs.of(core.catalog.topics[topic], partition)
    assert log is not None
    return log


def use(broker: TransactionsHarness, name: str, number: int) -> None:
    """One transaction of a transactional id, with a record and an offset."""
    producer = broker.begin(name)
    assert broker.write(name, producer, b"1") == 0
    broker.txn_commit(name, producer, "g", {(TOPIC, 0): number})
    broker.finish(name, producer, commit=number % 2 == 0)


@pytest.mark.everything("ten thousand of them take seconds")
@pytest.mark.timeout(180)
def test_ten_thousand_transactional_ids_in_five_days() -> None:
    """None is heard of again; every fifth one has a transaction."""
    broker = TransactionsHarness(
        transactional_id_expiration_ms=str(DAY_MS // 2),
        producer_id_expiration_ms=str(DAY_MS // 4),
        transaction_state_log_num_partitions="3",
        offsets_topic_num_partitions="1",
    )
    core = broker.harness.broker.core
    journals, disk = core.broker.disk.journal(0), core.broker.disk
    coordinator = core._transactions.coordinator
    broker.find_coordinator("x")
    ids: list[int] = []
    records: list[int] = []
    producers: list[int] = []
    for number in range(IDS):
        if number % 5 == 0:
            use(broker, f"id-{number}", number)
        else:
            broker.begin(f"id-{number}")
        broker.advance(EACH_MS)
        if number % 500 == 499:
            ids.append(len(coordinator._env.state))
            records.append(len(disk.transactions.records))
            producers.append(len(log_of(broker, TOPIC).producers))
            producers.append(len(journals.log.producers))
            assert len(coordinator._time_outs) <= len(coordinator._scheduled) <= 10
    a_day = DAY_MS // EACH_MS
    hour = a_day // 24 + 1
    assert a_day // 2 - 1 <= max(ids) <= a_day // 2 + hour
    assert a_day // 20 - 1 <= max(producers) <= a_day // 20 + hour
    assert max(records) <= 2 * max(ids) + 3 * 1024
    broker.advance(2 * DAY_MS)
    assert len(coordinator._env.state) == 0
    assert len(log_of(broker, TOPIC).producers) == 0
    assert len(journals.log.producers) == 0
    assert core._producers.deadline_ms is None, "nobody is left to look for"


@pytest.mark.everything("ten thousand of them take seconds")
def test_ten_thousand_idempotent_producers_are_forgotten_without_a_question() -> None:
    broker = TransactionsHarness(producer_id_expiration_ms=str(DAY_MS))
    for number in range(IDS):
        _, producer = broker.init(None)
        assert broker.produce(None, producer, 0, {(TOPIC, number % 3): [b"1"]}, transactional=False)
        if number % 100 == 0:
            broker.advance(10 * MINUTE_MS)
    logs = [log_of(broker, TOPIC, partition).producers for partition in range(3)]
    assert sum(map(len, logs)) == IDS
    broker.advance(DAY_MS)
    assert sum(map(len, logs)) == 0


def test_open_transactions_are_not_forgotten_and_verifications_are() -> None:
    broker = TransactionsHarness(
        producer_id_expiration_ms=str(DAY_MS), transaction_max_timeout_ms=str(10 * DAY_MS)
    )
    producer = broker.begin("open", timeout_ms=10 * DAY_MS)
    assert broker.write("open", producer, b"1") == 0
    other = broker.begin("asked")
    assert broker.write("asked", other, b"1", sequence=7) == 45
    producers = log_of(broker, TOPIC).producers
    assert len(producers) == 2
    broker.advance(2 * DAY_MS)
    assert [producer_id for producer_id, _ in producers.active] == [producer[0]]
    assert len(producers) == 1


def test_many_transactions_of_one_id_wait_for_one_time_out() -> None:
    broker = TransactionsHarness()
    producer = broker.begin("x", timeout_ms=900_000)
    for _ in range(2000):
        broker.add_partitions("x", producer, [(TOPIC, 0)], 3)
        producer = broker.finish("x", producer, commit=True)
    assert len(broker.harness.broker.core._transactions.coordinator._time_outs) == 1


def test_aborted_offsets_do_not_pile_up() -> None:
    broker = TransactionsHarness(offsets_topic_num_partitions="1")
    producer = broker.begin()
    for number in range(3000):
        broker.txn_commit("x", producer, "g", {(TOPIC, 0): number})
        producer = broker.finish("x", producer, commit=False)
    log = broker.harness.broker.core.broker.disk.journal(0).log
    assert log.high_watermark == 6000
    assert len(log._aborted._all) <= 1024
