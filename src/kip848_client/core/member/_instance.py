"""The holder of our ``group.instance.id`` when the coordinator reports it as taken."""

from __future__ import annotations

__all__ = ["InstanceClaim"]


class InstanceClaim:
    """UNRELEASED_INSTANCE_ID at a join: could the holder be this very member?

    The answer to an earlier join, or to a leave, may have been lost. Then waiting helps: the old
    session expires. ``limit_ms`` bounds the wait.
    """

    def __init__(self, limit_ms: int) -> None:
        self._limit_ms = limit_ms
        self._refused_since_ms: int | None = None
        self.may_be_ours = False
        """An earlier heartbeat of this member was accepted, or may have been. Outlives a
        membership."""

    def accepted(self) -> None:
        """Note an accepted join: this member holds the id."""
        self.may_be_ours = True
        self._refused_since_ms = None

    def refused(self, now_ms: int) -> bool:
        """Note that another member holds the id; returns whether the wait has exceeded its
        limit."""
        if self._refused_since_ms is None:
            self._refused_since_ms = now_ms
        return now_ms >= self._refused_since_ms + self._limit_ms
