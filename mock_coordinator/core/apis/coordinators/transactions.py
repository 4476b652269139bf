"""APIs of transactions: those of the transaction coordinator, and those of partition leaders."""

from __future__ import annotations

from typing import Any

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kip848_client.core.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.transactions.markers import describe_producers, write_txn_markers

__all__ = ["commit_in_transaction", "coordinate_transaction", "tell_producers", "write_markers"]


def coordinate_transaction(call: ApiCall[Any]) -> Message:
    """Ask the coordinator of the transactional id."""
    return call.services.transactions.coordinator.handle(call.now_ms, call.received)


def commit_in_transaction(call: ApiCall[TxnOffsetCommitRequest]) -> Message | None:
    """Ask the group's coordinator, after the transaction was verified."""
    transactions = call.services.transactions
    return transactions.commit_offsets(call.now_ms, call.received, call.request)


def write_markers(call: ApiCall[WriteTxnMarkersRequest]) -> WriteTxnMarkersResponse:
    """Write the markers of another broker, or of an administrator."""
    return write_txn_markers(call.broker, call.services.groups, call.now_ms, call.request)


def tell_producers(call: ApiCall[DescribeProducersRequest]) -> DescribeProducersResponse:
    """Who wrote to partitions lately (KIP-664)."""
    return describe_producers(call.broker, call.request)
