"""The origin of a commit."""

from __future__ import annotations

from enum import Enum

__all__ = ["CommitKind"]


class CommitKind(Enum):
    """The origin of a commit; decides what is retried."""

    MANUAL = "manual"
    """The user's ``commit()``: retried until its deadline."""
    INTERVAL = "interval"
    """``auto.commit.interval.ms``: never retried, the next interval will do."""
    REVOCATION = "revocation"
    """Before partitions are released (and on close): retried, but not for unknown topics."""
