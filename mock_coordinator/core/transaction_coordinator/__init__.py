"""The transaction coordinator and its records."""

from __future__ import annotations

from mock_coordinator.core.transaction_coordinator.coordinator import TransactionCoordinator
from mock_coordinator.core.transaction_coordinator.environment import Environment
from mock_coordinator.core.transaction_coordinator.records import (
    TransactionLog,
    TransactionMetadata,
)

__all__ = [
    "Environment",
    "TransactionCoordinator",
    "TransactionLog",
    "TransactionMetadata",
]
