"""Partitions by topic id, as groups have them, and by topic name, as ConsumerProtocol has them.

A topic that does not exist (any more) is left out in either direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kip848_client.core.types import TopicId
from kip848_client.errors import WireError
from mock_coordinator.core.groups.records.assignor_values import (
    CLASSIC_VERSION,
    NO_METADATA,
    AssignmentMetadata,
)
from mock_coordinator.core.groups.records.consumer_protocol import (
    ConsumerAssignment,
    TopicPartitions,
    write_assignment,
)
from mock_coordinator.core.topics.catalog import Catalog

__all__ = ["assignment_of", "partitions_of", "written_for"]

_HEADER_BYTES: Final = 2
_NEWEST: Final = 3


def assignment_of(
    catalog: Catalog, partitions: Mapping[TopicId, Iterable[int]]
) -> ConsumerAssignment:
    """What a member is given, in its own words."""
    return ConsumerAssignment(
        assigned_partitions=tuple(
            TopicPartitions(topic=topic.name, partitions=tuple(sorted(numbers)))
            for topic_id, numbers in partitions.items()
            if (topic := catalog.topic_by_id(topic_id)) is not None
        )
    )


def partitions_of(
    catalog: Catalog, topics: Iterable[TopicPartitions]
) -> dict[TopicId, tuple[int, ...]]:
    """What a member was given, in the words of a consumer group."""
    return {
        topic.topic_id: tuple(each.partitions)
        for each in topics
        if (topic := catalog.topic(each.topic)) is not None
    }


def written_for(
    catalog: Catalog,
    partitions: Mapping[TopicId, Iterable[int]],
    metadata: bytes,
    said: AssignmentMetadata = NO_METADATA,
) -> bytes:
    """The assignment in the version in which the member wrote its subscription (``metadata``).
    What a client-side assignor said to the member (``said``) is the UserData, unless it said that
    when the member spoke the consumer protocol.

    Raises ``WireError`` with Kafka's words when that cannot be seen.
    """
    if len(metadata) < _HEADER_BYTES:
        raise WireError("Buffer underflow while parsing consumer protocol's header")
    version = int.from_bytes(metadata[:_HEADER_BYTES], "big", signed=True)
    if version < 0:
        raise WireError(f"Unsupported assignment version: {version}")
    assignment = assignment_of(catalog, partitions)
    if said.version == CLASSIC_VERSION:
        assignment.user_data = said.data or None
    return write_assignment(assignment, min(version, _NEWEST))
