"""Whose wish a commit is, and which refusals it is tried again after."""

from __future__ import annotations

from enum import Enum
from typing import Final, assert_never

from kip848_client.error_codes import ErrorCode

__all__ = ["COORDINATOR_MOVED", "CommitKind", "is_retried"]

COORDINATOR_MOVED: Final = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""The coordinator has to be looked up again."""
_UNKNOWN_TOPIC: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}
)
"""Metadata may catch up, or never will."""


class CommitKind(Enum):
    """Whose wish a commit is; decides what is retried."""

    MANUAL = "manual"
    """The user's ``commit()``: retried until its deadline."""
    INTERVAL = "interval"
    """``auto.commit.interval.ms``: never retried, the next interval will do."""
    REVOCATION = "revocation"
    """Before partitions are given up (and on close): retried, but not for unknown topics."""


def is_retried(kind: CommitKind, code: int) -> bool:
    """Whether another attempt may help a wish of this kind."""
    match kind:
        case CommitKind.INTERVAL:
            return False
        case CommitKind.MANUAL:
            return (
                code in COORDINATOR_MOVED
                or code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                or code in _UNKNOWN_TOPIC
            )
        case CommitKind.REVOCATION:
            return code in COORDINATOR_MOVED or code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        case _:
            assert_never(kind)
