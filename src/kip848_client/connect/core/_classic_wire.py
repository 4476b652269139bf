"""Translates a worker's requests and answers in a classic group between the core's types and wire
messages. Pure."""

from __future__ import annotations

from typing import Any, Final

from kip848_client.connect.core._classic_messages import (
    ClassicAnswer,
    ClassicRequest,
    HeartbeatTaken,
    Joined,
    Left,
    RequestRefused,
    SendClassicHeartbeat,
    SendJoin,
    SendLeave,
    SendSync,
    Synced,
)
from kip848_client.core.connect import PROTOCOL_TYPE
from kip848_client.core.types import GroupId
from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from kip848_client.error_codes import ErrorCode

__all__ = ["VERSIONS", "classic_answer", "classic_request"]

VERSIONS: Final[dict[type[ClassicRequest], tuple[int, int]]] = {
    SendJoin: (5, 9),  # from 4 on the coordinator assigns the id before it admits a member
    SendSync: (3, 5),
    SendClassicHeartbeat: (3, 4),
    SendLeave: (3, 5),  # with a list of members
}
"""The supported versions; every Kafka from 4.0 on has all of them."""

_APIS: Final[dict[type[ClassicRequest], str]] = {
    SendJoin: "JoinGroup",
    SendSync: "SyncGroup",
    SendClassicHeartbeat: "Heartbeat",
    SendLeave: "LeaveGroup",
}


def classic_request(group_id: GroupId, command: ClassicRequest) -> Any:
    """Translate a command into its request.

    Args:
        group_id: Name of the group.
        command: The command.

    Returns:
        JoinGroup, SyncGroup, Heartbeat or LeaveGroup.

    Raises:
        AssertionError: The command is of another class.
    """
    match command:
        case SendJoin():
            return JoinGroupRequest(
                group_id=group_id,
                session_timeout_ms=command.session_timeout_ms,
                rebalance_timeout_ms=command.rebalance_timeout_ms,
                member_id=command.member_id,
                protocol_type=PROTOCOL_TYPE,
                protocols=tuple(
                    JoinGroupRequestProtocol(name=name, metadata=said)
                    for name, said in command.protocols
                ),
                reason=command.reason[:_REASON_MAX],
            )
        case SendSync():
            return SyncGroupRequest(
                group_id=group_id,
                generation_id=command.generation,
                member_id=command.member_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=command.protocol,
                assignments=tuple(
                    SyncGroupRequestAssignment(member_id=member_id, assignment=said)
                    for member_id, said in command.assignments.items()
                ),
            )
        case SendClassicHeartbeat():
            return HeartbeatRequest(
                group_id=group_id,
                generation_id=command.generation,
                member_id=command.member_id,
            )
        case SendLeave():
            member = LeaveGroupRequestMemberIdentity(
                member_id=command.member_id, reason=command.reason
            )
            return LeaveGroupRequest(group_id=group_id, members=(member,))
        case _:
            raise AssertionError(f"no request is known for {command!r}")


_REASON_MAX: Final = 255
"""Kafka's own limit for a stored reason."""


def classic_answer(command: ClassicRequest, response: Any) -> ClassicAnswer:
    """Translate a response into the event. Raises nothing.

    Args:
        command: The command that was sent.
        response: The response to it.

    Returns:
        The event.
    """
    attempt, code = command.attempt, response.error_code
    if code == 0 and isinstance(command, SendLeave):
        code = next((each.error_code for each in response.members), 0)
    if code != 0:
        given = response.member_id if code == ErrorCode.MEMBER_ID_REQUIRED else ""
        return RequestRefused(attempt, _APIS[type(command)], code, given)
    match command:
        case SendJoin():
            return Joined(
                attempt,
                response.generation_id,
                response.member_id,
                response.leader,
                response.protocol_name or "",
                {each.member_id: bytes(each.metadata) for each in response.members},
            )
        case SendSync():
            return Synced(attempt, bytes(response.assignment))
        case SendLeave():
            return Left(attempt)
        case _:
            return HeartbeatTaken(attempt)
