"""One event, as a value."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.types import TopicPartition
from kip848_client.history.core._schema import COORDINATOR, SCHEMA

__all__ = ["HistoryEvent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEvent:
    """Something that happened to a member or a group.

    The fields are ``FIELDS``, in their order (docs/reference/history.md). The recorder sets
    ``writer``, ``seq`` and ``host``.

    Attributes:
        schema: The number of the schema.
        writer: Who wrote it: random, new for each recording. With ``seq`` it names the event.
        seq: 0, 1, 2 ...; a missing number is a lost event.
        host: The writer's host, whose clock ``time_ms`` is of.
        role: ``consumer``, ``worker`` or ``coordinator``.
        time_ms: When, in milliseconds since 1970.
        kind: What happened, one of ``KINDS``.
        group_id: Name of the group.
        member_id: The member; ``None`` in what is about the whole group.
        instance_id: ``group.instance.id`` of a static member.
        client_id: ``client.id`` of the member.
        member_epoch: The member epoch after it.
        group_epoch: The group epoch; of a target its epoch.
        old_state: The member's state before.
        state: The member's state after.
        cause: Why: the name of an error, or a few words.
        duration_ms: How long it took or has lasted, in milliseconds; depends on the kind.
        count: How many; depends on the kind.
    """

    schema: int = SCHEMA
    writer: str = ""
    seq: int = 0
    host: str = ""
    role: str
    time_ms: int
    kind: str
    group_id: str
    member_id: str | None = None
    instance_id: str | None = None
    client_id: str | None = None
    member_epoch: int | None = None
    group_epoch: int | None = None
    old_state: str | None = None
    state: str | None = None
    partitions: tuple[TopicPartition, ...] = ()
    """Sorted, each once."""
    cause: str | None = None
    duration_ms: int | None = None
    count: int | None = None

    @property
    def is_members(self) -> bool:
        """Whether a member wrote it."""
        return self.role != COORDINATOR

    @property
    def order(self) -> tuple[int, str, int]:
        """The sort key of events."""
        return self.time_ms, self.writer, self.seq
