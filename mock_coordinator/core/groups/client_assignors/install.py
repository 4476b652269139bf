"""Checks a computed assignment against its input, and turns it into a target.

A faulty assignor must not lose a partition or assign one to two members: the result must contain
every partition of every subscribed topic exactly once (KIP-848, ConsumerGroupInstallAssignment).
The result is for the group as it was prepared; members that have left since get nothing, and
members that joined since wait for the next target.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kip848_client.core.assignors import NO_PARTITIONS, Partitions
from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.client_assignors import (
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentRequestMember,
    ConsumerGroupPrepareAssignmentResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.client_assignors.computation import Computation
from mock_coordinator.core.groups.client_assignors.prepare import (
    GroupInput,
    MemberInput,
    group_input,
    prepared,
)
from mock_coordinator.core.groups.records.assignor_values import (
    NO_METADATA,
    AssignmentMetadata,
    ClientAssignor,
)
from mock_coordinator.core.groups.records.state_records import (
    StateRecord,
    TargetAssignmentMetadata,
    TargetEpoch,
)
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.refused import Refused

__all__ = ["OF_PARTITIONS", "Computed", "installed", "refused", "require_version", "target_records"]


def installed(
    group: ConsumerGroup,
    given: GroupInput,
    request: ConsumerGroupInstallAssignmentRequest,
    timestamp_ms: int,
) -> list[StateRecord]:
    """The records of the new target. Raises ``Refused`` INVALID_ASSIGNMENT when the result does
    not fit what it was computed from.

    With an error the target stays; its epoch advances nevertheless, or the group would request
    the same computation forever.
    """
    records: list[StateRecord] = []
    if request.error == 0:
        computed = _validated(given, request)
        prepared_for = {each: row.instance_id for each, row in given.members.items()}
        records += target_records(group, prepared_for, computed)
    epoch = TargetEpoch(given.group_epoch, timestamp_ms, request.error, assignor=given.assignor)
    records.append(TargetAssignmentMetadata(group.group_id, epoch))
    return records


def refused(message: str) -> Refused:
    """INVALID_ASSIGNMENT."""
    return Refused(ErrorCode.INVALID_ASSIGNMENT, message)


Computed = dict[str, tuple[Partitions, AssignmentMetadata]]
"""Member id -> its assignment, and the metadata that goes with it."""


def _validated(given: GroupInput, request: ConsumerGroupInstallAssignmentRequest) -> Computed:
    computed: Computed = {}
    taken: dict[tuple[TopicId, int], str] = {}
    for row in request.members:
        member = given.members.get(row.member_id)
        if member is None:
            raise refused(f"Member {row.member_id} is not in the prepared group.")
        if row.member_id in computed:
            raise refused(f"Member {row.member_id} is in the assignment twice.")
        require_version(row.member_id, row.metadata_version, member.assignor)
        computed[row.member_id] = (
            _partitions(given, row, member, taken),
            AssignmentMetadata(row.metadata_version, bytes(row.metadata_bytes)),
        )
    for topic_id, topic in given.topics.items():
        for partition in range(topic.partitions):
            if (topic_id, partition) not in taken:
                raise refused(f"Partition {topic.name}-{partition} is not assigned.")
    return computed


def require_version(member_id: str, version: int, assignor: ClientAssignor) -> None:
    """Refuse metadata that the member cannot read."""
    low, high = assignor.minimum_version, assignor.maximum_version
    if not low <= version <= high:
        raise refused(f"Member {member_id} understands versions {low} to {high}, not {version}.")


def _partitions(
    given: GroupInput,
    row: ConsumerGroupInstallAssignmentRequestMember,
    member: MemberInput,
    taken: dict[tuple[TopicId, int], str],
) -> Partitions:
    mine: dict[TopicId, list[int]] = {}
    for part in row.partitions:
        topic_id = TopicId(part.topic_id)
        topic = given.topics.get(topic_id)
        if topic is None:
            raise refused(f"Member {row.member_id} is assigned a topic without subscribers.")
        if topic_id not in member.topic_ids:
            raise refused(f"Member {row.member_id} does not subscribe to topic {topic.name}.")
        for partition in part.partitions:
            where = f"{topic.name}-{partition}"
            if not 0 <= partition < topic.partitions:
                raise refused(f"Partition {where} does not exist.")
            other = taken.setdefault((topic_id, partition), row.member_id)
            if other != row.member_id or partition in mine.get(topic_id, ()):
                raise refused(
                    f"Partition {where} is assigned twice, to {other} and to {row.member_id}."
                )
            mine.setdefault(topic_id, []).append(partition)
    return {topic_id: tuple(sorted(partitions)) for topic_id, partitions in mine.items()}


def target_records(
    group: ReconciledGroup, prepared_for: Mapping[str, str | None], computed: Computed
) -> list[StateRecord]:
    """What changes for the members that the group has now; ``prepared_for`` are those that it had,
    with their instance ids."""
    new: Computed = {}
    for prepared_id, instance_id in prepared_for.items():
        member_id = prepared_id
        if member_id not in group.members and instance_id is not None:
            # a static member that was replaced since: its place is what counts
            member_id = group.static_members.get(instance_id, member_id)
        if member_id in group.members:
            new[member_id] = computed.get(prepared_id, (NO_PARTITIONS, NO_METADATA))
    records: list[StateRecord] = []
    for member_id in group.members:
        target, metadata = new.get(member_id, (NO_PARTITIONS, NO_METADATA))
        known = member_id in group.targets
        before = group.target_metadata.get(member_id, NO_METADATA)
        if not known or before != metadata or not _same(group.targets[member_id], target):
            records.append(group.records.target(group.group_id, member_id, target, metadata))
    return records


def _same(
    left: Mapping[TopicId, tuple[int, ...]], right: Mapping[TopicId, tuple[int, ...]]
) -> bool:
    return {t: set(p) for t, p in left.items() if p} == {t: set(p) for t, p in right.items() if p}


OF_PARTITIONS: Final[
    Computation[
        ConsumerGroup,
        GroupInput,
        ConsumerGroupPrepareAssignmentResponse,
        ConsumerGroupInstallAssignmentRequest,
    ]
] = Computation(kind=ConsumerGroup, given=group_input, answer=prepared, installed=installed)
"""How members of consumer groups compute."""
