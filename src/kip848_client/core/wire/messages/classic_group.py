"""The classic group protocol: join, sync, heartbeat, leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, data, int16, int32, string

__all__ = [
    "HeartbeatRequest",
    "HeartbeatResponse",
    "JoinGroupRequest",
    "JoinGroupRequestProtocol",
    "JoinGroupResponse",
    "JoinGroupResponseMember",
    "LeaveGroupRequest",
    "LeaveGroupRequestMemberIdentity",
    "LeaveGroupResponse",
    "LeaveGroupResponseMemberResponse",
    "SyncGroupRequest",
    "SyncGroupRequestAssignment",
    "SyncGroupResponse",
]


@dataclass(slots=True, kw_only=True)
class JoinGroupRequestProtocol:
    """Part of ``JoinGroupRequest``."""

    name: str = string()
    metadata: bytes = data()


@dataclass(slots=True, kw_only=True)
class JoinGroupRequest:
    """Request of API key 11, versions 0 to 9."""

    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 9)
    FLEXIBLE: ClassVar[int] = 6

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string("5+", default=None, nullable="5+")
    protocol_type: str = string()
    protocols: tuple[JoinGroupRequestProtocol, ...] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", default=None, nullable="8+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class JoinGroupResponseMember:
    """Part of ``JoinGroupResponse``."""

    member_id: str = string()
    group_instance_id: str | None = string("5+", default=None, nullable="5+", ignorable=True)
    metadata: bytes = data()


@dataclass(slots=True, kw_only=True)
class JoinGroupResponse:
    """Response of API key 11, versions 0 to 9."""

    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 9)
    FLEXIBLE: ClassVar[int] = 6

    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", default=None, nullable="7+", ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: tuple[JoinGroupResponseMember, ...] = array(JoinGroupResponseMember)


@dataclass(slots=True, kw_only=True)
class SyncGroupRequestAssignment:
    """Part of ``SyncGroupRequest``."""

    member_id: str = string()
    assignment: bytes = data()


@dataclass(slots=True, kw_only=True)
class SyncGroupRequest:
    """Request of API key 14, versions 0 to 5."""

    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 4

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", default=None, nullable="3+")
    protocol_type: str | None = string("5+", default=None, nullable="5+", ignorable=True)
    protocol_name: str | None = string("5+", default=None, nullable="5+", ignorable=True)
    assignments: tuple[SyncGroupRequestAssignment, ...] = array(SyncGroupRequestAssignment)


@dataclass(slots=True, kw_only=True)
class SyncGroupResponse:
    """Response of API key 14, versions 0 to 5."""

    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 4

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string("5+", default=None, nullable="5+", ignorable=True)
    protocol_name: str | None = string("5+", default=None, nullable="5+", ignorable=True)
    assignment: bytes = data()


@dataclass(slots=True, kw_only=True)
class HeartbeatRequest:
    """Request of API key 12, versions 0 to 4."""

    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 4

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", default=None, nullable="3+")


@dataclass(slots=True, kw_only=True)
class HeartbeatResponse:
    """Response of API key 12, versions 0 to 4."""

    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 4

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()


@dataclass(slots=True, kw_only=True)
class LeaveGroupRequestMemberIdentity:
    """Part of ``LeaveGroupRequest``."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", default=None, nullable="3+")
    reason: str | None = string("5+", default=None, nullable="5+", ignorable=True)


@dataclass(slots=True, kw_only=True)
class LeaveGroupRequest:
    """Request of API key 13, versions 0 to 5."""

    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 4

    group_id: str = string()
    member_id: str = string("0-2")
    members: tuple[LeaveGroupRequestMemberIdentity, ...] = array(
        LeaveGroupRequestMemberIdentity, "3+"
    )


@dataclass(slots=True, kw_only=True)
class LeaveGroupResponseMemberResponse:
    """Part of ``LeaveGroupResponse``."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    error_code: int = int16("3+")


@dataclass(slots=True, kw_only=True)
class LeaveGroupResponse:
    """Response of API key 13, versions 0 to 5."""

    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 4

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    members: tuple[LeaveGroupResponseMemberResponse, ...] = array(
        LeaveGroupResponseMemberResponse, "3+"
    )
