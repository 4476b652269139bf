"""What belongs to one membership, and is gone when it ends.

A membership begins with a join and ends with a leave, a fence or a fatal error. ``MemberCore``
replaces the whole value then: the answer to a question of the old membership finds no open
question, and counts as stale.
"""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.member._states import MemberState

__all__ = ["Membership", "OpenHeartbeat"]


@dataclass(frozen=True, slots=True)
class OpenHeartbeat:
    """The heartbeat whose answer counts for the present membership."""

    number: int
    member_epoch: int
    sent_ms: int


@dataclass(slots=True)
class Membership:
    """The present membership, or the attempt to get one."""

    open: OpenHeartbeat | None = None
    """The heartbeat that is under way."""
    join_was_sent: bool = False
    """Whether the coordinator may know of this membership, so that a leave must be sent."""
    expedite: bool = False
    """The next heartbeat does not wait for the interval: a commit needs the newest epoch, or the
    subscription changed."""
    retry_on_poll: bool = False
    """A callback failed: the reconciliation is repeated when the application polls."""

    session_until_ms: int | None = None
    """When the coordinator may have put this member out, if it has not heard of it since."""

    def sent(self, heartbeat: OpenHeartbeat) -> None:
        """A heartbeat of this membership went out."""
        self.open = heartbeat
        self.join_was_sent = True
        self.expedite = False

    def accepted(self, heartbeat: OpenHeartbeat, session_timeout_ms: int | None) -> None:
        """The coordinator took it. Its session began anew not before the heartbeat was sent."""
        if session_timeout_ms is not None:
            self.session_until_ms = heartbeat.sent_ms + session_timeout_ms

    def is_over(self, now_ms: int) -> bool:
        """Whether its session may have ended unheard."""
        return self.session_until_ms is not None and now_ms >= self.session_until_ms

    def is_urgent(self, state: MemberState) -> bool:
        """Whether the next heartbeat skips the interval."""
        return self.expedite or state in (MemberState.JOINING, MemberState.ACKNOWLEDGING)
