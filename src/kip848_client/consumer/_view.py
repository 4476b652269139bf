"""What a user may see of the membership."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client._types import TopicPartition
from kip848_client.consumer._supervisor import Supervisor
from kip848_client.errors import Kip848Error
from kip848_client.member import MemberState

__all__ = ["MemberView", "view_of"]


@dataclass(frozen=True, slots=True)
class MemberView:
    """A membership at one moment."""

    member_id: str
    member_epoch: int
    """0 while joining, the coordinator's number in the group, negative once it left."""
    state: MemberState
    """``FATAL`` for whatever ended the membership: no heartbeat is sent any more."""
    assigned: tuple[TopicPartition, ...]
    coordinator_known: bool
    coordinator_silent_ms: int
    """How long no heartbeat was answered although one is wanted; 0 when all is well."""
    heartbeat_interval_ms: int
    heartbeats_sent: int
    heartbeats_answered: int
    last_heartbeat_age_ms: int | None
    """Since the last answered heartbeat; ``None`` before the first."""
    consecutive_fences: int
    fatal_error: Kip848Error | None
    """What ended the membership, and is raised by every call; ``None`` while it lives."""


def view_of(supervisor: Supervisor, now_ms: int, fatal: Kip848Error | None) -> MemberView:
    """The membership that ``supervisor`` drives, or drove until ``fatal`` happened."""
    seen = supervisor.member.snapshot()
    last = supervisor.last_heartbeat_ms
    return MemberView(
        member_id=seen.member_id,
        member_epoch=seen.member_epoch,
        state=seen.state if fatal is None else MemberState.FATAL,
        assigned=tuple(each.tp for each in seen.assigned),
        coordinator_known=seen.coordinator_known,
        coordinator_silent_ms=seen.coordinator_silent_ms,
        heartbeat_interval_ms=seen.heartbeat_interval_ms,
        heartbeats_sent=supervisor.heartbeats_sent,
        heartbeats_answered=supervisor.heartbeats_answered,
        last_heartbeat_age_ms=None if last is None else now_ms - last,
        consecutive_fences=seen.consecutive_fences,
        fatal_error=fatal,
    )
