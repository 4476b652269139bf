"""What time does to transactions: too slow ones are aborted, unused ids forgotten."""

from __future__ import annotations

from tests.unit.mock_coordinator.transactions.transactions_harness import TOPIC, TransactionsHarness

DAY_MS = 86_400_000


def test_an_open_transaction_is_aborted_at_the_next_look_after_its_time() -> None:
    broker = TransactionsHarness(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000")
    broker.advance(500)
    producer = broker.begin(timeout_ms=1500)
    assert broker.write("x", producer, b"1") == 0
    broker.txn_commit("x", producer, "g", {(TOPIC, 0): 5})
    broker.advance(1500)
    assert broker.state() == "Ongoing", "looked at 2.0 s, when the time-out was reached, not passed"
    broker.advance(999)
    assert broker.state() == "Ongoing"
    broker.advance(1)
    assert broker.state() == "CompleteAbort"
    assert broker.values() == []
    assert broker.offsets("g", [(TOPIC, 0)])[1][0][3] == -1
    assert broker.write("x", producer, b"2", sequence=1) == 47
    assert broker.end("x", producer, commit=True)[0][0] == 48
    assert broker.end("x", producer, commit=True, version=4)[0][0] == 90
    assert broker.init("x", producer=producer)[0][0] == 0, "it may go on with a new epoch"


def test_time_counts_from_the_first_partition() -> None:
    broker = TransactionsHarness(transaction_abort_timed_out_transaction_cleanup_interval_ms="100")
    producer = broker.begin(timeout_ms=1000)
    broker.advance(5000)
    assert broker.write("x", producer, b"1") == 0
    broker.advance(900)
    assert broker.write("x", producer, b"2", partition=1) == 0
    broker.advance(200)
    assert broker.state() == "CompleteAbort", "a second partition does not make it younger"


def test_an_ended_transaction_does_not_time_out() -> None:
    broker = TransactionsHarness(transaction_abort_timed_out_transaction_cleanup_interval_ms="100")
    producer = broker.begin(timeout_ms=1000)
    assert broker.write("x", producer, b"1") == 0
    producer = broker.finish("x", producer, commit=True)
    broker.advance(900)
    assert broker.write("x", producer, b"2") == 0
    broker.advance(900)
    assert broker.state() == "Ongoing", "the second one is younger than the first would be"
    broker.advance(300)
    assert broker.state() == "CompleteAbort"
    assert broker.values() == [b"1"]


def test_unused_ids_are_forgotten_but_not_open_ones() -> None:
    broker = TransactionsHarness(
        transactional_id_expiration_ms=str(DAY_MS),
        transaction_max_timeout_ms=str(10 * DAY_MS),
        transaction_remove_expired_transaction_cleanup_interval_ms="3600000",
    )
    broker.begin("idle")
    producer = broker.begin("busy", timeout_ms=10 * DAY_MS)
    assert broker.write("busy", producer, b"1") == 0
    broker.advance(DAY_MS - 1)
    assert broker.state("idle") == "Empty"
    broker.advance(1)
    assert broker.state("idle") == "105"
    assert broker.state("busy") == "Ongoing"
    assert set(broker.records()) == {"busy"}
    broker.finish("busy", producer, commit=True)
    broker.advance(DAY_MS + 3_600_000)
    assert broker.state("busy") == "105"
    assert broker.begin("busy")[0] != producer[0], "whoever comes back is somebody else"


def test_nothing_is_waited_for_without_transactions() -> None:
    broker = TransactionsHarness(offsets_retention_check_interval_ms="2000000000")
    before = broker.harness.broker.core.deadline_ms
    producer = broker.begin()
    assert broker.harness.broker.core.deadline_ms != before
    assert broker.write("x", producer, b"1") == 0
    deadline = broker.harness.broker.core.deadline_ms
    assert deadline is not None
    assert deadline - broker.harness.clock() == 70_000, "the time-out, and then the next look"
