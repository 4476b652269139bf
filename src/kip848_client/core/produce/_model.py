"""The data types of producing: settings, producer ids, requests and results.

The core never sees a wire message. The records of a batch are bytes once the batch is sealed; a
``BatchBuilder`` builds and compresses them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, Protocol

from kip848_client.core.types import TopicId, TopicPartition

__all__ = [
    "ALL_REPLICAS",
    "NO_PRODUCER",
    "NO_SEQUENCE",
    "BatchBuilder",
    "CoordinatorKind",
    "Group",
    "Header",
    "MakeBuilder",
    "OffsetToCommit",
    "Place",
    "Placed",
    "ProduceSettings",
    "Produced",
    "ProducerId",
    "SealedBatch",
    "TransactionVersion",
]

ALL_REPLICAS: Final = -1
"""acks: the leader answers when all in-sync replicas have the records."""
NO_SEQUENCE: Final = -1

Header = tuple[str, bytes | None]


class ProducerId(NamedTuple):
    """Producer id and epoch. Never computed, always taken from an answer: how a broker changes an
    epoch depends on its version and on what is open."""

    number: int
    epoch: int


NO_PRODUCER: Final = ProducerId(-1, -1)


@dataclass(frozen=True, slots=True)
class ProduceSettings:
    """The user's settings. Names, meanings and defaults are Kafka's; see ``ProducerConfig``."""

    acks: int = ALL_REPLICAS
    idempotent: bool = True
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    linger_ms: int = 5
    batch_bytes: int = 16_384
    request_bytes: int = 1_048_576
    """The limit of one request, and of one record (``max.request.size``)."""
    buffer_bytes: int = 33_554_432
    """The memory budget for records that are queued or in flight (``buffer.memory``)."""
    in_flight_max: int = 5
    """Unanswered requests per broker (``max.in.flight.requests.per.connection``). With idempotence
    the batches of a partition stay in order whichever requests are lost."""
    delivery_timeout_ms: int = 120_000
    """From ``append`` to success or failure."""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    metadata_max_idle_ms: int = 300_000
    """A topic that was not written to for this long is forgotten."""


class Placed(NamedTuple):
    """Where a record is queued: its batch, its row in the batch, and its partition."""

    batch: int
    row: int
    tp: TopicPartition
    notify: bool
    """The core needs a step soon: post ``Appended``."""


class Place(NamedTuple):
    """Where a batch is in the log. The offset is -1 if no broker returned one: with acks=0, and for
    records that a broker already had (DUPLICATE_SEQUENCE_NUMBER)."""

    base_offset: int
    log_append_time_ms: int
    """-1: the records keep the timestamps of the producer."""
    log_start_offset: int = -1
    """The first offset of the partition, -1 if unknown."""


class BatchBuilder(Protocol):
    """A record batch being built: aiokafka's compiled builder behind a name of our own."""

    def append(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[Header]
    ) -> bool:
        """Add a record; returns False if it does not fit. The first one always fits."""
        ...

    @property
    def records(self) -> int:
        """The number of records."""
        ...

    @property
    def size_bytes(self) -> int:
        """The size before compression."""
        ...

    def seal(self) -> None:
        """Close the batch to more records and compress them."""
        ...

    def bytes_for(self, producer: ProducerId, first_sequence: int, *, transactional: bool) -> bytes:
        """The encoded batch for this producer. May be called again with another producer after an
        epoch bump."""
        ...

    def split(self) -> Sequence[BatchBuilder]:
        """Divide a batch that a broker finds too large into two or more; a single record returns
        itself."""
        ...


class MakeBuilder(Protocol):
    """Opens a batch of at most ``size_bytes``."""

    def __call__(self, size_bytes: int, /) -> BatchBuilder: ...


class SealedBatch(NamedTuple):
    """A batch in a request."""

    tp: TopicPartition
    topic_id: TopicId | None
    data: bytes
    records: int = 1
    raw_bytes: int = 1
    """The size before compression."""
    created_ms: int = 0
    """When its first record was appended."""
    is_again: bool = False
    """It was sent before."""


@dataclass(frozen=True, slots=True)
class Produced:
    """A broker's result for one partition of a request."""

    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: Mapping[int, str | None] = field(default_factory=dict[int, "str | None"])
    """The records that the broker refuses, by row in the batch (KIP-467)."""
    leader: tuple[int, int] | None = None
    """(node, leader epoch): the current leader, as named with an error (KIP-951)."""


# -- transactions --------------------------------------------------------------------------------


class TransactionVersion(Enum):
    """The finalized feature ``transaction.version``. Chosen once per transaction, because the two
    must not be mixed (KIP-890)."""

    V1 = 1
    """Separate requests add partitions and groups (transaction.version 0 and 1)."""
    V2 = 2
    """Produce v12 and TxnOffsetCommit v5 add them implicitly; EndTxn v5 returns the next epoch."""


class CoordinatorKind(Enum):
    """Kafka's key types in FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


class OffsetToCommit(NamedTuple):
    """The next offset to read, the leader epoch of the record before it (-1: unknown), a metadata
    text, and the id of the topic it was read from, if known: a topic that was created again is a
    different one."""

    offset: int
    leader_epoch: int
    metadata: str
    topic_id: TopicId | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The member that offsets are committed for, as it was when the offsets were taken."""

    group_id: str
    member_epoch: int
    member_id: str
    group_instance_id: str | None
