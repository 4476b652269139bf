"""Commands of a core to its driver to learn more about the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.types import TopicId

__all__ = ["LearnLeaders"]


@dataclass(frozen=True, slots=True)
class LearnLeaders:
    """Request metadata, by id where the topic has one, else by name. At most one request is open.
    Answer: ``LeadersLearnt`` or ``LeadersNotLearnt`` with the same number."""

    number: int
    topic_ids: frozenset[TopicId]
    topics: frozenset[str]
    why: str
    to_create: frozenset[str] = frozenset()
    """Those of ``topics`` that a broker may create when it gets this request."""
