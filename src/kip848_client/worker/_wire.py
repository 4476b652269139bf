"""A worker's heartbeat between the member's terms and the wire's: pure translation, both ways
(docs/reference/draft-protocols.md)."""

from __future__ import annotations

from typing import Final

from kip848_client._types import GroupId, MemberId
from kip848_client.error_codes import error_name, is_retriable
from kip848_client.member import (
    AssignorNews,
    HeartbeatAccepted,
    HeartbeatIntent,
    HeartbeatOutcome,
    HeartbeatRefused,
    OfferedAssignor,
)
from kip848_client.wire.messages.connect_group import (
    ConnectGroupHeartbeatRequest,
    ConnectGroupHeartbeatRequestAssignor,
    ConnectGroupHeartbeatResponse,
)
from kip848_client.worker._partitions import partitions, rows

__all__ = ["heartbeat_outcome", "heartbeat_request"]

_API: Final = "ConnectGroupHeartbeat"


def heartbeat_request(group_id: GroupId, intent: HeartbeatIntent) -> ConnectGroupHeartbeatRequest:
    """The request that says what ``intent`` means; only consumers subscribe to topics."""
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
    """What a response means to the member. A null assignment is "no news"."""
    code = response.error_code
    if code != 0:
        return HeartbeatRefused(
            code=code,
            name=error_name(code),
            message=response.error_message,
            retriable=is_retriable(code),
            api=_API,
        )
    given = response.assignment
    assignment = None if given is None else partitions(given.items)
    news = AssignorNews(should_compute=response.should_compute_assignment)
    if given is not None:
        news = AssignorNews(
            should_compute=response.should_compute_assignment,
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
