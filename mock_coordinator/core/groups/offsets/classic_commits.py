"""Offsets of a classic group: which commits are accepted, and when offsets expire.

A commit names a member and its generation, or no member; without a member only an empty group
accepts it. Offsets of a group without members expire together, counted from when the last member
left (KIP-211). Those of a simple group, and of topics that a Stable group of consumers no longer
subscribes to, expire individually, counted from their commit.
"""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.records.state_records import OffsetAndMetadata
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.classic_identity import require_generation, require_member
from mock_coordinator.core.groups.state.consumer_group import GroupState
from mock_coordinator.core.groups.state.timers import Timer, TimerKind
from mock_coordinator.core.refused import Refused

__all__ = [
    "commit_keeps_session",
    "expires_from_ms",
    "require_committer",
    "require_offsets_deletable",
]


def require_committer(
    group: ClassicGroup,
    member_id: str,
    instance_id: str | None,
    generation: int,
    *,
    transactional: bool = False,
) -> None:
    """Raise ``Refused`` when this member, or a tool without a member id, may not commit now:
    UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, ILLEGAL_GENERATION or REBALANCE_IN_PROGRESS.

    Commits of a transaction need no member, and do not mind a rebalance (KIP-447).
    """
    live = group.live
    empty = live.state is GroupState.EMPTY
    if generation < 0 and empty:
        return
    if generation >= 0 or member_id or instance_id is not None:
        require_member(live, member_id, instance_id)
        require_generation(live, generation)
    elif not transactional and not empty:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    if not transactional and live.state is GroupState.COMPLETING_REBALANCE:
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS)


def commit_keeps_session(group: ClassicGroup, member_id: str) -> tuple[Timer, int] | None:
    """The timer that an accepted commit restarts, and its milliseconds; ``None`` if the commit does
    not extend the session."""
    live = group.live
    member = live.members.get(member_id)
    if member is None or live.state not in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
        return None
    timer = Timer(TimerKind.CLASSIC_SESSION, group.group_id, member_id)
    return timer, member.session_timeout_ms


def require_offsets_deletable(group: ClassicGroup) -> None:
    """Raise ``Refused`` NON_EMPTY_GROUP: of a group at work only consumers' topics are known."""
    if not group.is_empty and not group.live.uses_consumer_protocol:
        raise Refused(ErrorCode.NON_EMPTY_GROUP)


def expires_from_ms(group: ClassicGroup, value: OffsetAndMetadata) -> int | None:
    """When the retention of an offset began; None when it does not expire now."""
    live = group.live
    if live.protocol_type is None:
        return value.commit_timestamp_ms
    if live.state is GroupState.EMPTY:
        left_ms = live.state_timestamp_ms
        return value.commit_timestamp_ms if left_ms == -1 else left_ms
    wants_are_known = live.uses_consumer_protocol and live.subscribed_topics is not None
    if wants_are_known and live.state is GroupState.STABLE:
        return value.commit_timestamp_ms
    return None
