"""Transactions in a broker: the coordinator, the leaders of partitions, the group coordinators.

Theory of operation
===================

All requests about transactions arrive here. Most are for the transaction coordinator alone.
TxnOffsetCommit is for the group coordinator, after the transaction has been verified as for
Produce. After every step the endings that the coordinator decided are carried out: markers are
written to all partitions, and the transactions are complete. Real brokers do this in the
background; here a client sees a transaction between the two halves of its end only while one of its
partitions has no leader.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from kip848_client.core.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.offsets.transactional import needs_transaction, refuse_txn_commit
from mock_coordinator.core.groups.service.shards import GroupShards
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.topics.topic_names import TRANSACTIONS_TOPIC
from mock_coordinator.core.transaction_coordinator.coordinator import TransactionCoordinator
from mock_coordinator.core.transaction_coordinator.environment import Ending, Environment
from mock_coordinator.core.transaction_coordinator.state import TransactionsState
from mock_coordinator.core.transactions.markers import write_ending
from mock_coordinator.core.transactions.verification import must_verify, told_to_groups

if TYPE_CHECKING:
    from kip848_client.core.wire._fields import Message

__all__ = ["Transactions"]

_ADDS_SINCE: Final = 5
"""TxnOffsetCommit adds the group's partition to the transaction from this version on (KIP-890)."""
_ABORTABLE_SINCE: Final = 4
"""TRANSACTION_ABORTABLE is known from this version of TxnOffsetCommit on."""


class Transactions:
    """The transactions of a cluster. ``broker`` is any of its nodes; ``now_ms`` is when it
    starts."""

    def __init__(self, broker: Broker, groups: GroupShards, now_ms: int) -> None:
        self._broker: Final = broker
        self._groups: Final = groups
        environment = Environment(
            profile=broker.profile,
            config=broker.config,
            catalog=broker.catalog,
            state=TransactionsState(broker.disk.transactions.partition_of),
            new_producer_id=broker.disk.new_producer_id,
        )
        self.coordinator: Final = TransactionCoordinator(
            environment,
            broker.disk.transactions,
            now_ms,
            leader_of=self._leader_of,
            load_ms=self._load_ms,
        )
        self._waiting: Final[dict[str, Ending]] = {}
        self._leaders_seen = -1

    def _leader_of(self, partition: int) -> int | None:
        return self._broker.coordinator_node(partition, TRANSACTIONS_TOPIC)

    def _load_ms(self) -> int:
        return self._groups.load_ms

    def load_all(self, now_ms: int) -> None:
        """Take over what the logs hold: the cluster starts."""
        self.coordinator.load_all(now_ms)

    def leader_changed(self, now_ms: int, partition: int) -> None:
        """A partition of ``__transaction_state`` has another leader, or none any more."""
        for transactional_id in tuple(self._waiting):
            if self.coordinator.partition_of(transactional_id) == partition:
                del self._waiting[transactional_id]
        self.coordinator.leader_changed(now_ms, partition)

    @property
    def deadline_ms(self) -> int | None:
        """When ``run_due`` has something to do."""
        return self.coordinator.deadline_ms

    def run_due(self, now_ms: int) -> None:
        """Do what is due, and end what was decided."""
        if self._waiting and self._leaders_seen != self._broker.disk.leaders.version:
            for ending in tuple(self._waiting.values()):
                self._end(now_ms, ending)
        deadline = self.coordinator.deadline_ms
        if deadline is None or deadline > now_ms:
            return
        self.coordinator.run_due(now_ms)
        while endings := self.coordinator.take_endings():
            for ending in endings:
                self._end(now_ms, ending)

    def _end(self, now_ms: int, ending: Ending) -> None:
        """Write markers. Partitions without a leader get theirs as soon as they have one, and until
        then the transaction is not complete."""
        name = ending.transactional_id
        self._leaders_seen = self._broker.disk.leaders.version
        epoch = self._coordinator_epoch(name)
        left = write_ending(self._broker, self._groups, now_ms, ending, epoch)
        self._waiting.pop(name, None)
        if left:
            self._waiting[name] = replace(ending, partitions=left)
        else:
            self.coordinator.markers_written(now_ms, name)

    def _coordinator_epoch(self, transactional_id: str) -> int:
        topic = self._broker.catalog.topic(TRANSACTIONS_TOPIC)
        partition = self.coordinator.partition_of(transactional_id)
        if topic is None or partition >= topic.partitions:
            return 0
        return self._broker.partition_state(topic, partition).leader_epoch

    def commit_offsets(
        self, now_ms: int, received: RequestReceived, request: TxnOffsetCommitRequest
    ) -> Message | None:
        """Have the group's coordinator store offsets in the producer's transaction."""
        code = self._unverified(now_ms, received, request)
        if code:
            return refuse_txn_commit(self._broker.catalog, received.version, request, code)
        return self._groups.handle(now_ms, received)

    def _unverified(
        self, now_ms: int, received: RequestReceived, request: TxnOffsetCommitRequest
    ) -> ErrorCode:
        """Why the group coordinator may not write these offsets in the producer's transaction."""
        producer = (request.producer_id, request.producer_epoch)
        group_id = request.group_id
        if not group_id or not self._groups.serves(group_id, received.node_id):
            return ErrorCode.NONE  # the group coordinator will refuse
        if not needs_transaction(self._broker.catalog, received.version, request):
            return ErrorCode.NONE
        fenced_unasked = self._broker.profile.older_epoch_fenced_unasked
        journal = self._broker.disk.journal(self._groups.partition_of(group_id))
        if fenced_unasked and journal.log.producers.has_seen_newer(*producer):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if not must_verify(self._broker) or self._groups.has_open_transaction(group_id, *producer):
            return ErrorCode.NONE
        partition = self.coordinator.offsets_partition_of(group_id)
        answers = self.coordinator.verify(
            now_ms,
            request.transactional_id,
            producer,
            (partition,),
            add=received.version >= _ADDS_SINCE,
        )
        knows_abortable = received.version >= _ABORTABLE_SINCE
        return told_to_groups(answers[partition], knows_abortable=knows_abortable)
