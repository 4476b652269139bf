"""What a core is told of the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.cluster._model import TopicLeaders
from kip848_client.core.types import TopicId

__all__ = ["ClusterChanged", "ClusterEvent", "LeadersLearnt", "LeadersNotLearnt"]


@dataclass(frozen=True, slots=True)
class LeadersLearnt:
    """A Metadata answer, asked for by ``LearnLeaders`` (``number``) or by somebody else (0). A
    topic that is not there has an error code."""

    number: int
    topics: tuple[TopicLeaders, ...]
    gone: frozenset[TopicId]
    """Ids that were asked for and are not known to the cluster."""
    nodes: frozenset[int]
    """The brokers that are there."""


@dataclass(frozen=True, slots=True)
class LeadersNotLearnt:
    """Answer to ``LearnLeaders``: no broker answered."""

    number: int
    why: str


@dataclass(frozen=True, slots=True)
class ClusterChanged:
    """The client began anew from its bootstrap servers (KIP-1102): nothing that is known of nodes,
    leaders, epochs and sessions holds any more."""


ClusterEvent = LeadersLearnt | LeadersNotLearnt | ClusterChanged
"""All of it. A core whose driver tells it of the cluster takes these besides its own events."""
