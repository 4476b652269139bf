"""``__transaction_state`` as a topic: any client can read it, its size follows what transactional
ids there are, and a coordinator that takes over knows no more than it says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kip848_client.error_codes import ErrorCode
from mock_coordinator.batches import StoredRecord
from mock_coordinator.core.groups.service.splitting import partition_for
from mock_coordinator.core.topics.topic_names import TRANSACTIONS_TOPIC
from mock_coordinator.core.transaction_coordinator.record_format import decode_transaction
from mock_coordinator.core.transaction_coordinator.records import TransactionLog, TransactionState
from tests.unit.mock_coordinator.broker_harness import fetch_partition
from tests.unit.mock_coordinator.transactions.transactions_harness import TOPIC, TransactionsHarness

HOUR_MS = 3_600_000


def stored(broker: TransactionsHarness, partition: int | None = None) -> list[TransactionLog]:
    found = broker.harness.broker.records(TRANSACTIONS_TOPIC, partition)
    return [_decoded(record) for record in found]


def _decoded(record: StoredRecord) -> TransactionLog:
    decoded = decode_transaction(record.key or b"", record.value)
    assert decoded is not None
    return decoded


def test_every_change_is_a_record_in_the_partition_of_the_id() -> None:
    broker = TransactionsHarness()
    broker.find_coordinator("x")
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    broker.finish("x", producer, commit=True)
    records = stored(broker, partition_for("x", 50))
    assert records == stored(broker), "and in no other"
    states = [record.value.state.kafka_name for record in records if record.value]
    assert states == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]


def test_nobody_coordinates_before_somebody_asks_who_does() -> None:
    broker = TransactionsHarness(transaction_state_log_num_partitions="1", known=False)
    assert broker.init("early")[0] == (ErrorCode.NOT_COORDINATOR, "-1", -1)
    assert broker.init(None)[0][0] == 0, "that needs no coordinator"
    broker.find_coordinator("x")
    broker.begin("early")
    broker.begin("late")
    assert [record.transactional_id for record in stored(broker, 0)] == ["early", "late"]
    fetched = broker.harness.ask(
        broker.harness.fetch_request(fetch_partition(), topic=TRANSACTIONS_TOPIC), 12
    )
    found = fetched.responses[0].partitions[0]
    assert (found.error_code, found.high_watermark) == (0, 2)


def test_ids_that_are_forgotten_together_are_one_batch_of_tombstones() -> None:
    broker = TransactionsHarness(
        transaction_state_log_num_partitions="1", transactional_id_expiration_ms=str(HOUR_MS)
    )
    broker.find_coordinator("x")
    for name in ("a", "b", "c"):
        broker.begin(name)
    broker.advance(2 * HOUR_MS)
    assert stored(broker)[3:] == [TransactionLog(name, None) for name in ("a", "b", "c")]
    log = broker.harness.broker.core.broker.disk.transactions.of(0).log
    assert len(log.batches) == 4
    broker.restart()
    assert broker.state("a") == "105"


def test_many_transactions_keep_the_log_small() -> None:
    broker = TransactionsHarness(transaction_state_log_num_partitions="1")
    broker.find_coordinator("x")
    producers = {name: broker.begin(name) for name in ("a", "b", "c")}
    for number in range(1200):
        name = "abc"[number % 3]
        broker.add_partitions(name, producers[name], [(TOPIC, 0)], 3)
        producers[name] = broker.finish(name, producers[name], commit=True)
    log = broker.harness.broker.core.broker.disk.transactions.of(0).log
    assert log.high_watermark == 3 + 1200 * 3
    assert len(log.batches) < 1100
    broker.restart()
    assert {broker.state(name) for name in "abc"} == {"CompleteCommit"}
    assert broker.add_partitions("a", producers["a"], [(TOPIC, 0)], 3)[1][0][3] == 0


def test_a_coordinator_that_takes_over_knows_what_the_log_says_and_nothing_else() -> None:
    broker = TransactionsHarness(transaction_state_log_num_partitions="1")
    broker.find_coordinator("x")
    producer = broker.begin()
    log = broker.harness.broker.core.broker.disk.transactions.of(0)
    end = log.log.high_watermark
    assert broker.write("x", producer, b"1") == 0
    log.truncate(end)
    broker.restart()
    assert broker.state() == "Empty"


@pytest.mark.parametrize(("profile", "known"), [("4.4", True), ("4.2", False)])
def test_a_producer_id_that_takes_over_is_in_the_log_since_4_3(profile: str, known: bool) -> None:
    broker = TransactionsHarness(profile=profile)
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    value = replace(broker.records()["x"], state=TransactionState.PREPARE_COMMIT)
    broker.put("x", replace(value, producer_epoch=32767, next_producer_id=4711))
    broker.restart()
    broker.advance(0)
    assert broker.state() == "CompleteCommit"
    after = broker.records()["x"]
    assert (after.producer_id, after.producer_epoch) == (
        (4711, 0) if known else (producer[0], 32767)
    )
