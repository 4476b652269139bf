"""The results of an ``Admin``: groups, members, offsets, topics, settings. All frozen.

States, types and sources are Kafka's own names, kept as text, because a newer broker may have more
of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final, NamedTuple

from kip848_client.core.types import TopicPartition

__all__ = [
    "GROUP_STATES",
    "GROUP_TYPES",
    "AssignorMessage",
    "CommittedOffset",
    "ConfigEntry",
    "ConfigSource",
    "ConfigSynonym",
    "ConnectDescription",
    "GroupDescription",
    "GroupListing",
    "ListedOffset",
    "MemberDescription",
    "NewTopic",
    "Node",
    "PartitionDescription",
    "TopicDescription",
    "TopicListing",
    "WorkerDescription",
    "WorkerItem",
    "WorkerState",
]

GROUP_STATES: Final = (
    "Stable",
    "Empty",
    "Dead",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Unknown",
)
"""The states that a group can be in, of whatever type."""

GROUP_TYPES: Final = ("Consumer", "Classic", "Share", "Streams", "Connect")
"""The types that a group can have. ``Connect`` is this project's own draft."""


@dataclass(frozen=True, slots=True)
class Node:
    """A broker.

    Attributes:
        node_id: Its number in the cluster.
        host: The host that it advertises.
        port: The port that it advertises.
        rack: Its rack (``broker.rack``), ``None`` without one.
    """

    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class GroupListing:
    """A group, as ``Admin.list_groups`` finds it."""

    group_id: str
    """Its name."""
    type: str
    """``Consumer`` (KIP-848), ``Classic`` or another of Kafka's; empty if the broker does not
    report it."""
    state: str
    """One of ``GROUP_STATES``; empty if the broker does not report it."""
    protocol_type: str
    """``consumer``, or the protocol type of a classic group's members; empty for a group that has
    only offsets."""


@dataclass(frozen=True, slots=True)
class AssignorMessage:
    """Metadata from a client-side assignor for one member (KIP-848, Assignment)."""

    error: int = 0
    """The assignor's own error number, which made the group keep its assignment; 0 for no error."""
    version: int = 0
    """The version of the format of ``metadata``."""
    metadata: bytes = b""
    """The assignor's own bytes."""


class WorkerItem(NamedTuple):
    """A connector or one of its tasks. ``str`` is Kafka Connect's form: ``orders-3``."""

    connector: str
    """Name of the connector."""
    task: int | None = None
    """``None`` for the connector itself."""
    generation: int | None = None
    """How often the tasks were reconfigured. ``None`` for the connector itself, and in a classic
    group, which does not report it."""

    def __str__(self) -> str:
        return self.connector if self.task is None else f"{self.connector}-{self.task}"


class WorkerState(StrEnum):
    """A worker's progress towards its target assignment."""

    STABLE = "Stable"
    """It has its full assignment for its epoch."""
    UNREVOKED = "Unrevoked"
    """It still has to release items."""
    UNRELEASED = "Unreleased"
    """It waits for items that other workers have not released yet."""
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class WorkerDescription:
    """The state of a Kafka Connect worker."""

    url: str | None
    """The URL for other workers (``rest.advertised.*``); ``None`` if it is not reported."""
    config_offset: int | None
    """The config offset that the worker had read when it reported; ``None`` if it is not
    reported."""
    assignment: tuple[WorkerItem, ...]
    """Its current items. In a classic group: what it ran when it joined, plus the leader's
    changes."""
    revoking: tuple[WorkerItem, ...] = ()
    """Items that it still has to release."""
    target_assignment: tuple[WorkerItem, ...] | None = None
    """Its target items; ``None`` in a classic group."""
    state: WorkerState | None = None
    """``None`` in a classic group."""
    metadata_version: int | None = None
    """The version of its metadata: 0 eager, 1 compatible, 2 sessioned, others for your own
    assignors."""


@dataclass(frozen=True, slots=True)
class ConnectDescription:
    """The state of a group of Kafka Connect workers, without its members."""

    leader: str | None
    """The member id of the worker that computed the assignment."""
    leader_url: str | None
    """The URL of that worker; ``None`` if it is not reported."""
    deferred: tuple[WorkerItem, ...] = ()
    """Deferred items, which wait for a worker to return; sorted. Empty in a classic group."""
    delay_ms: int = 0
    """How long they wait, counted from the assignment (ms); 0 for no delay."""
    assignor_error: int = 0
    """The assignor's own error number, which made the group keep its assignment; 0 for none."""
    computing: str | None = None
    """The member id of the worker that is asked to compute the next assignment."""


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """A member of a group."""

    member_id: str
    """The member's id."""
    instance_id: str | None
    """``group_instance_id`` of a static member."""
    client_id: str
    """The setting ``client_id`` of the member's client."""
    host: str
    """As reported by the broker, with a slash: ``/10.0.0.7``."""
    assignment: tuple[TopicPartition, ...]
    """Its assigned partitions, sorted."""
    target_assignment: tuple[TopicPartition, ...] | None = None
    """Its target partitions, sorted; ``None`` in a classic group."""
    epoch: int | None = None
    """The member epoch; ``None`` in a classic group."""
    rack: str | None = None
    """The member's rack; ``None`` without one, and in a classic group."""
    subscribed_topics: tuple[str, ...] = ()
    """Topics subscribed by name; empty in a classic group, which does not report them."""
    subscribed_pattern: str | None = None
    """The RE2 pattern that it is subscribed to; ``None`` without one."""
    is_classic: bool | None = None
    """Whether it uses the classic protocol; ``None`` if the broker does not report it."""
    said: AssignorMessage | None = None
    """A client-side assignor's metadata for ``assignment``; ``None`` if the broker computed it."""
    target_said: AssignorMessage | None = None
    """The same with ``target_assignment``."""
    worker: WorkerDescription | None = None
    """Set for a Kafka Connect worker, which has items instead of partitions."""


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group of consumers or of Connect workers, of KIP-848 or classic."""

    group_id: str
    """Its name."""
    type: str
    """``Consumer``, ``Classic`` or ``Connect``."""
    state: str
    """One of ``GROUP_STATES``."""
    assignor: str
    """The name that the broker or, in a classic group, the members have chosen; may be empty."""
    coordinator: Node
    """The broker that coordinates the group."""
    members: tuple[MemberDescription, ...]
    """By member id."""
    group_epoch: int | None = None
    """``None`` in a classic group."""
    target_assignment_epoch: int | None = None
    """Of the target assignment; smaller than ``group_epoch`` while a new one is computed. ``None``
    in a classic group."""
    protocol_type: str = "consumer"
    """``consumer``, or the protocol type of a classic group's members."""
    is_client_assignor: bool = False
    """Whether a member computed the target assignment, and not the broker."""
    connect: ConnectDescription | None = None
    """Set for a group of Kafka Connect workers."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A group's committed offset of a partition.

    Attributes:
        offset: The offset of the next record to read.
        leader_epoch: The leader epoch of the record before it (KIP-320); ``None`` if not known.
        metadata: The text of the commit.
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


@dataclass(frozen=True, slots=True)
class ListedOffset:
    """An offset from ``Admin.list_offsets``.

    The begin of the log, its end, or the first record at or after a time.
    """

    offset: int
    """-1 when there is no record from that time on."""
    timestamp_ms: int = -1
    """The record's timestamp, in milliseconds since 1970; -1 if there is none, as for the begin
    and the end of the log."""
    leader_epoch: int | None = None
    """The leader epoch of the record; ``None`` if not known."""


@dataclass(frozen=True, slots=True)
class TopicListing:
    """A topic, as ``Admin.list_topics`` finds it."""

    name: str
    """Its name."""
    topic_id: str
    """In Kafka's text form."""
    is_internal: bool
    """Whether Kafka itself uses it (``__consumer_offsets``, ...)."""


@dataclass(frozen=True, slots=True)
class PartitionDescription:
    """A partition of a topic."""

    partition: int
    """Its number, from 0."""
    leader: int | None
    """Node id; ``None`` while there is no leader."""
    leader_epoch: int
    """How often the leader changed."""
    replicas: tuple[int, ...]
    """Node ids."""
    in_sync_replicas: tuple[int, ...]
    """Node ids of those in sync."""
    offline_replicas: tuple[int, ...]
    """Node ids of those that are not available."""
    eligible_leader_replicas: tuple[int, ...] | None = None
    """Replicas not in sync that may still become leaders (KIP-966); ``None`` if the broker does not
    report them."""
    last_known_eligible_leader_replicas: tuple[int, ...] | None = None
    """Replicas that were eligible before all of them were lost."""


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic with its partitions."""

    name: str
    """Its name."""
    topic_id: str
    """In Kafka's text form."""
    is_internal: bool
    """Whether Kafka itself uses it (``__consumer_offsets``, ...)."""
    partitions: tuple[PartitionDescription, ...]
    """In order."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to be created. For ``None`` the brokers' default counts.

    Attributes:
        name: 1 to 249 letters, digits, dots, underscores and hyphens.
        partitions: How many partitions.
        replication_factor: How many replicas of each partition.
    """

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    configs: tuple[tuple[str, str], ...] = ()
    """(name, value) of settings."""


class ConfigSource(IntEnum):
    """Where the value of a setting comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8

    @classmethod
    def _missing_(cls, value: object) -> ConfigSource:
        del value  # a newer broker may have more
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A setting that could decide another one's value.

    Attributes:
        name: Its name.
        value: Its value; ``None`` where it is a secret, or has no value.
        source: Where the value comes from.
    """

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A setting of a group or a topic."""

    name: str
    """Its name."""
    value: str | None
    """``None`` where it is a secret, or has no value."""
    source: ConfigSource
    """Where the value comes from."""
    is_read_only: bool = False
    """Whether it cannot be changed."""
    is_sensitive: bool = False
    """Whether it is a secret."""
    synonyms: tuple[ConfigSynonym, ...] = ()
    """Values that could apply, the effective one first. If a value is removed, the next one
    applies."""

    @property
    def is_default(self) -> bool:
        """Whether it has not been set, neither here nor for the brokers."""
        return self.source is ConfigSource.DEFAULT_CONFIG

    @property
    def is_own(self) -> bool:
        """Whether it was set for this group or topic."""
        return self.source in (
            ConfigSource.DYNAMIC_TOPIC_CONFIG,
            ConfigSource.DYNAMIC_GROUP_CONFIG,
        )
