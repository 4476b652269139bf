"""What a decision about transactions needs besides the request, and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.core.topics.catalog import Catalog
from mock_coordinator.core.transaction_coordinator.records import (
    NO_PRODUCER_EPOCH,
    TransactionMetadata,
    TxnPartition,
)
from mock_coordinator.core.transaction_coordinator.state import TransactionEntry, TransactionsState

__all__ = ["Change", "Decision", "Ending", "Environment"]

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Environment:
    """Everything that a decision may read. ``new_producer_id`` gives ids that were never given
    out."""

    profile: Profile
    config: BrokerConfig
    catalog: Catalog
    state: TransactionsState
    new_producer_id: Callable[[], int]

    def entry(self, transactional_id: str, producer_id: int) -> TransactionEntry:
        """The transactional id, if it is this producer's. Raises ``Refused`` with
        INVALID_REQUEST or INVALID_PRODUCER_ID_MAPPING."""
        if not transactional_id:
            raise Refused(ErrorCode.INVALID_REQUEST)
        entry = self.state.get(transactional_id)
        if entry is None or entry.value.producer_id != producer_id:
            raise Refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return entry


@dataclass(frozen=True, slots=True)
class Change:
    """A transactional id is to become this; ``None`` forgets it."""

    transactional_id: str
    value: TransactionMetadata | None
    last_producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class Decision(Generic[R_co]):
    """The answer to a request, and the change that comes before it."""

    response: R_co
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """Markers to be written: a transaction whose outcome is decided."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: tuple[TxnPartition, ...]
