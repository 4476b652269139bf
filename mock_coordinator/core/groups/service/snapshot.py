"""Snapshots of groups: for tests, traces, the simulation's checkers and the command line.

Taking one copies the group, so it is not for every heartbeat. Two coordinators with equal snapshots
behave equally, except for timers and pending resolutions of regexes (``without_timers``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kip848_client.core.assignors import NO_PARTITIONS, Partitions
from kip848_client.core.connect import connector_of
from kip848_client.core.types import TopicId, TopicPartition, format_topic_id
from mock_coordinator.core.groups.assignment.target_assignment import assignor_of_target
from mock_coordinator.core.groups.classic.snapshot import ClassicSnapshot, take_classic_snapshot
from mock_coordinator.core.groups.records.assignor_values import NO_METADATA, AssignmentMetadata
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import (
    MemberSubscription,
    OffsetAndMetadata,
    OwnedPartitions,
    ResolvedRegex,
    TopicShape,
)
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup, GroupState, GroupType
from mock_coordinator.core.groups.state.environment import Environment
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.groups.state.timers import Timer, TimerKind

__all__ = ["GroupSnapshot", "MemberSnapshot", "take_snapshot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSnapshot:
    """One member of a group.

    Partitions are by topic id; the properties ``.._partitions`` have topic names, sorted (a deleted
    topic has its id for a name). Deadlines are ``None`` for timers that do not run; those for
    joining and syncing are only for classic members.

    Attributes:
        owned: Partitions that the member may use.
        pending_revocation: Partitions that it has to give up.
        target: Partitions of its target assignment.
    """

    member_id: str
    epoch: int
    previous_epoch: int
    state: MemberState
    subscription: MemberSubscription
    owned: OwnedPartitions
    pending_revocation: OwnedPartitions
    target: Partitions
    target_metadata: AssignmentMetadata = NO_METADATA
    session_deadline_ms: int | None = None
    rebalance_deadline_ms: int | None = None
    join_deadline_ms: int | None = None
    sync_deadline_ms: int | None = None
    topic_names: Mapping[TopicId, str] = field(
        default_factory=dict[TopicId, str], repr=False, compare=False
    )

    @property
    def owned_partitions(self) -> tuple[TopicPartition, ...]:
        """``owned``, with names."""
        return self._named(self.owned)

    @property
    def pending_revocation_partitions(self) -> tuple[TopicPartition, ...]:
        """``pending_revocation``, with names."""
        return self._named(self.pending_revocation)

    @property
    def target_partitions(self) -> tuple[TopicPartition, ...]:
        """``target``, with names."""
        return self._named(self.target)

    def _named(self, partitions: Mapping[TopicId, Iterable[int]]) -> tuple[TopicPartition, ...]:
        return tuple(
            sorted(
                TopicPartition(self.topic_names.get(topic_id) or format_topic_id(topic_id), index)
                for topic_id, indexes in partitions.items()
                for index in indexes
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSnapshot:
    """One group of any type. ``epoch`` and the fields after it are for consumer and Connect groups.

    In a Connect group, connectors and their tasks take the place of topics and partitions;
    ``connect.items.write_items`` names them.
    """

    group_id: str
    type: GroupType
    state: GroupState
    offsets: Mapping[str, Mapping[int, OffsetAndMetadata]]
    unstable: tuple[tuple[str, int], ...] = ()
    """(topic, partition) whose offset an open transaction may still change."""
    epoch: int = -1
    assignment_epoch: int = -1
    assignment_timestamp_ms: int = 0
    metadata_hash: int = 0
    topic_shapes: tuple[TopicShape, ...] = ()
    assignor: str = ""
    members: Mapping[str, MemberSnapshot] = field(default_factory=dict[str, MemberSnapshot])
    targets: Mapping[str, Partitions] = field(default_factory=dict[str, Partitions])
    resolved_regexes: Mapping[str, ResolvedRegex] = field(default_factory=dict[str, ResolvedRegex])
    resolving: bool = False
    computing: str | None = None
    """The member that was chosen to compute the target (see ``client_assignors``)."""
    deferred: Partitions = NO_PARTITIONS
    """Of a Connect group: items that wait for a worker to return."""
    computed_by: str | None = None
    """Of a Connect group: the worker that computed the target."""
    classic: ClassicSnapshot | None = None
    """Only of a classic group."""

    def without_timers(self) -> GroupSnapshot:
        """The parts that survive a crash."""
        members = {
            member_id: replace(
                member,
                session_deadline_ms=None,
                rebalance_deadline_ms=None,
                join_deadline_ms=None,
                sync_deadline_ms=None,
            )
            for member_id, member in self.members.items()
        }
        survivor = replace(self, members=members, resolving=False, computing=None)
        if self.classic is None:
            return survivor
        stored = self.classic.only_stored()
        return replace(survivor, classic=stored, state=stored.stored_state)


def take_snapshot(env: Environment, group_id: str) -> GroupSnapshot | None:
    """The current state of a group; ``None`` if it does not exist."""
    group = env.state.groups.get(group_id)
    if group is None:
        return None
    offsets = {
        topic: dict(partitions) for topic, partitions in env.state.offsets.get(group_id, {}).items()
    }
    if isinstance(group, ConnectGroup):
        return _connect_snapshot(env, group, offsets)
    if not isinstance(group, ConsumerGroup):
        return GroupSnapshot(
            group_id=group_id,
            type=group.type,
            state=group.state,
            offsets=offsets,
            unstable=env.state.pending.of_group(group_id),
            classic=take_classic_snapshot(env.timers, group),
        )
    return GroupSnapshot(
        group_id=group_id,
        type=group.type,
        state=group.state,
        offsets=offsets,
        unstable=env.state.pending.of_group(group_id),
        epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignment_timestamp_ms=group.assignment_timestamp_ms,
        metadata_hash=group.metadata_hash,
        topic_shapes=group.topic_shapes,
        assignor=assignor_of_target(env, group),
        members=_members(env, group, env.catalog.names_by_id),
        targets=dict(group.targets),
        resolved_regexes=dict(group.resolved),
        computing=group.computing,
        resolving=env.timers.deadline_of(Timer(TimerKind.REGEX, group_id)) is not None,
    )


def _connect_snapshot(
    env: Environment, group: ConnectGroup, offsets: Mapping[str, Mapping[int, OffsetAndMetadata]]
) -> GroupSnapshot:
    return GroupSnapshot(
        group_id=group.group_id,
        type=group.type,
        state=group.state,
        offsets=offsets,
        unstable=env.state.pending.of_group(group.group_id),
        epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignment_timestamp_ms=group.assignment_timestamp_ms,
        members=_members(env, group, _connectors(group)),
        targets=dict(group.targets),
        deferred=dict(group.deferred),
        computed_by=group.computed_by,
        computing=group.computing,
    )


def _connectors(group: ConnectGroup) -> Mapping[TopicId, str]:
    """The names of connectors, in place of topic names."""
    held = [
        resource
        for member_id, member in group.members.items()
        for parts in (
            member.assigned,
            member.pending_revocation,
            group.targets.get(member_id, NO_PARTITIONS),
        )
        for resource in parts
    ]
    return {resource: connector_of(resource)[0] for resource in held}


def _members(
    env: Environment, group: ReconciledGroup, names: Mapping[TopicId, str]
) -> dict[str, MemberSnapshot]:
    return {member_id: _member(env, group, member_id, names) for member_id in group.members}


def _member(
    env: Environment, group: ReconciledGroup, member_id: str, names: Mapping[TopicId, str]
) -> MemberSnapshot:
    member = group.members[member_id]

    def deadline(kind: TimerKind) -> int | None:
        return env.timers.deadline_of(Timer(kind, group.group_id, member_id))

    return MemberSnapshot(
        member_id=member_id,
        epoch=member.epoch,
        previous_epoch=member.previous_epoch,
        state=member.state,
        subscription=member.subscription,
        owned=member.assigned,
        pending_revocation=member.pending_revocation,
        target=group.targets.get(member_id, NO_PARTITIONS),
        target_metadata=group.metadata_of(member_id),
        session_deadline_ms=deadline(TimerKind.SESSION),
        rebalance_deadline_ms=deadline(TimerKind.REBALANCE),
        join_deadline_ms=deadline(TimerKind.MEMBER_JOIN),
        sync_deadline_ms=deadline(TimerKind.MEMBER_SYNC),
        topic_names=names,
    )
