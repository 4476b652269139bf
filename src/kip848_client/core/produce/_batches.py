"""One batch of records, from its first record to its end."""

from __future__ import annotations

from kip848_client.core.produce._model import NO_SEQUENCE, NOBODY, BatchBuilder, ProducerId
from kip848_client.core.types import TopicPartition

__all__ = ["Batch"]


class Batch:
    """``number`` names it to the driver; ``order`` is its place among the batches of its partition.
    Parts of a batch that was split follow each other where it was."""

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
        """Of the budget."""
        self.records = 0
        self.doubt = False
        """A broker may have it: it was sent, and no answer tells that it was refused."""
        self.is_over = False
        """The user was told of its end. It may be on its way nevertheless."""
        self.was_sent = False
        """At least once."""
        self.producer: ProducerId = NOBODY
        self.first_sequence = NO_SEQUENCE

    @property
    def has_sequence(self) -> bool:
        """Whether it has sequence numbers of ``producer``."""
        return self.first_sequence != NO_SEQUENCE

    def forget_sequence(self) -> None:
        """No broker has it under the numbers that it had."""
        self.producer = NOBODY
        self.first_sequence = NO_SEQUENCE
        self.doubt = False
