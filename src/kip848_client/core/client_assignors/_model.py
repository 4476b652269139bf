"""What a client-side assignor is, what it is given, and what it returns (KIP-848, Consumer API:
PartitionAssignor)."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from kip848_client.core.empty import EMPTY
from kip848_client.core.types import GroupMetadata, TopicId, TopicPartition
from kip848_client.errors import Kip848Error

__all__ = [
    "ASSIGNOR_FAILED",
    "AssignorFailed",
    "AssignorMetadata",
    "ClientAssignor",
    "GroupAssignment",
    "GroupMember",
    "GroupTopic",
    "MemberAssignment",
    "NewAssignment",
    "PreparedGroup",
]

ASSIGNOR_FAILED: Final = -1
"""The error that the group is told when an assignor failed by itself, and no other member can
compute. Assignors have the numbers above 0 for their own errors."""


class AssignorFailed(Kip848Error):
    """A client-side assignor raised, took too long, or returned what cannot be; or the coordinator
    refused what it returned. Logged, never raised by a consumer: another member computes.
    ``__cause__`` has what it raised."""


@dataclass(frozen=True, slots=True)
class AssignorMetadata:
    """What a member says to the assignor, wherever that runs.

    The ``version`` says how ``data`` is written. A ``reason`` other than 0 asks for a new
    assignment although nothing else changed (-128 to 127, the assignor's own numbers).
    """

    data: bytes = b""
    version: int = 0
    reason: int = 0


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member, as the assignor sees it."""

    member_epoch: int
    topics: tuple[str, ...]
    """The existing topics that it subscribes to, by name or by pattern, sorted."""
    target: tuple[TopicPartition, ...] = ()
    """What it was assigned by the last assignment, sorted; of topics that still exist."""
    metadata: AssignorMetadata = field(default_factory=AssignorMetadata)
    """What it says; version -1 for a member of the classic protocol, which wrote UserData."""
    instance_id: str | None = None
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupTopic:
    """A topic that a member subscribes to."""

    topic_id: TopicId
    partition_count: int
    racks: Mapping[int, frozenset[str]] = EMPTY
    """Partition -> the racks that have a replica of it. Empty when no member has told a rack, and
    for partitions of which nothing was known."""

    def partitions(self, name: str) -> list[TopicPartition]:
        """All of them, under the topic's ``name``."""
        return [TopicPartition(name, number) for number in range(self.partition_count)]


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """What one member shall have, and what it is told with it.

    ``version`` says how ``data`` is written; ``None`` for the version of the member's own metadata,
    which it can surely read.
    """

    partitions: Collection[TopicPartition] = ()
    data: bytes = b""
    version: int | None = None


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """What ``assign`` returns: every partition of every topic once, for a member that subscribes to
    it. A member that is left out gets nothing.

    With an ``error`` (1 to 127, the assignor's own numbers) everybody keeps what it has, and every
    member's ``on_assignment`` hears of the error: the group cannot be assigned as it is.
    """

    members: Mapping[str, MemberAssignment] = EMPTY
    error: int = 0


@dataclass(frozen=True, slots=True)
class NewAssignment:
    """What ``on_assignment`` hears, once for each member epoch that brings something new.

    ``partitions`` is the target: some of it may still be with other members. The rebalance listener
    says what can be used.
    """

    member_epoch: int
    partitions: tuple[TopicPartition, ...]
    data: bytes
    version: int
    error: int
    """0, or why the group keeps what it had: the assignor's own number, or ``ASSIGNOR_FAILED``."""
    group_metadata: GroupMetadata
    """Identifies the member: group id, member epoch, member id, instance id. An assignor object
    that several consumers share uses it to distinguish them."""


class ClientAssignor(Protocol):
    """Computes who consumes what, in one member for the whole group.

    Give instances to ``Consumer(group_local_assignors=[...])``, in all members of the group; the
    members vote with the order of their lists. The coordinator picks the member that computes. For
    that the broker needs the client-side assignors of KIP-848's text: the bundled one has them, no
    Kafka release does (docs/reference/draft-protocols.md).
    """

    @property
    def name(self) -> str:
        """By which members offer it; not empty, the same in all members."""
        ...

    @property
    def minimum_version(self) -> int:
        """The lowest version of metadata that it reads: 0 to 32767, or -1 for members of the
        classic protocol, too."""
        ...

    @property
    def maximum_version(self) -> int:
        """The highest one."""
        ...

    def metadata(self) -> AssignorMetadata:
        """What this member says to the assignor. Asked for with every heartbeat: a change asks the
        group for a new assignment. Must be quick."""
        ...

    def assign(
        self, members: Mapping[str, GroupMember], topics: Mapping[str, GroupTopic]
    ) -> GroupAssignment | Awaitable[GroupAssignment]:
        """The assignment of the group, by member id.

        A plain method runs in a thread of its own, a coroutine in the event loop: the consumer goes
        on meanwhile. It has ``rebalance_callback_timeout_ms``. What it raises is logged, and
        another member computes.
        """
        ...

    def on_assignment(self, assignment: NewAssignment) -> Awaitable[None] | None:
        """This member has a new target. Called like a rebalance listener, before it hears of the
        partitions; what it raises is logged."""
        ...


@dataclass(frozen=True, slots=True)
class PreparedGroup:
    """The group at one group epoch: what the coordinator gave to the member that computes."""

    group_epoch: int
    assignor: str
    members: Mapping[str, GroupMember]
    topics: Mapping[str, GroupTopic]
