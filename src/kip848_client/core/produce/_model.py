"""The nouns of producing: settings, who a producer is, what is asked of brokers and answered.

The core never sees a wire message. The records of a batch are bytes as soon as the batch is sealed;
how they are built and compressed is a ``BatchBuilder``'s business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, Protocol

from kip848_client.core.types import TopicId, TopicPartition

__all__ = [
    "ALL_REPLICAS",
    "NOBODY",
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
    """Who a broker thinks we are. Never computed, always answered: what a broker makes of an epoch
    depends on its version and on what is open."""

    number: int
    epoch: int


NOBODY: Final = ProducerId(-1, -1)


@dataclass(frozen=True, slots=True)
class ProduceSettings:
    """What the user may set. Names, meanings and defaults are Kafka's; see ``ProducerConfig``."""

    acks: int = ALL_REPLICAS
    idempotent: bool = True
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    linger_ms: int = 5
    batch_bytes: int = 16_384
    request_bytes: int = 1_048_576
    """Of one request, and of one record (``max.request.size``)."""
    buffer_bytes: int = 33_554_432
    """The budget of records that wait or are on their way (``buffer.memory``)."""
    in_flight_max: int = 5
    """Requests to one broker that are not answered yet (``max.in.flight.requests.per.connection``).
    With idempotence the batches of a partition stay in order whatever is lost."""
    delivery_timeout_ms: int = 120_000
    """From ``append`` to success or failure."""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
    metadata_max_idle_ms: int = 300_000
    """A topic that nobody has written to for so long is forgotten."""


class Placed(NamedTuple):
    """Where a record waits: batch, row in it, and the partition."""

    batch: int
    row: int
    tp: TopicPartition
    notify: bool
    """The core wants a step soon: post ``Appended``."""


class Place(NamedTuple):
    """Where a record is in the log, when its batch is done. The offset is -1 where no broker told:
    with acks=0, and for records that a broker already had (DUPLICATE_SEQUENCE_NUMBER)."""

    base_offset: int
    log_append_time_ms: int
    """-1: the records keep the time that the producer gave them."""
    log_start_offset: int = -1
    """The first offset that the partition has, -1 where it was not told."""


class BatchBuilder(Protocol):
    """One record batch on its way: aiokafka's compiled builder behind a name of ours."""

    def append(
        self, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Sequence[Header]
    ) -> bool:
        """Add a record; False when it does not fit any more. The first one always fits."""
        ...

    @property
    def records(self) -> int:
        """How many are in it."""
        ...

    @property
    def size_bytes(self) -> int:
        """Before compression."""
        ...

    def seal(self) -> None:
        """No more records; compress them."""
        ...

    def bytes_for(self, producer: ProducerId, first_sequence: int, *, transactional: bool) -> bytes:
        """The batch for this producer; may be asked again for another one after an epoch bump."""
        ...

    def split(self) -> Sequence[BatchBuilder]:
        """Two batches or more out of one that a broker finds too large; itself for one record."""
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
    """Before compression."""
    created_ms: int = 0
    """When its first record was appended."""
    is_again: bool = False
    """It was sent before."""


@dataclass(frozen=True, slots=True)
class Produced:
    """What a broker said of one partition of a request."""

    error_code: int = 0
    base_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    record_errors: Mapping[int, str | None] = field(default_factory=dict[int, "str | None"])
    """By row in the batch: records that the broker refuses (KIP-467)."""
    leader: tuple[int, int] | None = None
    """(node, leader epoch): who leads now, said with an error (KIP-951)."""


# -- transactions --------------------------------------------------------------------------------


class TransactionVersion(Enum):
    """The finalized feature ``transaction.version``: chosen once for each transaction, because the
    two must not be mixed (KIP-890)."""

    V1 = 1
    """Partitions and groups are added by requests of their own (transaction.version 0 and 1)."""
    V2 = 2
    """Produce v12 and TxnOffsetCommit v5 add by themselves; EndTxn v5 answers the next epoch."""


class CoordinatorKind(Enum):
    """Kafka's key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


class OffsetToCommit(NamedTuple):
    """The next offset to read, the epoch of the record before it (-1: not known), a text; and the
    topic that it was read from, if its id is known: one that was created again is another one."""

    offset: int
    leader_epoch: int
    metadata: str
    topic_id: TopicId | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """The member that offsets are committed for: a snapshot, taken with the offsets."""

    group_id: str
    member_epoch: int
    member_id: str
    group_instance_id: str | None
