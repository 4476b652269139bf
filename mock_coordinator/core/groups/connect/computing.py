"""The input of a worker that computes the target, and the checks of its result.

The input has every worker, including those that are away, with its metadata and its target, and the
deferred items. The result names every item once: for a worker, or deferred, which means kept for a
worker that may return. Items that it does not name do not run; the coordinator does not know which
connectors exist, so it cannot notice that any are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kip848_client.core.assignors import NO_PARTITIONS, Partitions
from kip848_client.core.connect import (
    ITSELF,
    ItemsError,
    connector_of,
    read_items,
    resource_of,
    taken_once,
    write_items,
)
from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupInstallAssignmentRequest,
    ConnectGroupPrepareAssignmentResponse,
    ConnectGroupPrepareAssignmentResponseMember,
)
from mock_coordinator.core.groups.client_assignors.computation import Computation
from mock_coordinator.core.groups.client_assignors.install import (
    Computed,
    refused,
    require_version,
    target_records,
)
from mock_coordinator.core.groups.client_assignors.prepare import worker_assignor
from mock_coordinator.core.groups.records.assignor_values import AssignmentMetadata, ClientAssignor
from mock_coordinator.core.groups.records.connect_protocol import BROUGHT
from mock_coordinator.core.groups.records.connect_records import (
    ConnectCurrentAssignment,
    ConnectTargetEpoch,
    ConnectTargetMetadata,
    ConnectWorkerMetadata,
)
from mock_coordinator.core.groups.records.state_records import OwnedPartitions, StateRecord
from mock_coordinator.core.groups.state.connect_group import ConnectGroup, subscription_of
from mock_coordinator.core.topics.catalog import Catalog

__all__ = ["OF_ITEMS", "WorkersInput"]

_DEFERRED: Final = "the deferred items"


@dataclass(frozen=True, slots=True)
class _Worker:
    """A worker, what it offered for the chosen assignor, and its last target."""

    member_epoch: int
    instance_id: str | None
    assignor: ClientAssignor
    target: Partitions


@dataclass(frozen=True, slots=True)
class WorkersInput:
    """The group at one group epoch."""

    group_epoch: int
    assignor: str
    workers: Mapping[str, _Worker]
    deferred: Partitions


def _given(_catalog: Catalog, group: ConnectGroup, assignor: str) -> WorkersInput:
    workers = {
        member_id: _Worker(
            member_epoch=member.epoch,
            instance_id=member.instance_id,
            assignor=worker_assignor(member, assignor),
            target=group.targets.get(member_id, NO_PARTITIONS),
        )
        for member_id, member in group.members.items()
    }
    return WorkersInput(group.epoch, assignor, workers, group.deferred)


def _answer(given: WorkersInput) -> ConnectGroupPrepareAssignmentResponse:
    return ConnectGroupPrepareAssignmentResponse(
        group_epoch=given.group_epoch,
        assignor_name=given.assignor,
        members=tuple(
            ConnectGroupPrepareAssignmentResponseMember(
                member_id=member_id,
                member_epoch=worker.member_epoch,
                instance_id=worker.instance_id,
                version=worker.assignor.metadata_version,
                reason=worker.assignor.reason,
                metadata=worker.assignor.metadata,
                items=write_items(worker.target),
            )
            for member_id, worker in given.workers.items()
        ),
        deferred=write_items(given.deferred),
    )


def _installed(
    group: ConnectGroup,
    given: WorkersInput,
    request: ConnectGroupInstallAssignmentRequest,
    timestamp_ms: int,
) -> list[StateRecord]:
    """The records of the new target. With an error the target stays, and so do the reasons to
    compute; the epoch advances nevertheless, or the group would request it forever."""
    records: list[StateRecord] = []
    deferred = group.deferred
    if request.error == 0:
        computed, deferred = _validated(given, request)
        records += _served_reasons(group, given.group_epoch)
        prepared_for = {each: worker.instance_id for each, worker in given.workers.items()}
        records += _named_generations(group, computed, deferred)
        records += target_records(group, prepared_for, computed)
    epoch = ConnectTargetEpoch(
        given.group_epoch, timestamp_ms, request.error, deferred, request.member_id
    )
    records.append(ConnectTargetMetadata(group.group_id, epoch))
    return records


def _validated(
    given: WorkersInput, request: ConnectGroupInstallAssignmentRequest
) -> tuple[Computed, Partitions]:
    """Worker -> its items and metadata; and the deferred items."""
    computed: Computed = {}
    taken: dict[tuple[str, int], str] = {}
    try:
        for row in request.members:
            worker = given.workers.get(row.member_id)
            if worker is None:
                raise refused(f"Member {row.member_id} is not in the prepared group.")
            if row.member_id in computed:
                raise refused(f"Member {row.member_id} is in the assignment twice.")
            require_version(row.member_id, row.version, worker.assignor)
            items = read_items(row.items)
            taken_once(row.member_id, items, taken)
            metadata = AssignmentMetadata(row.version, bytes(row.metadata), row.error)
            computed[row.member_id] = (items, metadata)
        deferred = read_items(request.deferred)
        taken_once(_DEFERRED, deferred, taken)
    except ItemsError as err:
        raise refused(str(err)) from err
    return computed, deferred


def _named_generations(
    group: ConnectGroup, computed: Computed, deferred: Partitions
) -> list[StateRecord]:
    """Tasks that the group has brought along from the classic protocol are of the generation in
    which the target has their connector: they go on."""
    named: dict[str, int] = {}
    for target in (*(items for items, _ in computed.values()), deferred):
        for connector, generation in map(connector_of, target):
            if generation != ITSELF:
                named[connector] = min(generation, named.get(connector, generation))
    new_name = {
        resource_of(connector, BROUGHT): resource_of(connector, generation)
        for connector, generation in named.items()
    }
    records: list[StateRecord] = []
    for member_id, member in group.members.items():
        if new_name.keys().isdisjoint({*member.assigned, *member.pending_revocation}):
            continue
        current = replace(
            member.current,
            assigned=_renamed(member.assigned, new_name),
            pending_revocation=_renamed(member.pending_revocation, new_name),
        )
        records.append(ConnectCurrentAssignment(group.group_id, member_id, current))
    return records


def _renamed(held: OwnedPartitions, new_name: Mapping[TopicId, TopicId]) -> OwnedPartitions:
    renamed: dict[TopicId, dict[int, int]] = {}
    for resource, parts in held.items():
        renamed.setdefault(new_name.get(resource, resource), {}).update(parts)
    return renamed


def _served_reasons(group: ConnectGroup, epoch: int) -> list[StateRecord]:
    """Reasons that came no later than the prepared epoch have had their effect."""
    records: list[StateRecord] = []
    for member_id, member in group.members.items():
        said = subscription_of(member)
        if said.reason_epoch > epoch or not any(each.reason for each in said.client_assignors):
            continue
        offer = tuple(replace(each, reason=0) for each in said.client_assignors)
        served = replace(said, client_assignors=offer)
        records.append(ConnectWorkerMetadata(group.group_id, member_id, served))
    return records


OF_ITEMS: Final[
    Computation[
        ConnectGroup,
        WorkersInput,
        ConnectGroupPrepareAssignmentResponse,
        ConnectGroupInstallAssignmentRequest,
    ]
] = Computation(
    kind=ConnectGroup, given=_given, answer=_answer, installed=_installed, fences_ahead=True
)
"""How workers compute."""
