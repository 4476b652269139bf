"""The interface of client-side assignors, with its inputs and results (KIP-848, Consumer API:
PartitionAssignor).
"""

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
"""The error that the group gets if an assignor failed and no other member can compute. Assignors
use numbers above 0 for their own errors.
"""


class AssignorFailed(Kip848Error):
    """A client-side assignor failed; another member computes.

    The assignor raised, took too long, or returned an invalid result, or the coordinator refused
    the result. This is logged, and never raised by a consumer. ``__cause__`` is the assignor's
    exception.
    """


@dataclass(frozen=True, slots=True)
class AssignorMetadata:
    """What a member reports to the assignor, in whichever member that runs.

    Attributes:
        data: The assignor's own bytes.
        version: How ``data`` is written.
        reason: A number of the assignor's own, -128 to 127. A value other than 0 asks for a new
            assignment although nothing else changed.
    """

    data: bytes = b""
    version: int = 0
    reason: int = 0


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member, as the assignor sees it.

    Attributes:
        member_epoch: The member's epoch.
        instance_id: ``group_instance_id`` of a static member, else ``None``.
        rack_id: The setting ``client_rack``; ``None`` without one.
    """

    member_epoch: int
    topics: tuple[str, ...]
    """The existing topics that it subscribes to, by name or by pattern, sorted."""
    target: tuple[TopicPartition, ...] = ()
    """Its partitions in the last assignment, sorted; only of topics that still exist."""
    metadata: AssignorMetadata = field(default_factory=AssignorMetadata)
    """Its metadata; version -1 for the UserData of a member on the classic protocol."""
    instance_id: str | None = None
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupTopic:
    """A topic that a member subscribes to.

    Attributes:
        topic_id: Its 16 bytes.
        partition_count: How many partitions it has, numbered from 0.
    """

    topic_id: TopicId
    partition_count: int
    racks: Mapping[int, frozenset[str]] = EMPTY
    """Partition -> the racks of its replicas. Empty if no member has a rack, and missing for
    partitions with unknown replicas.
    """

    def partitions(self, name: str) -> list[TopicPartition]:
        """List all partitions. Raises nothing.

        Args:
            name: Name of the topic.

        Returns:
            The partitions in order.
        """
        return [TopicPartition(name, number) for number in range(self.partition_count)]


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """The partitions of one member, and a message to it.

    Attributes:
        partitions: All that the member is to have.
        data: Bytes for the member's ``on_assignment``.
        version: How ``data`` is written. ``None``: the version of the member's own metadata, which
            it can read.
    """

    partitions: Collection[TopicPartition] = ()
    data: bytes = b""
    version: int | None = None


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """The result of ``assign``.

    Attributes:
        members: The assignment of each member, by member id. Every partition of every topic must
            occur once, for a member that subscribes to the topic. A member that is missing gets
            nothing.
        error: 1 to 127, a number of the assignor's own: the group cannot be assigned as it is.
            Every member keeps what it has, and its ``on_assignment`` gets the number. 0: no error.
    """

    members: Mapping[str, MemberAssignment] = EMPTY
    error: int = 0


@dataclass(frozen=True, slots=True)
class NewAssignment:
    """What ``on_assignment`` gets, once per member epoch with something new.

    Attributes:
        member_epoch: The member epoch of the assignment.
        partitions: The target. Some of it may still be with other members: the rebalance listener
            gets what can be used.
        data: Bytes from the assignor.
        version: How ``data`` is written.
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
    """Computes the assignment of the whole group in one member.

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
        """The lowest version of metadata that it reads.

        0 to 32767, or -1 to read those of members on the classic protocol, too.
        """
        ...

    @property
    def maximum_version(self) -> int:
        """The highest one."""
        ...

    def metadata(self) -> AssignorMetadata:
        """Report to the assignor for this member.

        Called with every heartbeat, so it must be quick. A change asks the group for a new
        assignment.

        Returns:
            What the computing member gets as ``GroupMember.metadata``.

        Raises:
            Exception: Whatever your method raises is logged; the heartbeat has what it returned
                before.
        """
        ...

    def assign(
        self, members: Mapping[str, GroupMember], topics: Mapping[str, GroupTopic]
    ) -> GroupAssignment | Awaitable[GroupAssignment]:
        """Compute the assignment of the group.

        A plain method runs in its own thread, a coroutine in the event loop; the consumer goes on
        meanwhile. It has ``rebalance_callback_timeout_ms``.

        Args:
            members: The members by id.
            topics: The topics that they subscribe to, by name.

        Returns:
            The assignment, or an awaitable of it.

        Raises:
            Exception: Whatever your method raises is logged, and another member computes.
        """
        ...

    def on_assignment(self, assignment: NewAssignment) -> Awaitable[None] | None:
        """Take note of this member's new target.

        Called like a rebalance listener, before the listener gets the partitions.

        Args:
            assignment: The target, and what the assignor reports with it.

        Returns:
            ``None``, or an awaitable that is awaited.

        Raises:
            Exception: Whatever your method raises is logged.
        """
        ...


@dataclass(frozen=True, slots=True)
class PreparedGroup:
    """The group at one group epoch, as the member that computes gets it.

    Attributes:
        group_epoch: The epoch.
        assignor: Name of the assignor to run.
        members: The members by id.
        topics: The topics that they subscribe to, by name.
    """

    group_epoch: int
    assignor: str
    members: Mapping[str, GroupMember]
    topics: Mapping[str, GroupTopic]
