"""Crashes: what was decided is carried out, and nothing else is changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mock_coordinator.core.transaction_coordinator.records import TransactionState
from tests.support.transaction_sequences import SHORT_MS, Player, Step, sequence_of
from tests.unit.mock_coordinator.transactions.transactions_harness import TOPIC, TransactionsHarness


def test_an_open_transaction_goes_on_after_a_crash() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    broker.txn_commit("x", producer, "g", {(TOPIC, 0): 5})
    broker.restart()
    assert broker.state() == "Ongoing"
    assert broker.values() == []
    assert broker.offsets("g", [(TOPIC, 0)])[1][0][2] == 88
    assert broker.write("x", producer, b"2", sequence=1) == 0
    broker.finish("x", producer, commit=True)
    broker.restart()
    assert broker.values() == [b"1", b"2"]
    assert broker.offsets("g", [(TOPIC, 0)])[1][0][3] == 5


@pytest.mark.parametrize("commit", [True, False])
def test_what_was_decided_before_a_crash_is_carried_out_after_it(commit: bool) -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    broker.txn_commit("x", producer, "g", {(TOPIC, 0): 5})
    value = broker.records()["x"]
    state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
    broker.put("x", replace(value, state=state, producer_epoch=producer[1] + 1))
    broker.restart()
    broker.advance(0)
    assert broker.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert broker.values() == ([b"1"] if commit else [])
    assert broker.offsets("g", [(TOPIC, 0)])[1][0][3] == (5 if commit else -1)


def test_a_time_out_runs_from_the_begin_of_the_transaction_not_of_the_broker() -> None:
    broker = TransactionsHarness(transaction_abort_timed_out_transaction_cleanup_interval_ms="100")
    producer = broker.begin(timeout_ms=1000)
    assert broker.write("x", producer, b"1") == 0
    broker.advance(900)
    broker.restart()
    broker.advance(200)
    assert broker.state() == "CompleteAbort"


def test_a_restart_may_take_its_time_to_load() -> None:
    broker = TransactionsHarness(transaction_abort_timed_out_transaction_cleanup_interval_ms="100")
    producer = broker.begin(timeout_ms=1000)
    assert broker.write("x", producer, b"1") == 0
    broker.harness.broker.load_time_ms = 5000
    broker.restart()
    broker.advance(4999)
    assert broker.state() == "14"
    assert broker.init("new")[0][0] == 14
    assert broker.end("x", producer, commit=True)[0][0] == 14
    assert broker.list_offsets(TOPIC) == (0, 0, 0), "nothing is done before the load"
    broker.advance(1)
    assert broker.init("new")[0][0] == 0
    broker.advance(100)
    assert broker.state() == "CompleteAbort", "too old"


def test_the_last_epoch_but_one_is_not_remembered() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    _, after = broker.init("x", producer=producer)
    assert broker.init("x", producer=producer)[1] == after
    broker.restart()
    assert broker.init("x", producer=producer)[0][0] == 90, "as in Kafka, which writes it nowhere"


class Crashing(Player):
    """Plays steps with a crash after each."""

    def __init__(self, broker: TransactionsHarness) -> None:
        super().__init__(broker, lambda _name: broker.advance(SHORT_MS + 500), TOPIC, TOPIC)
        self._broker = broker

    def play(self, steps: Sequence[Step]) -> list[Any]:
        answers: list[Any] = []
        for step in steps:
            answers += super().play([step])
            self._broker.restart()
        return answers


@pytest.mark.parametrize("seed", range(40))
def test_a_crash_after_every_request_changes_no_answer(seed: int) -> None:
    steps = [
        step
        for step in sequence_of(seed, length=30, txn_commit_version=6)
        # producers that go on rely on what no record has (see above)
        if step.name != "time_out" and (step.name != "init" or step.options["who"] == "nobody")
    ]
    calm, troubled = (TransactionsHarness(offsets_topic_num_partitions="1") for _ in range(2))
    undisturbed = Player(calm, lambda _name: None, TOPIC, TOPIC).play(steps)
    assert Crashing(troubled).play(steps) == undisturbed
