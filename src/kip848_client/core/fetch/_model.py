"""The data types of fetching: settings, requests to brokers and their answers, slices of a log.

``FetchIntent`` and ``FetchAnswer`` are the domain side of Fetch (API 1, v13 and newer: topics are
identified by id). The core never sees a wire message, so a simulation can do without bytes where it
likes; the records of an answer are the bytes that the broker stored, and only their batch headers
are read here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kip848_client.core.cluster import NO_EPOCH, NO_NODE, Endpoint
from kip848_client.core.types import TopicId, TopicIdPartition, TopicPartition

__all__ = [
    "BATCH_HEADER_BYTES",
    "EARLIEST",
    "LATEST",
    "BatchRef",
    "Cursor",
    "EpochEnd",
    "FetchAnswer",
    "FetchIntent",
    "FetchSettings",
    "FoundOffset",
    "ListedOffset",
    "PartitionAnswer",
    "Slice",
    "StoredOffset",
    "Wanted",
]

LATEST: Final = -1
"""ListOffsets: the end of the partition; for read_committed the last stable offset."""
EARLIEST: Final = -2
"""ListOffsets: the first offset that the partition still has."""
BATCH_HEADER_BYTES: Final = 61
"""Header size of a record batch in the format of Kafka 0.11 and newer (magic 2)."""


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """User settings. Names and meanings are Kafka's; see ``ConsumerConfig``."""

    min_bytes: int = 1
    max_wait_ms: int = 500
    max_bytes: int = 52_428_800
    """Maximum bytes per request (``fetch.max.bytes``)."""
    max_partition_bytes: int = 1_048_576
    """Maximum bytes per partition and request (``max.partition.fetch.bytes``)."""
    buffer_bytes: int = 67_108_864
    """The budget: bytes that may be buffered or requested, for all partitions together. Exceeded by
    at most one batch per node, because a broker always sends the first batch whole."""
    read_committed: bool = False
    rack: str = ""
    reset_policy: str = "latest"
    """``earliest``, ``latest``, ``none``, or ``by_duration`` (KIP-1106) with ``reset_age_ms``."""
    reset_age_ms: int = 0
    """For ``by_duration``: begin at the first record that is not older than this."""
    clock_origin_ms: int = 0
    """What to add to ``now_ms`` to get milliseconds since 1970."""
    has_group: bool = False
    """Whether there may be committed offsets to begin at."""
    request_timeout_ms: int = 40_000
    """Timeout for an answer, in addition to the time that a Fetch may wait at the broker."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    rows_a_step: int = 500
    """Maximum number of rows of an answer processed per step; the event loop runs after each."""


class Wanted(NamedTuple):
    """One partition of a Fetch request."""

    topic_id: TopicId
    partition: int
    offset: int
    leader_epoch: int
    """CurrentLeaderEpoch: the epoch of the intended leader; a broker with another epoch refuses
    (KIP-320)."""
    last_epoch: int
    """LastFetchedEpoch: the epoch of the last record before ``offset``; a broker whose log differs
    there answers with the end of that epoch in its own log (KIP-595)."""
    max_bytes: int

    @property
    def key(self) -> TopicIdPartition:
        """The topic id and partition number."""
        return (self.topic_id, self.partition)


@dataclass(frozen=True, slots=True)
class FetchIntent:
    """Every field of a Fetch request that the core decides."""

    session_id: int
    session_epoch: int
    add: tuple[Wanted, ...]
    """New or changed in the session, in the order in which they should be served."""
    forget: tuple[TopicIdPartition, ...]
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    read_committed: bool
    rack: str


class EpochEnd(NamedTuple):
    """Where a leader epoch ends in the broker's log."""

    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class PartitionAnswer:
    """A broker's answer for one partition."""

    topic_id: TopicId
    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    diverging: EpochEnd | None = None
    """The log of the broker differs from what was read before (KIP-595)."""
    leader: tuple[int, int] | None = None
    """(node, leader epoch) of the current leader, sent with an error (KIP-951). The node may be
    -1."""
    preferred_replica: int = NO_NODE
    """The replica to fetch from instead (KIP-392)."""
    aborted: tuple[tuple[int, int], ...] = ()
    """(producer id, first offset) of aborted transactions, in no guaranteed order."""
    records: bytes = b""
    """Record batches as stored; the last one may be truncated."""

    @property
    def key(self) -> TopicIdPartition:
        """The topic id and partition number."""
        return (self.topic_id, self.partition)


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """A broker's answer to a Fetch."""

    error_code: int = 0
    session_id: int = 0
    throttle_time_ms: int = 0
    partitions: tuple[PartitionAnswer, ...] = ()
    nodes: tuple[Endpoint, ...] = ()
    """Addresses of the leaders that the answer names (KIP-951)."""
    size_bytes: int = 0
    """Total size of the records."""


class StoredOffset(NamedTuple):
    """A group's committed offset of a partition: the next offset, and the leader epoch of the
    record before it."""

    offset: int
    leader_epoch: int = NO_EPOCH


class ListedOffset(NamedTuple):
    """ListOffsets' answer for one partition; offset -1 without an error means that there is
    none."""

    error_code: int = 0
    offset: int = -1
    timestamp: int = -1
    leader_epoch: int = NO_EPOCH


class FoundOffset(NamedTuple):
    """Result of a look-up by time; offset -1 if no record is that recent."""

    offset: int
    timestamp: int
    leader_epoch: int = NO_EPOCH


class BatchRef(NamedTuple):
    """Location of a record batch in the bytes of its slice, with fields of its header."""

    start: int
    end: int
    base_offset: int
    next_offset: int
    """The offset after the batch: base + last offset delta + 1, even if records were compacted
    away."""
    records: int
    """Number of records; 0 is legal (compaction)."""
    attributes: int
    base_timestamp: int
    max_timestamp: int
    leader_epoch: int
    magic: int
    skip: bool
    """Not delivered: a control batch, or part of an aborted transaction."""


@dataclass(slots=True)
class Cursor:
    """The application's position in a partition, for one generation.

    The core creates one for each new generation. The reader that delivers records writes
    ``consumed`` and ``consumed_epoch`` with each record, and must check ``readable`` first (or
    watch for changes, see ``FetchCore.changes``): it is false from the very step in which the
    partition was paused, held, sought or revoked.
    """

    tp: TopicPartition
    topic_id: TopicId
    generation: int
    consumed: int
    """The offset of the next record for the application."""
    consumed_epoch: int = NO_EPOCH
    """The leader epoch of the record before ``consumed``."""
    readable: bool = True


@dataclass(slots=True)
class Slice:
    """A run of fetched batches of one partition that is not yet completely delivered."""

    cursor: Cursor
    first_offset: int
    """The requested offset: the first batch may begin before it, and compaction may leave a gap."""
    next_offset: int
    """The offset after the slice, where the following slice begins."""
    last_epoch: int
    """The leader epoch of its last batch."""
    raw: bytes
    batches: tuple[BatchRef, ...] = field(repr=False)

    @property
    def tp(self) -> TopicPartition:
        """The partition of the slice."""
        return self.cursor.tp
