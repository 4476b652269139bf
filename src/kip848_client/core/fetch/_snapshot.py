"""A frozen copy of the fetch core's state, for tests, checkers and health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kip848_client.core.fetch import _partition as reasons
from kip848_client.core.fetch._assigned import Assigned
from kip848_client.core.fetch._partition import Partition, Phase
from kip848_client.core.fetch._planner import Node, Planner
from kip848_client.core.fetch._positions import Positions
from kip848_client.core.fetch._sessions import SessionSnapshot
from kip848_client.core.fetch._unread_slices import UnreadSlices
from kip848_client.core.types import TopicId, TopicIdPartition, TopicPartition
from kip848_client.errors import Kip848Error

__all__ = ["FetchSnapshot", "NodeSnapshot", "PartitionSnapshot", "take_snapshot"]

_REASONS: Final = (
    ("paused", reasons.PAUSED),
    ("held", reasons.HELD),
    ("limited", reasons.LIMITED),
    ("not-started", reasons.NOT_STARTED),
    ("full", reasons.FULL),
    ("resting", reasons.RESTING),
    ("no-leader", reasons.NO_LEADER),
)


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """One assigned partition."""

    topic_id: TopicId | None
    generation: int
    phase: Phase
    is_sought: bool
    """Whether its position is being looked up or checked."""
    why_not: frozenset[str]
    """What keeps it from being fetched, in addition to its phase."""
    consumed: int | None
    consumed_epoch: int | None
    slices: tuple[tuple[int, int], ...]
    """(first offset, next offset) of each buffered slice."""
    fetch_offset: int
    fetch_epoch: int
    buffered_bytes: int
    node: int
    """The broker it is fetched from, -1 for none at the moment."""
    read_from: int
    """The replica that the leader named, -1 for none."""
    failures: int
    error: Kip848Error | None


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """One broker."""

    session: SessionSnapshot
    fetch: int | None
    """The number of the open request."""
    reserved_bytes: int
    wanted: tuple[TopicIdPartition, ...]
    """The partitions to fetch from it, in order."""
    rest_until_ms: int
    throttled_until_ms: int
    failures: int


@dataclass(frozen=True, slots=True)
class FetchSnapshot:
    """The whole state."""

    partitions: Mapping[TopicPartition, PartitionSnapshot]
    nodes: Mapping[int, NodeSnapshot]
    buffered_bytes: int
    reserved_bytes: int
    stale_answers: int
    """Number of answers, or parts of them, to questions that were no longer open."""


def take_snapshot(
    assigned: Assigned,
    planner: Planner,
    buffer: UnreadSlices,
    positions: Positions,
    stale_answers: int,
) -> FetchSnapshot:
    """Take a snapshot of the current state."""
    return FetchSnapshot(
        {
            tp: _of_partition(each, is_sought=positions.is_looking(tp))
            for tp, each in assigned.by_tp.items()
        },
        {number: _of_node(each) for number, each in planner.nodes.items()},
        buffer.size_bytes,
        planner.reserved_bytes,
        stale_answers,
    )


def _of_partition(partition: Partition, *, is_sought: bool) -> PartitionSnapshot:
    cursor = partition.cursor
    return PartitionSnapshot(
        topic_id=partition.topic_id,
        generation=partition.generation,
        phase=partition.phase,
        is_sought=is_sought,
        why_not=frozenset(name for name, reason in _REASONS if partition.why_not & reason),
        consumed=None if cursor is None else cursor.consumed,
        consumed_epoch=None if cursor is None else cursor.consumed_epoch,
        slices=tuple((each.first_offset, each.next_offset) for each in partition.slices),
        fetch_offset=partition.fetch_offset,
        fetch_epoch=partition.fetch_epoch,
        buffered_bytes=partition.buffered_bytes,
        node=partition.node,
        read_from=partition.read_from,
        failures=partition.failures,
        error=partition.error,
    )


def _of_node(node: Node) -> NodeSnapshot:
    fetch = node.fetch
    return NodeSnapshot(
        session=node.session.snapshot(),
        fetch=None if fetch is None else fetch.number,
        reserved_bytes=0 if fetch is None else fetch.reserved_bytes,
        wanted=tuple(node.ring),
        rest_until_ms=node.rest_until_ms,
        throttled_until_ms=node.throttled_until_ms,
        failures=node.failures,
    )
