"""One batch of records, from its first record to its result."""

from __future__ import annotations

from kip848_client.core.produce._model import NO_PRODUCER, NO_SEQUENCE, BatchBuilder, ProducerId
from kip848_client.core.types import TopicPartition

__all__ = ["Batch"]


class Batch:
    """``number`` identifies the batch to the driver; ``order`` is its place among the batches of
    its partition. The parts of a split batch follow each other in its old place."""

    __slots__ = (
        "builder",
        "created_ms",
        "deadline_ms",
        "doubt",
        "first_sequence",
        "held_bytes",
        "is_over",
        "number",
        "order",
        "producer",
        "records",
        "tp",
        "was_sent",
    )

    def __init__(
        self,
        number: int,
        order: tuple[int, ...],
        tp: TopicPartition,
        builder: BatchBuilder,
        *,
        created_ms: int,
        deadline_ms: int,
        held_bytes: int,
    ) -> None:
        self.number = number
        self.order = order
        self.tp = tp
        self.builder = builder
        self.created_ms = created_ms
        self.deadline_ms = deadline_ms
        self.held_bytes = held_bytes
        """Bytes of the budget."""
        self.records = 0
        self.doubt = False
        """A broker may have it: it was sent, and no answer has refused it."""
        self.is_over = False
        """Its result was reported to the user. It may still be in flight."""
        self.was_sent = False
        """It was sent at least once."""
        self.producer: ProducerId = NO_PRODUCER
        self.first_sequence = NO_SEQUENCE

    @property
    def has_sequence(self) -> bool:
        """Whether it has sequence numbers of ``producer``."""
        return self.first_sequence != NO_SEQUENCE

    def forget_sequence(self) -> None:
        """No broker has it under its old sequence numbers."""
        self.producer = NO_PRODUCER
        self.first_sequence = NO_SEQUENCE
        self.doubt = False
