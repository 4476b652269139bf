"""The records of Connect groups as bytes. DRAFT: no Kafka release writes them, and their key types
are far above Kafka's (10480 plus the type of the corresponding record of consumer groups).

Items have the same form as in messages: a connector, a generation, whether the connector itself is
included, and tasks. Only a current assignment, which has an epoch per item, has one row per
resource instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.connect import (
    connector_of,
    read_items,
    resource_of,
    write_items,
)
from kip848_client.core.types import TopicId
from kip848_client.core.wire._fields import array, int8, int32, int64, string, struct
from kip848_client.core.wire.messages.connect_group import ConnectGroupItems
from mock_coordinator.core.groups.record_format.keys import GroupKey, GroupMemberKey
from mock_coordinator.core.groups.record_format.reading import (
    assignment_metadata,
    classic_metadata,
    member_state,
)
from mock_coordinator.core.groups.record_format.values import (
    MemberMetadataValueClassic,
    MemberMetadataValueClientAssignor,
    ValueMetadata,
)
from mock_coordinator.core.groups.record_format.writing import classic_value, metadata_value
from mock_coordinator.core.groups.records.assignor_values import ClientAssignor
from mock_coordinator.core.groups.records.connect_records import (
    ConnectCurrentAssignment,
    ConnectGroupEpoch,
    ConnectTargetEpoch,
    ConnectTargetMember,
    ConnectTargetMetadata,
    ConnectWorkerMetadata,
    WorkerSubscription,
)
from mock_coordinator.core.groups.records.state_records import CurrentAssignment, GroupEpoch
from mock_coordinator.core.profile import Profile

__all__ = [
    "CurrentValue",
    "CurrentValueItems",
    "EpochValue",
    "TargetEpochValue",
    "TargetValue",
    "WorkerValue",
    "read_current",
    "read_epoch",
    "read_target",
    "read_target_epoch",
    "read_worker",
    "write_current",
    "write_epoch",
    "write_target",
    "write_target_epoch",
    "write_worker",
]


@dataclass(slots=True, kw_only=True)
class EpochValue:
    """Key type 10483."""

    API_KEY: ClassVar[int] = 10483
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    epoch: int = int32()


@dataclass(slots=True, kw_only=True)
class WorkerValue:
    """Key type 10485."""

    API_KEY: ClassVar[int] = 10485
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    instance_id: str | None = string(default=None, nullable="0+")
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = int32(default=-1)
    client_assignors: tuple[MemberMetadataValueClientAssignor, ...] = array(
        MemberMetadataValueClientAssignor
    )
    joined_epoch: int = int32()
    reason_epoch: int = int32()
    classic: MemberMetadataValueClassic | None = struct(
        MemberMetadataValueClassic,
        "none",
        default=None,
        nullable="0+",
        tag=0,
        tagged="0+",
    )
    """Of a worker that uses the classic protocol."""


@dataclass(slots=True, kw_only=True)
class TargetEpochValue:
    """Key type 10486."""

    API_KEY: ClassVar[int] = 10486
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64()
    error: int = int8()
    deferred: tuple[ConnectGroupItems, ...] = array(ConnectGroupItems)
    computed_by: str | None = string(default=None, nullable="0+")


@dataclass(slots=True, kw_only=True)
class TargetValue:
    """Key type 10487."""

    API_KEY: ClassVar[int] = 10487
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    items: tuple[ConnectGroupItems, ...] = array(ConnectGroupItems)
    metadata: ValueMetadata | None = struct(ValueMetadata, nullable="0+")


@dataclass(slots=True, kw_only=True)
class CurrentValueItems:
    """Part of ``CurrentValue``: parts of one resource; -1 is the connector itself."""

    connector: str = string()
    generation: int = int32()
    tasks: tuple[int, ...] = array("int32")
    assignment_epochs: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class CurrentValue:
    """Key type 10488."""

    API_KEY: ClassVar[int] = 10488
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned: tuple[CurrentValueItems, ...] = array(CurrentValueItems)
    pending_revocation: tuple[CurrentValueItems, ...] = array(CurrentValueItems)
    metadata: ValueMetadata | None = struct(ValueMetadata, nullable="0+")


# --- Writing: profile and record to key, version of the value, and value --------------------------


def write_epoch(
    _profile: Profile, record: ConnectGroupEpoch
) -> tuple[GroupKey, int, EpochValue | None]:
    """The group epoch."""
    key = GroupKey(group=record.group_id)
    return key, 0, None if record.value is None else EpochValue(epoch=record.value.epoch)


def write_worker(
    _profile: Profile, record: ConnectWorkerMetadata
) -> tuple[GroupMemberKey, int, WorkerValue | None]:
    """A worker."""
    key = GroupMemberKey(group=record.group_id, member_id=record.member_id)
    said = record.value
    if said is None:
        return key, 0, None
    own = said if isinstance(said, WorkerSubscription) else WorkerSubscription()
    value = WorkerValue(
        instance_id=said.instance_id,
        client_id=said.client_id,
        client_host=said.client_host,
        rebalance_timeout_ms=said.rebalance_timeout_ms,
        client_assignors=tuple(
            MemberMetadataValueClientAssignor(
                name=each.name,
                minimum_version=each.minimum_version,
                maximum_version=each.maximum_version,
                reason=each.reason,
                metadata_version=each.metadata_version,
                metadata=each.metadata,
            )
            for each in said.client_assignors
        ),
        joined_epoch=own.joined_epoch,
        reason_epoch=own.reason_epoch,
        classic=classic_value(said.classic),
    )
    return key, 0, value


def write_target_epoch(
    _profile: Profile, record: ConnectTargetMetadata
) -> tuple[GroupKey, int, TargetEpochValue | None]:
    """The epoch of the target, the deferred items, and who computed."""
    key = GroupKey(group=record.group_id)
    epoch = record.value
    if epoch is None:
        return key, 0, None
    own = epoch if isinstance(epoch, ConnectTargetEpoch) else ConnectTargetEpoch(0)
    value = TargetEpochValue(
        assignment_epoch=epoch.assignment_epoch,
        assignment_timestamp=epoch.timestamp_ms,
        error=epoch.error,
        deferred=write_items(own.deferred),
        computed_by=own.computed_by,
    )
    return key, 0, value


def write_target(
    _profile: Profile, record: ConnectTargetMember
) -> tuple[GroupMemberKey, int, TargetValue | None]:
    """What a worker should have."""
    key = GroupMemberKey(group=record.group_id, member_id=record.member_id)
    if record.value is None:
        return key, 0, None
    value = TargetValue(items=write_items(record.value), metadata=metadata_value(record.metadata))
    return key, 0, value


def write_current(
    _profile: Profile, record: ConnectCurrentAssignment
) -> tuple[GroupMemberKey, int, CurrentValue | None]:
    """What a worker has."""
    key = GroupMemberKey(group=record.group_id, member_id=record.member_id)
    current = record.value
    if current is None:
        return key, 0, None
    value = CurrentValue(
        member_epoch=current.member_epoch,
        previous_member_epoch=current.previous_member_epoch,
        state=current.state.value,
        assigned=_rows(current.assigned),
        pending_revocation=_rows(current.pending_revocation),
        metadata=metadata_value(current.metadata),
    )
    return key, 0, value


def _rows(held: Mapping[TopicId, Mapping[int, int]]) -> tuple[CurrentValueItems, ...]:
    rows: list[CurrentValueItems] = []
    for resource, parts in held.items():
        connector, generation = connector_of(resource)
        rows.append(
            CurrentValueItems(
                connector=connector,
                generation=generation,
                tasks=tuple(parts),
                assignment_epochs=tuple(parts.values()),
            )
        )
    return tuple(rows)


# --- Reading: key and value to record -------------------------------------------------------------


def read_epoch(key: GroupKey, value: EpochValue | None) -> ConnectGroupEpoch:
    """Key type 10483."""
    return ConnectGroupEpoch(key.group, None if value is None else GroupEpoch(value.epoch))


def read_worker(key: GroupMemberKey, value: WorkerValue | None) -> ConnectWorkerMetadata:
    """Key type 10485."""
    said = None
    if value is not None:
        said = WorkerSubscription(
            instance_id=value.instance_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            client_assignors=tuple(
                ClientAssignor(
                    each.name,
                    each.minimum_version,
                    each.maximum_version,
                    each.reason,
                    each.metadata_version,
                    each.metadata,
                )
                for each in value.client_assignors
            ),
            joined_epoch=value.joined_epoch,
            reason_epoch=value.reason_epoch,
            classic=classic_metadata(value.classic),
        )
    return ConnectWorkerMetadata(key.group, key.member_id, said)


def read_target_epoch(key: GroupKey, value: TargetEpochValue | None) -> ConnectTargetMetadata:
    """Key type 10486. Raises ``ValueError`` for items that cannot be."""
    epoch = None
    if value is not None:
        epoch = ConnectTargetEpoch(
            value.assignment_epoch,
            value.assignment_timestamp,
            value.error,
            read_items(value.deferred),
            value.computed_by,
        )
    return ConnectTargetMetadata(key.group, epoch)


def read_target(key: GroupMemberKey, value: TargetValue | None) -> ConnectTargetMember:
    """Key type 10487. Raises ``ValueError`` for items that cannot be."""
    if value is None:
        return ConnectTargetMember(key.group, key.member_id, None)
    metadata = assignment_metadata(value.metadata)
    return ConnectTargetMember(key.group, key.member_id, read_items(value.items), metadata)


def read_current(key: GroupMemberKey, value: CurrentValue | None) -> ConnectCurrentAssignment:
    """Key type 10488. Raises ``ValueError`` when there are more or fewer epochs than items."""
    if value is None:
        return ConnectCurrentAssignment(key.group, key.member_id, None)
    current = CurrentAssignment(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=member_state(value.state),
        assigned=_held(value.assigned),
        pending_revocation=_held(value.pending_revocation),
        metadata=assignment_metadata(value.metadata),
    )
    return ConnectCurrentAssignment(key.group, key.member_id, current)


def _held(rows: Iterable[CurrentValueItems]) -> dict[TopicId, dict[int, int]]:
    return {
        resource_of(row.connector, row.generation): dict(
            zip(row.tasks, row.assignment_epochs, strict=True)
        )
        for row in rows
    }
