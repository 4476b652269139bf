"""Reactions to error codes of OffsetCommit: one table, and which kinds of commit are retried."""

from __future__ import annotations

from enum import Enum
from typing import Final

from kip848_client.core.offsets._kinds import CommitKind
from kip848_client.error_codes import ErrorCode

__all__ = ["RULES", "Reaction", "is_retried", "reaction"]


class Reaction(Enum):
    """What to do about refused partitions."""

    RETRY = "the same again, later"
    REDISCOVER = "the same again, when the coordinator was looked up"
    NEXT_EPOCH = "the same again, when a heartbeat has told the member's epoch"
    TOPIC = "the same again, later: the broker may not have heard of the topic yet"
    FAIL = "their offsets are not stored"


RULES: Final[dict[int, Reaction]] = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    ErrorCode.REQUEST_TIMED_OUT: Reaction.REDISCOVER,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.REDISCOVER,
    ErrorCode.NOT_COORDINATOR: Reaction.REDISCOVER,
    ErrorCode.STALE_MEMBER_EPOCH: Reaction.NEXT_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.TOPIC,
    ErrorCode.UNKNOWN_TOPIC_ID: Reaction.TOPIC,
}
"""All other codes fail: a retry would give the same error."""


def reaction(code: int) -> Reaction:
    """Return the reaction to this error code."""
    return RULES.get(code, Reaction.FAIL)


def is_retried(kind: CommitKind, found: Reaction) -> bool:
    """Whether a commit of this kind is retried. A commit by interval is not, because the next one
    will do; before a revocation, none waits for a topic, which may never appear. ``NEXT_EPOCH``
    applies only to a member that still owns the partition: the committer checks that."""
    match kind:
        case CommitKind.INTERVAL:
            return False
        case CommitKind.MANUAL:
            return found in (Reaction.RETRY, Reaction.REDISCOVER, Reaction.TOPIC)
        case CommitKind.REVOCATION:
            return found in (Reaction.RETRY, Reaction.REDISCOVER)
