"""Validation of a ConnectGroupHeartbeat, before its group is looked up."""

from __future__ import annotations

from typing import Final

from kip848_client.core.connect import ItemsError, OwnedItems, read_items
from kip848_client.core.types import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from kip848_client.core.wire.messages.connect_group import ConnectGroupHeartbeatRequest
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.client_assignors.offers import validate_assignors
from mock_coordinator.core.groups.consumer.validation import is_blank
from mock_coordinator.core.groups.records.assignor_values import ClientAssignor
from mock_coordinator.core.refused import Refused

__all__ = ["offered_assignors", "reported_items", "validate_connect_heartbeat"]

_LOWEST_VERSION: Final = 0


def validate_connect_heartbeat(request: ConnectGroupHeartbeatRequest) -> None:
    """Raise ``Refused`` for the first rule that the request breaks: INVALID_REQUEST or
    UNSUPPORTED_ASSIGNOR."""
    for text, name in (
        (request.member_id, "MemberId"),
        (request.group_id, "GroupId"),
        (request.instance_id, "InstanceId"),
    ):
        if text is not None and is_blank(text):
            raise _invalid(f"{name} can't be empty.")
    epoch = request.member_epoch
    if epoch == JOIN_EPOCH:
        _validate_join(request)
    elif epoch == STATIC_LEAVE_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.rebalance_timeout_ms != -1 and request.rebalance_timeout_ms <= 0:
        # a worker that computes has this long for it, and as long to give items up
        raise _invalid("RebalanceTimeoutMs must be larger than zero.")
    if request.server_assignor is not None:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Connect groups have no "
            "assignors of the broker.",
        )
    if request.client_assignors is not None and not request.client_assignors:
        raise _invalid("ClientAssignors can't be empty.")
    validate_assignors(offered_assignors(request) or (), lowest=_LOWEST_VERSION)


def _validate_join(request: ConnectGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.owned is None or request.owned:
        raise _invalid("Owned must be empty when (re-)joining.")
    if not request.client_assignors:
        raise _invalid("ClientAssignors must be non-empty when (re-)joining.")


def offered_assignors(request: ConnectGroupHeartbeatRequest) -> tuple[ClientAssignor, ...] | None:
    """The assignors of a heartbeat; ``None`` when it says nothing about them."""
    if request.client_assignors is None:
        return None
    return tuple(
        ClientAssignor(
            name=each.name,
            minimum_version=each.minimum_version,
            maximum_version=each.maximum_version,
            reason=each.reason,
            metadata_version=each.version,
            metadata=bytes(each.metadata),
        )
        for each in request.client_assignors
    )


def reported_items(request: ConnectGroupHeartbeatRequest) -> tuple[OwnedItems, ...] | None:
    """What the worker says it has; ``None`` for "as before". Raises ``Refused`` INVALID_REQUEST
    for what cannot be."""
    if request.owned is None:
        return None
    try:
        return tuple(OwnedItems(*each) for each in read_items(request.owned).items())
    except ItemsError as err:
        raise _invalid(f"Owned is invalid: {err}") from err


def _invalid(message: str) -> Refused:
    return Refused(ErrorCode.INVALID_REQUEST, message)
