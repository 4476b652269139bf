"""Data types of exactly-once processing: settings, states, and portions of records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kip848_client.core.types import TopicPartition

__all__ = ["Portion", "ProcessorSettings", "State"]


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """The settings of the core. ``ExactlyOnceProcessor`` explains those that users set."""

    max_records: int = 500
    """The limit for one transaction."""
    commit_interval_ms: int = 100
    """How long a transaction with records stays open for more."""
    dead_letters: bool = False
    """Whether records that the function cannot process go to a dead-letter topic."""
    revocation_patience_ms: int = 150_000
    """How long a transaction may take to end after the group has revoked a partition; then it is
    aborted."""
    poll_wait_ms: int = 1_000
    """How long a poll waits while no transaction is open."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    """The longest pause between attempts that fail in a row."""


class State(Enum):
    """The state of a processor's transaction.

    ::

        IDLE -> BEGINNING -> OPEN -> SENDING_OFFSETS -> COMMITTING -> IDLE
                               |            |               |
                               +------------+---------------+-> ABORTING -> rewind -> IDLE
        from anywhere: ENDED
    """

    IDLE = "IDLE"
    """No transaction is open. Only in this state are partitions given up whose records were in
    one."""
    BEGINNING = "BEGINNING"
    OPEN = "OPEN"
    """It takes outputs: records are read and processed."""
    SENDING_OFFSETS = "SENDING_OFFSETS"
    COMMITTING = "COMMITTING"
    """The commit is requested, repeatedly while its result is in doubt. Only an answer ends this
    state."""
    ABORTING = "ABORTING"
    """The records of the transaction are then read again."""
    ENDED = "ENDED"
    """``run`` has returned or raised. No transition leads out of this state."""


class Portion(NamedTuple):
    """Consecutive fetched records of a partition."""

    partition: TopicPartition
    first: int
    """The offset of the first record."""
    until: int
    """The offset of the last record, plus 1."""
    records: int
    """The number of records; it may be less than the range, because offsets may have gaps."""
