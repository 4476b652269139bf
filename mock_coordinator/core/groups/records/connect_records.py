"""The records of Connect groups: those of consumer groups under different keys, without topics.

No Kafka release writes them; brokers skip keys that they do not know. Their additional fields
survive a fail-over because a Connect group needs them: which worker computed last (it has the delay
of the next computation), which items wait for a worker to return, which worker is the eldest, and
whether a reason to compute has been dealt with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from kip848_client.core.assignors import NO_PARTITIONS, Partitions
from mock_coordinator.core.groups.records.state_records import (
    CurrentMemberAssignment,
    GroupEpochMetadata,
    MemberMetadata,
    MemberSubscription,
    RecordTypes,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TargetEpoch,
)

__all__ = [
    "CONNECT_RECORDS",
    "ConnectCurrentAssignment",
    "ConnectGroupEpoch",
    "ConnectTargetEpoch",
    "ConnectTargetMember",
    "ConnectTargetMetadata",
    "ConnectWorkerMetadata",
    "WorkerSubscription",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSubscription(MemberSubscription):
    """What a worker said about itself. ``joined_epoch`` is the group epoch that its joining made,
    ``reason_epoch`` the one that its latest reason made (0: none yet)."""

    joined_epoch: int = 0
    reason_epoch: int = 0


@dataclass(frozen=True, slots=True)
class ConnectTargetEpoch(TargetEpoch):
    """The epoch of a target; with the items that wait for a worker to return, and who computed."""

    deferred: Partitions = NO_PARTITIONS
    computed_by: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectGroupEpoch(GroupEpochMetadata):
    """Key type 10483: the group epoch."""

    KEY_TYPE: ClassVar[int] = 10483


@dataclass(frozen=True, slots=True)
class ConnectWorkerMetadata(MemberMetadata):
    """Key type 10485: a worker; its value is a ``WorkerSubscription``."""

    KEY_TYPE: ClassVar[int] = 10485


@dataclass(frozen=True, slots=True)
class ConnectTargetMetadata(TargetAssignmentMetadata):
    """Key type 10486: the epoch of the target; its value is a ``ConnectTargetEpoch``."""

    KEY_TYPE: ClassVar[int] = 10486


@dataclass(frozen=True, slots=True)
class ConnectTargetMember(TargetAssignmentMember):
    """Key type 10487: what a worker should have in the end."""

    KEY_TYPE: ClassVar[int] = 10487


@dataclass(frozen=True, slots=True)
class ConnectCurrentAssignment(CurrentMemberAssignment):
    """Key type 10488: how far a worker is."""

    KEY_TYPE: ClassVar[int] = 10488


CONNECT_RECORDS: Final = RecordTypes(
    epoch=ConnectGroupEpoch,
    member=ConnectWorkerMetadata,
    target_epoch=ConnectTargetMetadata,
    target=ConnectTargetMember,
    current=ConnectCurrentAssignment,
)
