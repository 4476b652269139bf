"""What an error code of OffsetCommit leads to: one table, and whose wish is tried again."""

from __future__ import annotations

from enum import Enum
from typing import Final

from kip848_client.core.offsets._kinds import CommitKind
from kip848_client.error_codes import ErrorCode

__all__ = ["RULES", "Reaction", "is_retried", "reaction"]


class Reaction(Enum):
    """What to do about the partitions that were refused."""

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
"""Everything else is the same the next time: it fails."""


def reaction(code: int) -> Reaction:
    """What this error code leads to."""
    return RULES.get(code, Reaction.FAIL)


def is_retried(kind: CommitKind, found: Reaction) -> bool:
    """Whether a wish of this kind is tried again. An interval's is not, the next will do; before
    partitions are given up nothing waits for a topic, which may never come. ``NEXT_EPOCH`` is for
    who still is a member and has the partition: that is the committer's to know."""
    match kind:
        case CommitKind.INTERVAL:
            return False
        case CommitKind.MANUAL:
            return found in (Reaction.RETRY, Reaction.REDISCOVER, Reaction.TOPIC)
        case CommitKind.REVOCATION:
            return found in (Reaction.RETRY, Reaction.REDISCOVER)
