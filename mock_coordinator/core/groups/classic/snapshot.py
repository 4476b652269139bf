"""Snapshots of classic groups, for tests and other readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mock_coordinator.core.groups.records.state_records import ClassicGeneration, ClassicProtocol
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.classic_live import LiveMember
from mock_coordinator.core.groups.state.consumer_group import GroupState
from mock_coordinator.core.groups.state.timers import Timer, TimerKind, Timers

__all__ = ["ClassicMemberSnapshot", "ClassicSnapshot", "take_classic_snapshot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMemberSnapshot:
    """One member. ``joining`` and ``syncing``: its request waits for the end of the phase."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[ClassicProtocol, ...]
    assignment: bytes
    joining: bool = False
    syncing: bool = False
    session_deadline_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicSnapshot:
    """What is going on in a classic group, and what is ``stored`` of it. ``pending_joins`` maps
    the ids that were given out to when they lapse. Deadlines are None for timers that do not run.
    """

    stored: ClassicGeneration | None
    generation: int = 0
    protocol_type: str = ""
    protocol: str | None = None
    leader: str | None = None
    members: Mapping[str, ClassicMemberSnapshot] = field(
        default_factory=dict[str, ClassicMemberSnapshot]
    )
    pending_joins: Mapping[str, int | None] = field(default_factory=dict[str, "int | None"])
    pending_syncs: tuple[str, ...] = ()
    join_deadline_ms: int | None = None
    sync_deadline_ms: int | None = None

    @property
    def stored_state(self) -> GroupState:
        """The state of a group that was just loaded."""
        has_members = self.stored is not None and self.stored.members
        return GroupState.STABLE if has_members else GroupState.EMPTY

    def only_stored(self) -> ClassicSnapshot:
        """What survives a crash."""
        return ClassicSnapshot(stored=self.stored)


def take_classic_snapshot(timers: Timers, group: ClassicGroup) -> ClassicSnapshot:
    """The group as it is now."""
    live, group_id = group.live, group.group_id

    def session_of(member_id: str) -> int | None:
        return timers.deadline_of(Timer(TimerKind.CLASSIC_SESSION, group_id, member_id))

    return ClassicSnapshot(
        stored=group.stored,
        generation=live.generation,
        protocol_type=group.protocol_type,
        protocol=live.protocol,
        leader=live.leader,
        members={
            member_id: _member(member, session_of(member_id))
            for member_id, member in live.members.items()
        },
        pending_joins={member_id: session_of(member_id) for member_id in live.pending_joins},
        pending_syncs=tuple(live.pending_syncs),
        join_deadline_ms=timers.deadline_of(Timer(TimerKind.JOIN_PHASE, group_id)),
        sync_deadline_ms=timers.deadline_of(Timer(TimerKind.SYNC_PHASE, group_id)),
    )


def _member(member: LiveMember, session_deadline_ms: int | None) -> ClassicMemberSnapshot:
    return ClassicMemberSnapshot(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.session_timeout_ms,
        protocols=member.protocols,
        assignment=member.assignment,
        joining=member.awaiting_join is not None,
        syncing=member.awaiting_sync is not None,
        session_deadline_ms=session_deadline_ms,
    )
