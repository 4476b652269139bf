"""Batches in transactions: the core and the transactions' machine together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._model import (
    Group,
    OffsetToCommit,
    ProducerId,
    ProduceSettings,
    TransactionVersion,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import CommitInDoubt, LocalProtocolError, TransactionAborted
from tests.unit.core.produce._harness import Harness, tp

FOREVER = 10**9


class TransactionHarness(Harness):
    """The same, with a transactional id; node 3 is its coordinator."""

    def __init__(self, level: int = 2, **settings: Any) -> None:
        super().__init__(
            replace(ProduceSettings(transactional_id="x"), **settings), partitions=2, start=False
        )
        self.post(ev.TransactionVersionLearnt(level))
        self.post(ev.StartRequested(1, FOREVER))
        self.answer_txn()
        self.want("t")

    def answer_txn(self) -> None:
        """Answer all that coordinators are asked, until there is nothing."""
        seen: set[int] = set()
        while True:
            asked = [each for each in self.commands if id(each) not in seen]
            if not asked:
                return
            for command in asked:
                seen.add(id(command))
                match command:
                    case do.FindCoordinator(number=number):
                        self.post(ev.CoordinatorFound(number, 3))
                    case do.AddPartitions(number=number, partitions=partitions):
                        self.post(ev.TxnAnswered(number, partitions=dict.fromkeys(partitions, 0)))
                    case do.EndTransaction(number=number, producer=(who, epoch), version=version):
                        after = None
                        if version is TransactionVersion.V2:
                            after = ProducerId(who, epoch + 1)
                        self.post(ev.TxnAnswered(number, producer=after))
                    case do.DescribeTransaction(number=number):
                        self.post(ev.TransactionDescribed(number, 0, "CompleteCommit"))
                    case _:
                        pass

    def begin(self, ticket: int = 10) -> None:
        self.post(ev.BeginRequested(ticket, FOREVER))
        self.answer_txn()
        assert ticket in self.tickets


def test_without_a_transactional_id_there_are_no_transactions() -> None:
    h = Harness()
    group = Group("g", 1, "m", None)
    h.post(ev.BeginRequested(11, FOREVER))
    h.post(ev.CommitRequested(12, FOREVER))
    h.post(ev.AbortRequested(13, FOREVER))
    h.post(ev.OffsetsAdded(14, group, {tp(): OffsetToCommit(1, -1, "")}))
    assert list(h.refused) == [11, 12, 13, 14]
    for error in h.refused.values():
        assert isinstance(error, LocalProtocolError)
        assert "transactional_id" in str(error)
    before = h.core.snapshot().stale_answers
    h.post(ev.TransactionVersionLearnt(2))
    h.post(ev.CoordinatorFound(1, 1))
    h.post(ev.TxnAnswered(1))
    assert h.core.snapshot().stale_answers == before + 2
    assert h.core.transaction_state is None


def test_records_need_a_transaction() -> None:
    h = TransactionHarness()
    with pytest.raises(LocalProtocolError):
        h.append("one")


@pytest.mark.parametrize("level", [1, 2])
def test_a_transaction_is_committed_when_all_of_it_is_written(level: int) -> None:
    h = TransactionHarness(level, linger_ms=10_000)
    h.begin()
    h.append("one", to=tp(0))
    h.append("two", to=tp(1))
    h.post(ev.CommitRequested(11, FOREVER))
    h.answer_txn()
    assert h.batch(tp(0)).transactional
    assert h.open[0].transactional_id == "x"
    version = TransactionVersion.V2 if level == 2 else TransactionVersion.V1
    assert h.open[0].version is version
    assert not h.all(do.EndTransaction)
    while h.open:
        h.answer()
        h.answer_txn()
    assert [each.commit for each in h.all(do.EndTransaction)] == [True]
    assert 11 in h.tickets
    h.begin(12)
    h.append("thr")
    h.post(ev.FlushRequested(13))
    h.answer_txn()
    expected = (1, 0) if level == 2 else (0, 1)
    assert (h.batch().producer.epoch, h.batch().first) == expected


def test_a_refused_record_makes_the_commit_fail() -> None:
    h = TransactionHarness()
    h.begin()
    h.send("one", to=tp(0))
    h.answer(ErrorCode.INVALID_RECORD)
    with pytest.raises(TransactionAborted):
        h.append("two")
    h.post(ev.CommitRequested(11, FOREVER))
    assert isinstance(h.refused[11], TransactionAborted)
    h.post(ev.AbortRequested(12, FOREVER))
    h.answer_txn()
    assert [each.commit for each in h.all(do.EndTransaction)] == [False]
    assert 12 in h.tickets
    h.begin(13)
    batch = h.send("thr", to=tp(0))
    assert (batch.producer.epoch, batch.first) == (1, 0)
    h.answer()
    assert h.core.snapshot().held_bytes == 0


def test_an_abort_drops_what_was_not_sent_and_waits_for_what_was() -> None:
    h = TransactionHarness(linger_ms=0)
    h.begin()
    h.send("one", to=tp(0))
    h.append("two", to=tp(0))
    h.post(ev.AbortRequested(12, FOREVER))
    assert h.failed.keys() == {2}
    assert not h.all(do.EndTransaction)
    h.answer()
    h.answer_txn()
    assert 12 in h.tickets
    assert h.core.snapshot().held_bytes == 0


def test_v1_takes_another_epoch_when_a_refused_batch_is_dropped() -> None:
    """The broker has refused it, and has nothing under its sequence number: what follows it under
    the same epoch would be out of order."""
    h = TransactionHarness(level=1, linger_ms=0)
    h.begin()
    h.append("one", to=tp(0))
    h.answer_txn()
    h.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert not h.open, "it is sent again after a pause"
    before = len(h.all(do.InitProducerId))
    h.post(ev.AbortRequested(12, FOREVER))
    assert h.failed.keys() == {1}
    h.answer_txn()
    assert 12 in h.tickets
    (asked,) = h.all(do.InitProducerId)[before:]
    assert asked.producer == ProducerId(7, 0), "the coordinator raises our own epoch"
    h.begin(13)
    h.append("two", to=tp(0))
    h.answer_txn()
    h.advance(100)
    h.answer_txn()
    batch = h.batch()
    assert (batch.producer, batch.first) == (ProducerId(8, 0), 0)


def test_out_of_order_at_the_head_ends_the_transaction() -> None:
    h = TransactionHarness()
    h.begin()
    h.send("one")
    h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert h.failed.keys() == {1}
    h.post(ev.CommitRequested(11, FOREVER))
    assert isinstance(h.refused[11], TransactionAborted)


def test_closing_aborts_what_is_open() -> None:
    h = TransactionHarness(linger_ms=10_000)
    h.begin()
    h.append("one")
    h.post(ev.CloseRequested(14, h.now + 1_000))
    h.answer_txn()
    assert h.failed.keys() == {1}
    assert 14 in h.tickets


@pytest.mark.parametrize("level", [1, 2])
def test_the_deadline_of_closing_holds_in_a_transaction(level: int) -> None:
    h = TransactionHarness(level, linger_ms=0)
    h.begin()
    h.append("one")
    h.answer_txn()
    assert h.open
    h.post(ev.CloseRequested(14, h.now + 1_000))
    h.advance(1_000)
    assert h.failed.keys() == {1}
    assert 14 in h.tickets


def test_a_commit_that_waits_for_a_record_tells_what_keeps_it() -> None:
    h = TransactionHarness()
    h.begin()
    h.send("one")
    h.answer(ErrorCode.UNKNOWN_TOPIC_ID)
    h.post(ev.CommitRequested(11, h.now + 1_000))
    h.advance(1_000)
    assert "t-0: " in str(h.refused[11])
    assert "UNKNOWN_TOPIC_ID" in str(h.refused[11])


def test_a_commit_in_doubt_when_the_producer_is_closed_needs_another_producer() -> None:
    h = TransactionHarness()
    h.begin()
    h.send("one")
    h.answer()
    h.post(ev.CommitRequested(11, FOREVER))
    assert h.all(do.EndTransaction)
    h.post(ev.CloseRequested(14, h.now + 1_000))
    h.advance(1_000)
    assert isinstance(h.refused[11], CommitInDoubt)
    assert "make a new producer" in str(h.refused[11])
    assert "commit_transaction" not in str(h.refused[11])
