"""Connect workers on the group protocol: DRAFT messages, not Kafka's
(docs/reference/draft-protocols.md).

Assignments name task generations, so that a task of a newer generation is released only when no
worker runs an older one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import array, boolean, data, int8, int16, int32, string, struct

__all__ = [
    "ConnectGroupDescribeRequest",
    "ConnectGroupDescribeResponse",
    "ConnectGroupDescribeResponseAssignment",
    "ConnectGroupDescribeResponseDescribedGroup",
    "ConnectGroupDescribeResponseMember",
    "ConnectGroupHeartbeatRequest",
    "ConnectGroupHeartbeatRequestAssignor",
    "ConnectGroupHeartbeatResponse",
    "ConnectGroupHeartbeatResponseAssignment",
    "ConnectGroupInstallAssignmentRequest",
    "ConnectGroupInstallAssignmentRequestMember",
    "ConnectGroupInstallAssignmentResponse",
    "ConnectGroupItems",
    "ConnectGroupPrepareAssignmentRequest",
    "ConnectGroupPrepareAssignmentResponse",
    "ConnectGroupPrepareAssignmentResponseMember",
]


@dataclass(slots=True, kw_only=True)
class ConnectGroupItems:
    """A connector, whether the connector itself is meant, some of its tasks, and the generation of
    those. The connector itself does not have a generation: it keeps running when its tasks are
    reconfigured.
    """

    connector: str = string()
    generation: int = int32()
    runs_connector: bool = boolean()
    tasks: tuple[int, ...] = array("int32")


@dataclass(slots=True, kw_only=True)
class ConnectGroupHeartbeatRequestAssignor:
    """One assignor that a worker offers."""

    name: str = string()
    minimum_version: int = int16()
    maximum_version: int = int16()
    reason: int = int8()
    version: int = int16()
    metadata: bytes = data()


@dataclass(slots=True, kw_only=True)
class ConnectGroupHeartbeatRequest:
    """A worker joins, stays in, acknowledges in, or leaves its group.

    A null field is "as before" (-1 for the timeout). ``server_assignor`` must be null, and
    ``client_assignors`` must not be when joining.
    """

    API_KEY: ClassVar[int] = 10482
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(default=None, nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(default=None, nullable="0+")
    client_assignors: tuple[ConnectGroupHeartbeatRequestAssignor, ...] | None = array(
        ConnectGroupHeartbeatRequestAssignor, default=None, nullable="0+"
    )
    owned: tuple[ConnectGroupItems, ...] | None = array(
        ConnectGroupItems, default=None, nullable="0+"
    )


@dataclass(slots=True, kw_only=True)
class ConnectGroupHeartbeatResponseAssignment:
    """The worker's target items, and the assignor's metadata for it. ``error`` is the
    assignor's.
    """

    error: int = int8()
    items: tuple[ConnectGroupItems, ...] = array(ConnectGroupItems)
    version: int = int16()
    metadata: bytes = data()


@dataclass(slots=True, kw_only=True)
class ConnectGroupHeartbeatResponse:
    """The worker's epoch and its assignment. The assignment is present if it changed, if the
    request had all fields, and until the worker has reported it.
    """

    API_KEY: ClassVar[int] = 10482
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    member_id: str | None = string(default=None, nullable="0+")
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    should_compute_assignment: bool = boolean()
    assignment: ConnectGroupHeartbeatResponseAssignment | None = struct(
        ConnectGroupHeartbeatResponseAssignment, nullable="0+"
    )


@dataclass(slots=True, kw_only=True)
class ConnectGroupPrepareAssignmentRequest:
    """The chosen worker requests the input of the assignor."""

    API_KEY: ClassVar[int] = 10483
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()


@dataclass(slots=True, kw_only=True)
class ConnectGroupPrepareAssignmentResponseMember:
    """A worker with its target of the last assignment; epoch -2 for one that is away."""

    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(default=None, nullable="0+")
    version: int = int16()
    reason: int = int8()
    metadata: bytes = data()
    items: tuple[ConnectGroupItems, ...] = array(ConnectGroupItems)


@dataclass(slots=True, kw_only=True)
class ConnectGroupPrepareAssignmentResponse:
    """The snapshot of the group at one group epoch. ``deferred`` has the items that the last
    assignment keeps for returning workers.
    """

    API_KEY: ClassVar[int] = 10483
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    group_epoch: int = int32()
    assignor_name: str = string()
    members: tuple[ConnectGroupPrepareAssignmentResponseMember, ...] = array(
        ConnectGroupPrepareAssignmentResponseMember
    )
    deferred: tuple[ConnectGroupItems, ...] = array(ConnectGroupItems)


@dataclass(slots=True, kw_only=True)
class ConnectGroupInstallAssignmentRequestMember:
    """The target items of one worker."""

    member_id: str = string()
    error: int = int8()
    items: tuple[ConnectGroupItems, ...] = array(ConnectGroupItems)
    version: int = int16()
    metadata: bytes = data()


@dataclass(slots=True, kw_only=True)
class ConnectGroupInstallAssignmentRequest:
    """The chosen worker installs a target; deferred items wait for a worker to come back."""

    API_KEY: ClassVar[int] = 10484
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    group_epoch: int = int32()
    error: int = int8()
    members: tuple[ConnectGroupInstallAssignmentRequestMember, ...] = array(
        ConnectGroupInstallAssignmentRequestMember
    )
    deferred: tuple[ConnectGroupItems, ...] = array(ConnectGroupItems)


@dataclass(slots=True, kw_only=True)
class ConnectGroupInstallAssignmentResponse:
    """Whether the target was installed."""

    API_KEY: ClassVar[int] = 10484
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")


@dataclass(slots=True, kw_only=True)
class ConnectGroupDescribeRequest:
    """Sent by an administrator to describe groups."""

    API_KEY: ClassVar[int] = 10485
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    group_ids: tuple[str, ...] = array("string")
    include_authorized_operations: bool = boolean()


@dataclass(slots=True, kw_only=True)
class ConnectGroupDescribeResponseAssignment:
    """Items, and the assignor's metadata for the worker. ``error`` is the assignor's."""

    items: tuple[ConnectGroupItems, ...] = array(ConnectGroupItems)
    error: int = int8()
    version: int = int16()
    metadata: bytes = data()


@dataclass(slots=True, kw_only=True)
class ConnectGroupDescribeResponseMember:
    """A worker: its metadata, and its current, revoked and target items.

    ``member_state`` is 0 for stable, 1 if it still has to give items up, 2 if it waits for items of
    other workers. ``member_type`` is as in ConsumerGroupDescribe: 0 for the classic protocol.
    ``version`` and ``metadata`` are those of its offer for the group's assignor.
    """

    member_id: str = string()
    instance_id: str | None = string(default=None, nullable="0+")
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    member_type: int = int8(default=-1)
    member_state: int = int8()
    version: int = int16()
    metadata: bytes = data()
    assignment: ConnectGroupDescribeResponseAssignment = struct(
        ConnectGroupDescribeResponseAssignment
    )
    revoking: tuple[ConnectGroupItems, ...] = array(ConnectGroupItems)
    target_assignment: ConnectGroupDescribeResponseAssignment = struct(
        ConnectGroupDescribeResponseAssignment
    )


@dataclass(slots=True, kw_only=True)
class ConnectGroupDescribeResponseDescribedGroup:
    """A group. ``computed_by`` computed the target, ``computing`` was chosen to compute the next
    one. ``assignor_error`` is the reason why the target belongs to an older epoch, 0 for no error.
    ``deferred`` items wait for a worker to return.
    """

    error_code: int = int16()
    error_message: str | None = string(default=None, nullable="0+")
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    assignor_error: int = int8()
    computed_by: str | None = string(default=None, nullable="0+")
    computing: str | None = string(default=None, nullable="0+")
    members: tuple[ConnectGroupDescribeResponseMember, ...] = array(
        ConnectGroupDescribeResponseMember
    )
    deferred: tuple[ConnectGroupItems, ...] = array(ConnectGroupItems)
    authorized_operations: int = int32(default=-(2**31))


@dataclass(slots=True, kw_only=True)
class ConnectGroupDescribeResponse:
    """The groups, or the error of each."""

    API_KEY: ClassVar[int] = 10485
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: int = int32()
    groups: tuple[ConnectGroupDescribeResponseDescribedGroup, ...] = array(
        ConnectGroupDescribeResponseDescribedGroup
    )
