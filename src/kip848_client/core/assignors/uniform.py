"""The uniform assignor: equal numbers of partitions, moving as few as possible.

Kafka's default. It has two builders; the group's subscription type chooses.
"""

from __future__ import annotations

from collections.abc import Mapping

from kip848_client.core.assignors._spec import (
    Assignment,
    Assignor,
    GroupSpec,
    SubscriptionType,
    TopicMetadata,
)
from kip848_client.core.assignors._uniform_heterogeneous import assign_heterogeneous
from kip848_client.core.assignors._uniform_homogeneous import assign_homogeneous
from kip848_client.core.types import TopicId

__all__ = ["UniformAssignor"]


class UniformAssignor(Assignor):
    """Kafka's ``uniform`` assignor (4.0.1 to 4.4)."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """``uniform``."""
        return "uniform"

    def assign(self, group: GroupSpec, topics: Mapping[TopicId, TopicMetadata]) -> Assignment:
        """Balance the partitions over the members.

        Raises ``AssignorError`` when a subscribed topic is not in ``topics``.
        """
        if not group.members:
            return Assignment({})
        if group.subscription_type is SubscriptionType.HOMOGENEOUS:
            return assign_homogeneous(group, topics)
        return assign_heterogeneous(group, topics)
