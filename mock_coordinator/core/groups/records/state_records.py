"""State changes as records: the only way in which the state of a group changes.

A handler returns a list of these records, and applying them one by one is the change. A broker that
crashed is rebuilt by applying its records again; so is a coordinator after a fail-over.

The types mirror the records of Kafka's ``__consumer_offsets`` topic, key for key and in the order
in which a broker writes them. Every record has a ``key``; ``value=None`` is a tombstone. Keeping
only the last record of every key (log compaction) must not change the result of a replay, with one
exception that Kafka has too: a simple group (one that exists only because of a committed offset
without a member) is gone from a compacted log once its last offset was deleted.

State that no record has is lost in a crash: timers, the metadata refresh deadline, a pending regex
resolution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias

from kip848_client.core.assignors import Partitions
from kip848_client.core.empty import EMPTY
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId
from mock_coordinator.core.groups.records.assignor_values import (
    NO_METADATA,
    AssignmentMetadata,
    ClientAssignor,
)
from mock_coordinator.core.groups.records.member_state import MemberState

__all__ = [
    "CONSUMER_RECORDS",
    "NOTHING_OWNED",
    "ClassicGeneration",
    "ClassicGroupMember",
    "ClassicMemberMetadata",
    "ClassicProtocol",
    "CurrentAssignment",
    "CurrentMemberAssignment",
    "GroupEpoch",
    "GroupEpochMetadata",
    "GroupMetadata",
    "MemberMetadata",
    "MemberSubscription",
    "OffsetAndMetadata",
    "OffsetCommit",
    "OwnedPartitions",
    "PartitionMetadata",
    "RecordKey",
    "RecordTypes",
    "RegularExpression",
    "ResolvedRegex",
    "StateRecord",
    "TargetAssignmentMember",
    "TargetAssignmentMetadata",
    "TargetEpoch",
    "TopicShape",
    "TransactionEnd",
]

RecordKey: TypeAlias = tuple[int | str, ...]
"""(key type, the fields of the key): unique over all record types."""

OwnedPartitions: TypeAlias = Mapping[TopicId, Mapping[int, int]]
"""Topic id -> partition -> assignment epoch: the member epoch at which the member was given the
partition (KIP-1251). Brokers before 4.3 do not store it; there it is the member's own epoch."""

NOTHING_OWNED: Final[OwnedPartitions] = EMPTY


@dataclass(frozen=True, slots=True)
class StateRecord:
    """Base of all records. ``KEY_TYPE`` is the number of Kafka's record key."""

    KEY_TYPE: ClassVar[int] = -1

    group_id: str

    @property
    def key(self) -> RecordKey:
        """What compaction keeps one record of."""
        return (self.KEY_TYPE, self.group_id)


# --- Offsets --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetAndMetadata:
    """One committed offset. ``expire_timestamp_ms`` only with the retention time of requests v2-4;
    ``topic_id`` zero when the commit named the topic."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None
    topic_id: TopicId = ZERO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class OffsetCommit(StateRecord):
    """Key type 1. For a group that does not exist it creates a simple group.

    With a ``producer`` (its id and epoch, which a log has in the batch's header) the offset is
    pending: it counts when the producer's transaction has been committed (``TransactionEnd``).
    """

    KEY_TYPE: ClassVar[int] = 1

    topic: str
    partition: int
    value: OffsetAndMetadata | None
    producer: tuple[int, int] | None = None

    @property
    def key(self) -> RecordKey:
        """One per group, topic and partition; pending offsets do not replace any before the end of
        their transaction, so compaction must see them as others."""
        key = (self.KEY_TYPE, self.group_id, self.topic, self.partition)
        return key if self.producer is None else (*key, *self.producer)


@dataclass(frozen=True, slots=True)
class TransactionEnd(StateRecord):
    """The marker that ends a producer's transaction (a control batch, KIP-98); it has no group.

    Every offset that is pending under the producer id becomes the committed one, unless a newer
    offset was written since, or is forgotten. A marker has no key: compaction that drops
    records before it must replace the pending offsets by what became of them.
    ``coordinator_epoch`` is the transaction coordinator's, which later ones fence by a higher one.
    """

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int = 0

    @property
    def key(self) -> RecordKey:
        """One per transaction."""
        return (self.KEY_TYPE, self.group_id, self.producer_id, self.producer_epoch)


# --- Classic groups -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClassicProtocol:
    """A protocol that a member offers in JoinGroup, with the bytes that its assignor reads."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicGroupMember:
    """A member as it is stored: ``subscription`` is its metadata for the group's protocol."""

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    session_timeout_ms: int
    subscription: bytes = b""
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicGeneration:
    """What is stored of a classic group: its last complete generation.

    ``protocol_type`` is ``""`` and ``protocol`` None before the first; ``leader`` is None without
    members; ``state_timestamp_ms`` is when the group came into the state that was stored.
    """

    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    state_timestamp_ms: int = -1
    members: tuple[ClassicGroupMember, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupMetadata(StateRecord):
    """Key type 2: a classic group, whole. The tombstone (without a value) deletes it."""

    KEY_TYPE: ClassVar[int] = 2

    value: ClassicGeneration | None = None


# --- Consumer groups ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupEpoch:
    """``metadata_hash`` sums up the subscribed topics (0 when none exists; 0 always before 4.1)."""

    epoch: int
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True)
class GroupEpochMetadata(StateRecord):
    """Key type 3, ConsumerGroupMetadata: the group epoch."""

    KEY_TYPE: ClassVar[int] = 3

    value: GroupEpoch | None


@dataclass(frozen=True, slots=True)
class TopicShape:
    """What 4.0 remembers of a subscribed topic to notice its change."""

    name: str
    topic_id: TopicId
    partitions: int


@dataclass(frozen=True, slots=True)
class PartitionMetadata(StateRecord):
    """Key type 4, ConsumerGroupPartitionMetadata. Written by 4.0 only; later brokers write only its
    tombstone, when they delete a group."""

    KEY_TYPE: ClassVar[int] = 4

    value: tuple[TopicShape, ...] | None


@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """What only a member has that joined a consumer group with JoinGroup (KIP-848, migration).
    ``supported_protocols`` in the member's order of preference."""

    session_timeout_ms: int
    supported_protocols: tuple[ClassicProtocol, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription:
    """What a member said about itself; names sorted and without repetition, ``""`` for no regex.
    ``classic`` is set for a member that uses the classic protocol."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str = ""
    server_assignor: str | None = None
    client_assignors: tuple[ClientAssignor, ...] = ()
    """Not Kafka's: the assignors that the member itself can run."""
    classic: ClassicMemberMetadata | None = None


@dataclass(frozen=True, slots=True)
class MemberMetadata(StateRecord):
    """Key type 5, ConsumerGroupMemberMetadata: a member and its subscription."""

    KEY_TYPE: ClassVar[int] = 5

    member_id: str
    value: MemberSubscription | None

    @property
    def key(self) -> RecordKey:
        """One per member."""
        return (self.KEY_TYPE, self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class TargetEpoch:
    """``timestamp_ms`` (KIP-1263, 4.3+): when the target was computed, 0 for never. ``error`` (not
    Kafka's): what the member that computed it reported. ``assignor`` (not Kafka's): the
    client-side assignor that computed it, ``""`` for one of the broker's."""

    assignment_epoch: int
    timestamp_ms: int = 0
    error: int = 0
    assignor: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class TargetAssignmentMetadata(StateRecord):
    """Key type 6, ConsumerGroupTargetAssignmentMetadata: the group epoch the target is for."""

    KEY_TYPE: ClassVar[int] = 6

    value: TargetEpoch | None


@dataclass(frozen=True, slots=True)
class TargetAssignmentMember(StateRecord):
    """Key type 7, ConsumerGroupTargetAssignmentMember: what a member should have in the end."""

    KEY_TYPE: ClassVar[int] = 7

    member_id: str
    value: Partitions | None
    metadata: AssignmentMetadata = NO_METADATA
    """Not Kafka's: what a client-side assignor says to the member."""

    @property
    def key(self) -> RecordKey:
        """One per member."""
        return (self.KEY_TYPE, self.group_id, self.member_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentAssignment:
    """How far a member is on the way to its target."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: OwnedPartitions = NOTHING_OWNED
    pending_revocation: OwnedPartitions = NOTHING_OWNED
    metadata: AssignmentMetadata = NO_METADATA
    """Not Kafka's: the metadata of the latest target that the member has reached."""


@dataclass(frozen=True, slots=True)
class CurrentMemberAssignment(StateRecord):
    """Key type 8, ConsumerGroupCurrentMemberAssignment. The tombstone leaves the member in the
    group, without partitions; the tombstone of key type 5 removes it."""

    KEY_TYPE: ClassVar[int] = 8

    member_id: str
    value: CurrentAssignment | None

    @property
    def key(self) -> RecordKey:
        """One per member."""
        return (self.KEY_TYPE, self.group_id, self.member_id)


@dataclass(frozen=True, slots=True)
class ResolvedRegex:
    """The topics (sorted) that a regex matched when the broker knew topics up to ``version``."""

    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class RegularExpression(StateRecord):
    """Key type 16, ConsumerGroupRegularExpression: the latest resolution of a regex in use."""

    KEY_TYPE: ClassVar[int] = 16

    regex: str
    value: ResolvedRegex | None

    @property
    def key(self) -> RecordKey:
        """One per regex."""
        return (self.KEY_TYPE, self.group_id, self.regex)


# --- Which of them a group has --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTypes:
    """The types of the records about a reconciled group and its members. Each type of group has
    its own; they differ in their keys."""

    epoch: type[GroupEpochMetadata]
    member: type[MemberMetadata]
    target_epoch: type[TargetAssignmentMetadata]
    target: type[TargetAssignmentMember]
    current: type[CurrentMemberAssignment]


CONSUMER_RECORDS: Final = RecordTypes(
    epoch=GroupEpochMetadata,
    member=MemberMetadata,
    target_epoch=TargetAssignmentMetadata,
    target=TargetAssignmentMember,
    current=CurrentMemberAssignment,
)
