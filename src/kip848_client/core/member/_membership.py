"""The state of one membership, dropped when it ends.

A membership begins with a join and ends with a leave, a fence or a fatal error. ``MemberCore`` then
replaces the whole value: the answer to a request of the old membership matches no open request, and
counts as stale.
"""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.member._states import MemberState

__all__ = ["Membership", "OpenHeartbeat"]


@dataclass(frozen=True, slots=True)
class OpenHeartbeat:
    """The heartbeat whose answer counts for the current membership."""

    number: int
    member_epoch: int
    sent_ms: int


@dataclass(slots=True)
class Membership:
    """The current membership, or the attempt to get one."""

    open: OpenHeartbeat | None = None
    """The heartbeat in flight."""
    join_was_sent: bool = False
    """Whether the coordinator may know of this membership, so that a leave must be sent."""
    expedite: bool = False
    """The next heartbeat does not wait for the interval: a commit needs the newest epoch, or the
    subscription changed."""
    retry_on_poll: bool = False
    """A callback failed: the reconciliation is repeated when the application polls."""

    session_until_ms: int | None = None
    """When the coordinator may have fenced this member, if it has not received a heartbeat
    since."""

    def sent(self, heartbeat: OpenHeartbeat) -> None:
        """Note a heartbeat sent for this membership."""
        self.open = heartbeat
        self.join_was_sent = True
        self.expedite = False

    def accepted(self, heartbeat: OpenHeartbeat, session_timeout_ms: int | None) -> None:
        """Handle an accepted heartbeat. The session was renewed when it was sent or later."""
        if session_timeout_ms is not None:
            self.session_until_ms = heartbeat.sent_ms + session_timeout_ms

    def is_over(self, now_ms: int) -> bool:
        """Whether the session may have expired without our knowledge."""
        return self.session_until_ms is not None and now_ms >= self.session_until_ms

    def is_urgent(self, state: MemberState) -> bool:
        """Whether the next heartbeat skips the interval."""
        return self.expedite or state in (MemberState.JOINING, MemberState.ACKNOWLEDGING)
