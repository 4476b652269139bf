"""Transactions in a broker: the coordinator, the leaders of partitions, the group coordinators.

Theory of operation
===================

Requests about transactions come here. Most are the transaction coordinator's alone. A
TxnOffsetCommit is the group coordinator's, after the transaction has been verified as for a
Produce. After every step the endings that the coordinator decided are carried out: markers are
written to all partitions, and the transactions are complete. So a client never sees a transaction
between the two halves of its end, as it may on a real broker, which writes markers in the
background; unless a crash came between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kip848_client.wire import ErrorCode
from kip848_client.wire.messages.transaction_admin import (
    DescribeProducersRequest,
    WriteTxnMarkersRequest,
)
from kip848_client.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from mock_coordinator.core.broker import Broker
from mock_coordinator.core.groups.shards import GroupShards
from mock_coordinator.core.groups.txn_offsets import refuse_txn_commit
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.topic_names import TRANSACTIONS_TOPIC
from mock_coordinator.core.transactions.coordinator import TransactionCoordinator
from mock_coordinator.core.transactions.environment import Environment
from mock_coordinator.core.transactions.markers import (
    describe_producers,
    write_ending,
    write_txn_markers,
)
from mock_coordinator.core.transactions.state import TransactionsState
from mock_coordinator.core.transactions.verification import must_verify, translated

if TYPE_CHECKING:
    from kip848_client.wire._fields import Message

__all__ = ["TRANSACTION_KEYS", "Transactions"]

TRANSACTION_KEYS: Final = frozenset({22, 24, 25, 26, 27, 28, 61, 65, 66})
"""The API keys that are served here."""

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
            state=TransactionsState(),
            new_producer_id=broker.disk.new_producer_id,
        )
        self.coordinator: Final = TransactionCoordinator(
            environment, broker.disk.transactions, now_ms, problem=self._problem
        )

    def handle(self, now_ms: int, broker: Broker, received: RequestReceived) -> Message | None:
        """Answer one request of ``TRANSACTION_KEYS``; ``broker`` is the node that it reached."""
        request: Any = received.request
        if isinstance(request, TxnOffsetCommitRequest):
            return self._txn_offset_commit(now_ms, received, request)
        if isinstance(request, WriteTxnMarkersRequest):
            return write_txn_markers(broker, self._groups, now_ms, request)
        if isinstance(request, DescribeProducersRequest):
            return describe_producers(broker, now_ms, request)
        return self.coordinator.handle(now_ms, received)

    @property
    def deadline_ms(self) -> int | None:
        """When ``run_due`` has something to do."""
        return self.coordinator.deadline_ms

    def run_due(self, now_ms: int) -> None:
        """Do what is due, and end what was decided."""
        deadline = self.coordinator.deadline_ms
        if deadline is None or deadline > now_ms:
            return
        self.coordinator.run_due(now_ms)
        while endings := self.coordinator.take_endings():
            for ending in endings:
                write_ending(self._broker, self._groups, now_ms, ending)
                self.coordinator.markers_written(now_ms, ending.transactional_id)

    def _problem(self, transactional_id: str, node_id: int | None) -> ErrorCode | None:
        """Why a node does not serve a transactional id."""
        partition = self.coordinator.partition_of(transactional_id)
        leader = self._broker.coordinator_node(partition, TRANSACTIONS_TOPIC)
        if leader is None or node_id not in (None, leader):
            return ErrorCode.NOT_COORDINATOR
        return None

    def _txn_offset_commit(
        self, now_ms: int, received: RequestReceived, request: TxnOffsetCommitRequest
    ) -> Message | None:
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
        fenced_unasked = self._broker.profile.older_epoch_fenced_unasked
        if fenced_unasked and self._groups.has_seen_newer(group_id, *producer):
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
        return translated(answers[partition], knows_abortable=knows_abortable)[0]
