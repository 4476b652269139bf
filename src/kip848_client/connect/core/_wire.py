"""Translates a worker's heartbeats and computations between the core's types and wire messages
(docs/reference/draft-protocols.md). Pure."""

from __future__ import annotations

from typing import Final

from kip848_client.connect.core._commands import InstallTarget, PrepareTarget
from kip848_client.connect.core._events import TargetInstalled, WorkersPrepared
from kip848_client.connect.core._model import PreparedWorkers
from kip848_client.connect.core._partitions import partitions, rows, rows_of_items
from kip848_client.core.connect import (
    AssignorMetadata,
    ConnectorTaskId,
    Items,
    group_worker,
)
from kip848_client.core.member import (
    AssignorNews,
    HeartbeatAccepted,
    HeartbeatIntent,
    HeartbeatOutcome,
    HeartbeatRefused,
    OfferedAssignor,
    is_chosen_by_error,
)
from kip848_client.core.types import GroupId, MemberId
from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupHeartbeatRequest,
    ConnectGroupHeartbeatRequestAssignor,
    ConnectGroupHeartbeatResponse,
    ConnectGroupInstallAssignmentRequest,
    ConnectGroupInstallAssignmentRequestMember,
    ConnectGroupInstallAssignmentResponse,
    ConnectGroupItems,
    ConnectGroupPrepareAssignmentRequest,
    ConnectGroupPrepareAssignmentResponse,
)
from kip848_client.errors import refusal

__all__ = [
    "heartbeat_outcome",
    "heartbeat_request",
    "install_outcome",
    "install_request",
    "prepare_outcome",
    "prepare_request",
]

_API: Final = "ConnectGroupHeartbeat"
_PREPARE: Final = "ConnectGroupPrepareAssignment"
_INSTALL: Final = "ConnectGroupInstallAssignment"


def heartbeat_request(group_id: GroupId, intent: HeartbeatIntent) -> ConnectGroupHeartbeatRequest:
    """Translate an intent into the request. Raises nothing.

    Args:
        group_id: Name of the group.
        intent: The member core's content for the heartbeat. Only consumers subscribe to topics.

    Returns:
        ConnectGroupHeartbeat.
    """
    timeout, owned, offer = intent.rebalance_timeout_ms, intent.owned, intent.client_assignors
    return ConnectGroupHeartbeatRequest(
        group_id=group_id,
        member_id=intent.member_id,
        member_epoch=intent.member_epoch,
        instance_id=intent.instance_id,
        rebalance_timeout_ms=-1 if timeout is None else timeout,
        client_assignors=None if offer is None else tuple(map(_offered, offer)),
        owned=None if owned is None else rows(owned),
    )


def _offered(assignor: OfferedAssignor) -> ConnectGroupHeartbeatRequestAssignor:
    return ConnectGroupHeartbeatRequestAssignor(
        name=assignor.name,
        minimum_version=assignor.minimum_version,
        maximum_version=assignor.maximum_version,
        reason=assignor.reason,
        version=assignor.metadata_version,
        metadata=assignor.metadata,
    )


def heartbeat_outcome(response: ConnectGroupHeartbeatResponse) -> HeartbeatOutcome:
    """Translate a response for the member core. Raises nothing.

    A null assignment means no change. COMPUTE_ASSIGNMENT is the draft's other form of
    ``should_compute_assignment``: such a response counts if it has an epoch
    (``is_chosen_by_error``).

    Args:
        response: The response to ConnectGroupHeartbeat.

    Returns:
        The outcome: accepted or refused.
    """
    code = response.error_code
    is_chosen = is_chosen_by_error(code, response.member_epoch)
    if code != 0 and not is_chosen:
        return HeartbeatRefused.of(code, response.error_message, api=_API)
    should_compute = is_chosen or response.should_compute_assignment
    given = response.assignment
    assignment = None if given is None else partitions(given.items)
    news = AssignorNews(should_compute=should_compute)
    if given is not None:
        news = AssignorNews(
            should_compute=should_compute,
            target=assignment,
            error=given.error,
            metadata_version=given.version,
            metadata=bytes(given.metadata),
        )
    return HeartbeatAccepted(
        member_id=None if response.member_id is None else MemberId(response.member_id),
        member_epoch=response.member_epoch,
        heartbeat_interval_ms=response.heartbeat_interval_ms,
        assignment=assignment,
        assignors=news,
    )


def prepare_request(
    group_id: GroupId, member_id: MemberId, command: PrepareTarget
) -> ConnectGroupPrepareAssignmentRequest:
    """Translate a command into its request. Raises nothing.

    Args:
        group_id: Name of the group.
        member_id: The id of this worker.
        command: The command.

    Returns:
        ConnectGroupPrepareAssignment.
    """
    return ConnectGroupPrepareAssignmentRequest(
        group_id=group_id, member_id=member_id, member_epoch=command.member_epoch
    )


def prepare_outcome(
    number: int, response: ConnectGroupPrepareAssignmentResponse
) -> WorkersPrepared:
    """Translate a response into the event. Raises nothing.

    Args:
        number: The number of the command.
        response: The response to ConnectGroupPrepareAssignment.

    Returns:
        The group, or the refusal.
    """
    if response.error_code != 0:
        refused = refusal(response.error_code, response.error_message, _PREPARE)
        return WorkersPrepared(number, refusal=refused)
    workers = {
        each.member_id: group_worker(
            each.member_epoch,
            _plain(each.items),
            AssignorMetadata(bytes(each.metadata), each.version, each.reason),
            instance_id=each.instance_id,
        )
        for each in response.members
    }
    group = PreparedWorkers(
        response.group_epoch, response.assignor_name, workers, _plain(response.deferred)
    )
    return WorkersPrepared(number, group)


def _plain(given: tuple[ConnectGroupItems, ...]) -> Items:
    """Items in the form for assignors: without generations."""
    return Items(
        tuple(sorted({each.connector for each in given if each.runs_connector})),
        tuple(
            sorted({ConnectorTaskId(each.connector, task) for each in given for task in each.tasks})
        ),
    )


def install_request(
    group_id: GroupId, member_id: MemberId, command: InstallTarget
) -> ConnectGroupInstallAssignmentRequest:
    """Translate a command into its request. Raises nothing.

    Args:
        group_id: Name of the group.
        member_id: The id of this worker.
        command: The command.

    Returns:
        ConnectGroupInstallAssignment.
    """
    target = command.target
    return ConnectGroupInstallAssignmentRequest(
        group_id=group_id,
        member_id=member_id,
        member_epoch=command.member_epoch,
        group_epoch=command.group_epoch,
        error=target.error,
        members=tuple(
            ConnectGroupInstallAssignmentRequestMember(
                member_id=row.member_id,
                error=row.error,
                items=rows_of_items(row.items),
                version=row.version,
                metadata=row.said,
            )
            for row in target.rows
        ),
        deferred=rows_of_items(target.deferred),
    )


def install_outcome(
    number: int, response: ConnectGroupInstallAssignmentResponse
) -> TargetInstalled:
    """Translate a response into the event. Raises nothing.

    Args:
        number: The number of the command.
        response: The response to ConnectGroupInstallAssignment.

    Returns:
        Installed, or the refusal.
    """
    if response.error_code == 0:
        return TargetInstalled(number)
    refused = refusal(response.error_code, response.error_message, _INSTALL)
    return TargetInstalled(number, refused)
