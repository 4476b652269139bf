"""Reactions to error codes of OffsetFetch: one table.

No error ever counts as "nothing committed": otherwise ``auto_offset_reset`` would decide.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from kip848_client.error_codes import ErrorCode, is_retriable

__all__ = ["RULES", "Reaction", "reaction"]


class Reaction(Enum):
    """What to do."""

    RETRY = "the same again, later"
    REDISCOVER = "the same again, when the coordinator was looked up"
    NEXT_EPOCH = (
        "a heartbeat at once, and the same again when it has told the member's epoch, or that the "
        "member is out of the group: then without one"
    )
    TOPIC = "the same again, later: the broker may not have heard of the topic yet"
    FAIL = "the look-up ends with the error"


RULES: Final[dict[int, Reaction]] = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.REDISCOVER,
    ErrorCode.NOT_COORDINATOR: Reaction.REDISCOVER,
    ErrorCode.UNSTABLE_OFFSET_COMMIT: Reaction.RETRY,
    ErrorCode.STALE_MEMBER_EPOCH: Reaction.NEXT_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: Reaction.TOPIC,
    ErrorCode.UNKNOWN_TOPIC_ID: Reaction.TOPIC,
    ErrorCode.UNKNOWN_MEMBER_ID: Reaction.NEXT_EPOCH,
}
"""All other codes are retried if Kafka calls them retriable."""


def reaction(code: int) -> Reaction:
    """Return the reaction to this error code."""
    return RULES.get(code, Reaction.RETRY if is_retriable(code) else Reaction.FAIL)
