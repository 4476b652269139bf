"""Transactional and idempotent producers as their clients see them, and their requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from kip848_client.core.wire.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from kip848_client.core.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnRequestAddPartitionsToTxnTopic,
    AddPartitionsToTxnRequestAddPartitionsToTxnTransaction,
    EndTxnRequest,
    InitProducerIdRequest,
)
from kip848_client.core.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.differential._sequence_state import ABSENT_TOPIC, SequenceState
from tests.differential._steps import Ask, AwaitValue, Topic

__all__ = [
    "Producer",
    "add_offsets",
    "add_partitions",
    "describe_producers",
    "describe_transactions",
    "end",
    "init",
    "list_transactions",
    "settled",
    "txn_commit",
]

SETTLED: Final = ("CompleteCommit", "CompleteAbort", "Empty", "Dead", "")
_TIMEOUT_MS: Final = 120_000
_BATCHED_FROM: Final = 4


@dataclass(slots=True)
class Producer:
    """``sequences`` are the next ones, by (topic, partition); ``is_second`` for a producer of
    transactions version 2, where EndTxn moves the epoch and writing adds partitions."""

    transactional_id: str | None
    producer_id: int = -1
    epoch: int = -1
    sequences: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    is_open: bool = False
    is_second: bool = True

    def next_sequence(self, topic: str, partition: int) -> int:
        return self.sequences.get((topic, partition), 0)

    def started(self, answer: Any) -> None:
        """InitProducerId was answered."""
        if answer.error_code == 0:
            self.producer_id = answer.producer_id
            self.epoch = answer.producer_epoch
            self.sequences.clear()
            self.is_open = False

    def ended(self, answer: Any, version: int) -> None:
        """EndTxn was answered."""
        if answer.error_code == 0:
            self.is_open = False
            if version >= 5 and answer.producer_id >= 0:
                if (answer.producer_id, answer.producer_epoch) != (self.producer_id, self.epoch):
                    self.sequences.clear()
                self.producer_id = answer.producer_id
                self.epoch = answer.producer_epoch


def _identity(state: SequenceState, producer: Producer) -> tuple[int, int]:
    """The producer's id and epoch; now and then wrong."""
    rng = state.rng
    if rng.random() < 0.92:
        return producer.producer_id, producer.epoch
    others = [
        (producer.producer_id, producer.epoch - 1),
        (producer.producer_id, producer.epoch + 1),
        (producer.producer_id + 1_000_000, producer.epoch),
        (-1, -1),
    ]
    found: tuple[int, int] = rng.choice(others)
    return found


def init(state: SequenceState, producer: Producer) -> Ask:
    """Get an id and an epoch, the first ones or higher ones."""
    rng = state.rng
    low, high = state.offered["InitProducerId"]
    version = rng.randint(low, min(5, high))
    message = InitProducerIdRequest(
        transactional_id=producer.transactional_id,
        transaction_timeout_ms=rng.choice([_TIMEOUT_MS] * 12 + [0, -1, 900_001]),
    )
    if version >= 3 and producer.producer_id >= 0 and rng.random() < 0.5:
        message.producer_id, message.producer_epoch = _identity(state, producer)
    if rng.random() < 0.03:
        message.transactional_id = ""
    return state.ask("init", message, version)


def add_partitions(state: SequenceState, producer: Producer, topics: list[Topic]) -> Ask:
    """Announce what will be written to."""
    rng = state.rng
    low, high = state.offered["AddPartitionsToTxn"]
    producer_id, epoch = _identity(state, producer)
    chosen = [
        AddPartitionsToTxnRequestAddPartitionsToTxnTopic(
            name=topic.name,
            partitions=tuple(rng.sample(range(topic.partitions), rng.randint(1, topic.partitions))),
        )
        for topic in rng.sample(topics, rng.randint(1, len(topics)))
    ]
    if rng.random() < 0.08:
        unknown = AddPartitionsToTxnRequestAddPartitionsToTxnTopic(
            name=ABSENT_TOPIC, partitions=(0,)
        )
        chosen.append(unknown)
    version = rng.randint(low, min(high, 3))
    message = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=str(producer.transactional_id),
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=tuple(chosen),
    )
    if high >= _BATCHED_FROM and rng.random() < 0.2:
        version = rng.randint(_BATCHED_FROM, high)
        one = AddPartitionsToTxnRequestAddPartitionsToTxnTransaction(
            transactional_id=str(producer.transactional_id),
            producer_id=producer_id,
            producer_epoch=epoch,
            verify_only=rng.random() < 0.5,
            topics=tuple(chosen),
        )
        message = AddPartitionsToTxnRequest(transactions=(one,))
    return state.ask("add-partitions", message, version)


def add_offsets(state: SequenceState, producer: Producer, group_id: str) -> Ask:
    """Announce that a group's offsets will be committed."""
    producer_id, epoch = _identity(state, producer)
    message = AddOffsetsToTxnRequest(
        transactional_id=str(producer.transactional_id),
        producer_id=producer_id,
        producer_epoch=epoch,
        group_id=group_id if state.rng.random() < 0.97 else "",
    )
    return state.ask("add-offsets", message)


def txn_commit(
    state: SequenceState,
    producer: Producer,
    group_id: str,
    member: tuple[str, int, str | None],
    topics: list[Topic],
) -> Ask:
    """Commit offsets of a group in the transaction. ``member`` is (id, epoch, instance id)."""
    rng = state.rng
    version = state.version("TxnOffsetCommit")
    producer_id, epoch = _identity(state, producer)
    listed = [
        TxnOffsetCommitRequestTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                TxnOffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=rng.randrange(100),
                    committed_metadata=rng.choice([None, "", "note", "x" * 4097]),
                )
                for number in rng.sample(range(topic.partitions), 1)
            ),
        )
        for topic in rng.sample(topics, rng.randint(1, len(topics)))
    ]
    if rng.random() < 0.06:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_metadata="")
        listed.append(
            TxnOffsetCommitRequestTopic(
                name=ABSENT_TOPIC, topic_id=b"\x07" * 16, partitions=(partition,)
            )
        )
    message = TxnOffsetCommitRequest(
        transactional_id=str(producer.transactional_id),
        group_id=group_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=tuple(listed),
    )
    if version >= 3:
        message.member_id, message.generation_id_or_member_epoch, instance_id = member
        message.group_instance_id = instance_id
    return state.ask("txn-commit", message, version)


def end(state: SequenceState, producer: Producer) -> Ask:
    """Commit or abort; in the version of transactions that the producer uses, mostly."""
    rng = state.rng
    low, high = state.offered["EndTxn"]
    producer_id, epoch = _identity(state, producer)
    version = rng.randint(min(5, high), high) if producer.is_second else rng.randint(low, 4)
    message = EndTxnRequest(
        transactional_id=str(producer.transactional_id),
        producer_id=producer_id,
        producer_epoch=epoch,
        committed=rng.random() < 0.6,
    )
    return state.ask("end", message, version)


def settled(producer: Producer) -> AwaitValue:
    """Wait until a transaction that is ending has its markers."""
    message = DescribeTransactionsRequest(transactional_ids=(str(producer.transactional_id),))
    path = "transaction_states.0.transaction_state"
    return AwaitValue("settled", message, 0, path, (*SETTLED, "Ongoing"))


def describe_transactions(state: SequenceState, producers: list[Producer]) -> Ask:
    """Look at transactions, one that does not exist among them at times."""
    ids = [str(each.transactional_id) for each in producers if each.transactional_id]
    if state.rng.random() < 0.2:
        ids.append(f"{state.prefix}-absent")
    if state.rng.random() < 0.1:
        ids.append("")
    message = DescribeTransactionsRequest(transactional_ids=tuple(ids))
    return state.ask("describe-transactions", message)


def list_transactions(state: SequenceState) -> Ask:
    """List transactions by state."""
    rng = state.rng
    states = rng.choice([(), ("Ongoing",), ("Empty", "CompleteCommit"), ("Bogus",)])
    return state.ask("list-transactions", ListTransactionsRequest(state_filters=states))


def describe_producers(state: SequenceState, topics: list[Topic]) -> Ask:
    """Who writes to a partition."""
    topic = state.rng.choice(topics)
    name = topic.name if state.rng.random() < 0.9 else ABSENT_TOPIC
    asked = DescribeProducersRequestTopicRequest(name=name, partition_indexes=(0,))
    return state.ask("describe-producers", DescribeProducersRequest(topics=(asked,)))
