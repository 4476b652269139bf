"""The nouns of a cluster: brokers and where they listen, topics, and who leads their partitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from kip848_client.core.types import TopicId

__all__ = [
    "NO_EPOCH",
    "NO_NODE",
    "Endpoint",
    "MetadataSettings",
    "PartitionLeader",
    "TopicLeaders",
]

NO_EPOCH: Final = -1
"""A leader epoch that is not known."""
NO_NODE: Final = -1
"""No broker: a partition without a leader, an answer without a preferred replica."""


@dataclass(frozen=True, slots=True)
class MetadataSettings:
    """When to ask for metadata. Names and meanings are Kafka's; see ``ClientConfig``."""

    max_age_ms: int = 300_000
    """What is known is asked for again when it is so old (``metadata.max.age.ms``)."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000


class Endpoint(NamedTuple):
    """Where a broker listens."""

    node: int
    host: str
    port: int
    rack: str | None = None


class PartitionLeader(NamedTuple):
    """Where a partition is, as metadata tells it."""

    leader: int
    """``NO_NODE`` while nobody leads."""
    epoch: int = NO_EPOCH
    replicas: tuple[int, ...] = ()
    """Those that are in sync."""


@dataclass(frozen=True, slots=True)
class TopicLeaders:
    """What metadata tells of one topic."""

    topic: str
    topic_id: TopicId
    partitions: Mapping[int, PartitionLeader]
    error_code: int = 0
