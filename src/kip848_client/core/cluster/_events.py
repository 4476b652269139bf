"""Events about the cluster for a core."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.cluster._model import TopicLeaders
from kip848_client.core.types import TopicId

__all__ = ["ClusterChanged", "ClusterEvent", "LeadersLearnt", "LeadersNotLearnt"]


@dataclass(frozen=True, slots=True)
class LeadersLearnt:
    """A Metadata answer to ``LearnLeaders`` (``number``), or to another part of the client (0). A
    topic that does not exist has an error code."""

    number: int
    topics: tuple[TopicLeaders, ...]
    gone: frozenset[TopicId]
    """Requested ids that the cluster does not know."""
    nodes: frozenset[int]
    """The brokers of the cluster."""


@dataclass(frozen=True, slots=True)
class LeadersNotLearnt:
    """Answer to ``LearnLeaders``: no broker answered."""

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class ClusterChanged:
    """The client restarted from its bootstrap servers (KIP-1102). Nothing known about nodes,
    leaders, epochs and sessions is valid any more."""


ClusterEvent = LeadersLearnt | LeadersNotLearnt | ClusterChanged
"""All of these. A core whose driver reports about the cluster takes them besides its own events."""
