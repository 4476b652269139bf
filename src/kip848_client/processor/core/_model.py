"""The nouns of processing exactly once: settings, states, runs of records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kip848_client.core.types import TopicPartition

__all__ = ["Portion", "ProcessorSettings", "State"]


@dataclass(frozen=True, slots=True)
class ProcessorSettings:
    """What the core has to know; see ``ExactlyOnceProcessor`` for what the user sets of it."""

    max_records: int = 500
    """Of one transaction."""
    commit_interval_ms: int = 100
    """How long a transaction that has records stays open for more."""
    dead_letters: bool = False
    """Records that the function cannot process go to a topic of their own."""
    revocation_patience_ms: int = 150_000
    """How long a transaction may take to its end after the group has asked for a partition back;
    then it is aborted."""
    poll_wait_ms: int = 1_000
    """How long a poll waits while no transaction is open."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    """Between attempts that fail one after the other."""


class State(Enum):
    """Where the transaction of a processor is.

    ::

        IDLE -> BEGINNING -> OPEN -> SENDING_OFFSETS -> COMMITTING -> IDLE
                               |            |               |
                               +------------+---------------+-> ABORTING -> rewind -> IDLE
        from anywhere: ENDED
    """

    IDLE = "IDLE"
    """None is open. The only state in which partitions are given up that had records in one."""
    BEGINNING = "BEGINNING"
    OPEN = "OPEN"
    """It takes outputs: records are read and processed."""
    SENDING_OFFSETS = "SENDING_OFFSETS"
    COMMITTING = "COMMITTING"
    """Asked for, and asked for again for as long as the outcome is in doubt. Nothing but an answer
    leads out of it."""
    ABORTING = "ABORTING"
    """Then what it had read is read again."""
    ENDED = "ENDED"
    """``run`` has returned or raised. Nothing leads out of it."""


class Portion(NamedTuple):
    """Records that are in hand and follow each other in a partition."""

    partition: TopicPartition
    first: int
    """The offset of the first one."""
    until: int
    """The offset of the last one, plus 1."""
    records: int
    """How many: offsets may have gaps."""
