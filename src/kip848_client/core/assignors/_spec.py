"""Inputs and results of server-side assignors (KIP-848).

An assignor is a pure function of a :class:`GroupSpec` and the partition counts of the topics. It
has no state: stickiness comes from the previous target that every member's spec carries.

Orders are part of the input, because Kafka's results depend on them:

* ``GroupSpec.members`` iterates in *member order* (``member_order`` of this package);
* ``MemberSpec.topic_ids`` holds the member's existing topics in the order in which its names
  iterate (``string_set_order``); the homogeneous assignors read it of one member only;
* ``MemberSpec.target`` is what the assignor returned for the member the last time it changed, as
  it was written to the member's target assignment record. Keep it as it is: the order in it counts.

A caller that does not need a broker's exact result passes ids in any stable order (sorted, say):
balance and stickiness hold nevertheless.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from kip848_client.core.empty import EMPTY
from kip848_client.core.types import MemberId, TopicId
from kip848_client.errors import Kip848Error

__all__ = [
    "NO_PARTITIONS",
    "Assignment",
    "Assignor",
    "AssignorError",
    "GroupSpec",
    "MemberSpec",
    "Partitions",
    "SubscriptionType",
    "TopicMetadata",
]

Partitions: TypeAlias = Mapping[TopicId, tuple[int, ...]]
"""Topic id -> partition numbers of one member. No topic maps to an empty tuple. Both levels are in
the order in which Kafka writes them into the target assignment record of the member."""

NO_PARTITIONS: Final[Partitions] = EMPTY
"""The target of a member that has nothing."""


class AssignorError(Kip848Error):
    """The assignor could not compute a target; the text is Kafka's own.

    A coordinator answers the heartbeat with UNKNOWN_SERVER_ERROR and changes nothing.
    """


class SubscriptionType(enum.Enum):
    """Whether all members of a group subscribe to the same topics; selects the uniform builder."""

    HOMOGENEOUS = "HOMOGENEOUS"
    HETEROGENEOUS = "HETEROGENEOUS"


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """The properties of a topic that an assignor gets."""

    name: str
    partition_count: int
    racks: Mapping[int, frozenset[str]] = EMPTY
    """Partition -> the racks of its replicas (KIP-392). Set for a user's own assignors only; empty
    if no broker has a rack. Kafka's own assignors ignore racks."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member as the assignor sees it.

    ``topic_ids``: the existing topics it subscribes to, by name or regex, without repetition.
    ``target``: its previous target (a new static member: that of the member it replaces).
    ``rack_id`` is for custom assignors; the built-in ones ignore it (KIP-848 leaves rack awareness
    to later). ``subscription_size``: how many topic names it subscribes to when some of them do not
    exist; it decides the size of a Java table, hence an order.
    """

    topic_ids: tuple[TopicId, ...]
    target: Partitions = NO_PARTITIONS
    instance_id: str | None = None
    rack_id: str | None = None
    subscription_size: int | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """The members of a group, in member order, and their subscription type."""

    members: Mapping[MemberId, MemberSpec]
    subscription_type: SubscriptionType


@dataclass(frozen=True, slots=True)
class Assignment:
    """The new target of **every** member of the spec.

    A member whose partitions did not change gets the same mapping object as before: ``is`` shows
    that it does not need a new target assignment record.
    """

    members: Mapping[MemberId, Partitions]


class Assignor(Protocol):
    """A server-side assignor. Implementations are pure: same input, same result."""

    @property
    def name(self) -> str:
        """The name that members ask for in ServerAssignor of ConsumerGroupHeartbeat."""
        ...

    @property
    def minimum_version(self) -> int:
        """The lowest version of this assignor that it is compatible with.

        0 to 32767 (default 0). No request carries it: members ask for a server-side assignor by
        name only.
        """
        return 0

    @property
    def maximum_version(self) -> int:
        """The highest version, at least ``minimum_version`` (default 0)."""
        return 0

    def assign(self, group: GroupSpec, topics: Mapping[TopicId, TopicMetadata]) -> Assignment:
        """Compute the target of every member.

        Args:
            group: The members, in member order.
            topics: Every topic that a member subscribes to, by id.

        Returns:
            The target of every member.

        Raises:
            AssignorError: ``topics`` lacks a topic, or the partitions cannot be given out.
        """
        ...
