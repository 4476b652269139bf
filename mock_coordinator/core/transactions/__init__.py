"""Transactions: the coordinator that decides about them, and what partitions make of it."""

from __future__ import annotations

from mock_coordinator.core.transactions.coordinator import TransactionCoordinator
from mock_coordinator.core.transactions.environment import Environment
from mock_coordinator.core.transactions.journal import TransactionJournal
from mock_coordinator.core.transactions.records import TransactionLog, TransactionMetadata

__all__ = [
    "Environment",
    "TransactionCoordinator",
    "TransactionJournal",
    "TransactionLog",
    "TransactionMetadata",
]
