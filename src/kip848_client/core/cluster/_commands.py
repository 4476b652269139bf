"""What a core asks of its driver to know more of the cluster."""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.types import TopicId

__all__ = ["LearnLeaders"]


@dataclass(frozen=True, slots=True)
class LearnLeaders:
    """Ask for metadata: by id what has one, by name what has not. At most one is open. Answer:
    ``LeadersLearnt`` or ``LeadersNotLearnt`` with the same number."""

    number: int
    topic_ids: frozenset[TopicId]
    topics: frozenset[str]
    why: str
    to_create: frozenset[str] = frozenset()
    """Those of ``topics`` that a broker may create because they are asked for."""
