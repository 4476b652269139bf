"""Data types of a cluster: brokers and their addresses, topics, and partition leaders."""

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
"""An unknown leader epoch."""
NO_NODE: Final = -1
"""No broker: a partition without a leader, or an answer without a preferred replica."""


@dataclass(frozen=True, slots=True)
class MetadataSettings:
    """When to request metadata. Names and meanings are Kafka's; see ``ClientConfig``."""

    max_age_ms: int = 300_000
    """Metadata is requested again when it is this old (``metadata.max.age.ms``)."""
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000


class Endpoint(NamedTuple):
    """The address of a broker."""

    node: int
    host: str
    port: int
    rack: str | None = None


class PartitionLeader(NamedTuple):
    """The leader and replicas of a partition, as of the last metadata."""

    leader: int
    """``NO_NODE`` while there is no leader."""
    epoch: int = NO_EPOCH
    replicas: tuple[int, ...] = ()
    """The in-sync replicas."""


@dataclass(frozen=True, slots=True)
class TopicLeaders:
    """The metadata of one topic."""

    topic: str
    topic_id: TopicId
    partitions: Mapping[int, PartitionLeader]
    error_code: int = 0
