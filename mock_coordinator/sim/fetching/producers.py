"""Who writes: plain batches, large ones, and transactions that commit, abort, or stay open."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from kip848_client.core.types import TopicPartition
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from kip848_client.core.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnRequestAddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
)
from mock_coordinator.core.logs.batch_writer import NewRecord, encode_batch
from mock_coordinator.sim.fetching.brokers import Brokers
from mock_coordinator.sim.fetching.context import FetchContext

__all__ = ["Producers"]

_PRODUCE: Final = 11
"""Transactions of the first kind: partitions are announced, epochs stay (before KIP-890)."""
_ADD_PARTITIONS: Final = 3
_END: Final = 4
_INIT: Final = 4
_TRANSACTIONAL: Final = 0x10
_TRANSACTION_TIMEOUT_MS: Final = 30_000
_RECORDS_MAX: Final = 6


@dataclass(slots=True)
class _Transaction:
    name: str
    producer_id: int
    epoch: int
    sequences: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    is_open: bool = False
    is_broken: bool = False


class Producers:
    """All of them. ``written`` counts the records."""

    def __init__(self, context: FetchContext, brokers: Brokers) -> None:
        self._context = context
        self._brokers = brokers
        self._rng: Random = context.kernel.rng("producers")
        self._transactions: list[_Transaction] = []
        self.written = 0

    def write(self) -> None:
        """One batch for one partition, by one producer or another."""
        topics = self._brokers.topics
        if not topics:
            return
        topic = self._rng.choice(topics)
        partition = self._rng.randrange(topic.partitions)
        tp = TopicPartition(topic.name, partition)
        if self._rng.random() < self._context.options.transactional:
            self._write_in_transaction(tp)
        else:
            self._produce(tp, self._batch(self._records()), None)

    def finish(self) -> None:
        """End what is open, as far as that is possible now."""
        for each in self._transactions:
            if each.is_open:
                self._end(each)

    def _records(self) -> list[NewRecord]:
        options, rng = self._context.options, self._rng
        room = 0
        if rng.random() < options.oversized:
            room = min(options.max_partition_bytes, 4_000)
        records: list[NewRecord] = []
        for _ in range(rng.randint(1, _RECORDS_MAX)):
            self.written += 1
            records.append(NewRecord(f"{self.written:06d}".encode().ljust(room, b".")))
        return records

    def _batch(self, records: list[NewRecord], **producer: int) -> bytes:
        return encode_batch(records, self._context.kernel.now_ms, **producer)

    def _produce(self, tp: TopicPartition, batch: bytes, name: str | None) -> int:
        """Returns the error code."""
        data = ProduceRequestPartitionProduceData(index=tp.partition, records=batch)
        topic = ProduceRequestTopicProduceData(name=tp.topic, partition_data=(data,))
        request = ProduceRequest(
            transactional_id=name, acks=-1, timeout_ms=1_000, topic_data=(topic,)
        )
        response = self._brokers.operate(request, _PRODUCE)
        row = response.responses[0].partition_responses[0]
        error = f" !{row.error_code}" if row.error_code else ""
        who = "" if name is None else f" {name}"
        self._context.tell("producer", "write", f"{tp.topic}-{tp.partition}{who}{error}")
        return int(row.error_code)

    # -- transactions ------------------------------------------------------------------------

    def _write_in_transaction(self, tp: TopicPartition) -> None:
        rng = self._rng
        transaction = self._some_transaction()
        if transaction is None:
            return
        if transaction.is_open and rng.random() < 0.3:
            self._end(transaction)
            return
        if not self._add(transaction, tp):
            return
        records = self._records()
        sequence = transaction.sequences.get(tp, 0)
        batch = self._batch(
            records,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            base_sequence=sequence,
            attributes=_TRANSACTIONAL,
        )
        if self._produce(tp, batch, transaction.name):
            transaction.is_broken = True
            self._end(transaction)
        else:
            transaction.sequences[tp] = sequence + len(records)

    def _some_transaction(self) -> _Transaction | None:
        self._transactions = [t for t in self._transactions if t.is_open or not t.is_broken]
        if len(self._transactions) < 2 or self._rng.random() < 0.05:
            return self._begin()
        return self._rng.choice(self._transactions)

    def _begin(self) -> _Transaction | None:
        name = f"x{self._rng.getrandbits(32):08x}"
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=(name,))
        self._brokers.operate(find, 4)
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS
        )
        response = self._brokers.operate(request, _INIT)
        if response is None or response.error_code:
            return None
        transaction = _Transaction(name, response.producer_id, response.producer_epoch)
        self._transactions.append(transaction)
        return transaction

    def _add(self, transaction: _Transaction, tp: TopicPartition) -> bool:
        topic = AddPartitionsToTxnRequestAddPartitionsToTxnTopic(
            name=tp.topic, partitions=(tp.partition,)
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transaction.name,
            v3_and_below_producer_id=transaction.producer_id,
            v3_and_below_producer_epoch=transaction.epoch,
            v3_and_below_topics=(topic,),
        )
        response: Any = self._brokers.operate(request, _ADD_PARTITIONS)
        rows: Any = [] if response is None else response.results_by_topic_v3_and_below
        added = bool(rows) and rows[0].results_by_partition[0].partition_error_code == 0
        transaction.is_open = transaction.is_open or added
        return added

    def _end(self, transaction: _Transaction) -> None:
        committed = not transaction.is_broken and self._rng.random() < 0.6
        request = EndTxnRequest(
            transactional_id=transaction.name,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.epoch,
            committed=committed,
        )
        response = self._brokers.operate(request, _END)
        code = -2 if response is None else response.error_code
        what = "commit" if committed else "abort"
        self._context.tell("producer", what, f"{transaction.name}{f' !{code}' if code else ''}")
        self._context.probes.reached("a transaction aborted" if not committed else "a commit")
        if code == 0:
            transaction.is_open = False
