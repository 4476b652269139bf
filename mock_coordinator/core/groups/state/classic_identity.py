"""Checks that a request comes from the member of a classic group that it names."""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.state.classic_live import LiveGroup
from mock_coordinator.core.refused import Refused

__all__ = ["require_generation", "require_member"]


def require_member(live: LiveGroup, member_id: str, instance_id: str | None) -> None:
    """Raise ``Refused``: UNKNOWN_MEMBER_ID for an unknown member, FENCED_INSTANCE_ID for one
    whose instance id another member has taken over (KIP-345)."""
    if instance_id is not None:
        holder = live.static_members.get(instance_id)
        if holder is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
        if holder != member_id:
            raise Refused(ErrorCode.FENCED_INSTANCE_ID)
    if member_id not in live.members:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)


def require_generation(live: LiveGroup, generation: int) -> None:
    """Raise ``Refused`` ILLEGAL_GENERATION for another generation than the current one."""
    if generation != live.generation:
        raise Refused(ErrorCode.ILLEGAL_GENERATION)
