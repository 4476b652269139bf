"""Kafka's server-side assignors as pure functions, with results identical to a broker's.

``BUILTIN`` holds them by the name that members ask for, in Kafka's default order; build a
:class:`GroupSpec`, call ``assign``. The coordinator uses them; a client can use them to predict a
broker's result.

The order helpers (:class:`TimelineOrder`, :func:`member_order`, :func:`string_set_order`,
:func:`partition_order`) reproduce Java's iteration order, on which the exact results depend.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kip848_client.core.assignors._draft import same_partitions, stored_topic_order
from kip848_client.core.assignors._java_order import (
    TimelineOrder,
    member_order,
    partition_order,
    string_map_order,
    string_set_order,
)
from kip848_client.core.assignors._spec import (
    NO_PARTITIONS,
    Assignment,
    Assignor,
    AssignorError,
    GroupSpec,
    MemberSpec,
    Partitions,
    SubscriptionType,
    TopicMetadata,
)
from kip848_client.core.assignors.range import RangeAssignor
from kip848_client.core.assignors.selection import (
    described_assignor,
    elect_assignor,
    subscription_type,
)
from kip848_client.core.assignors.uniform import UniformAssignor

__all__ = [
    "BUILTIN",
    "NO_PARTITIONS",
    "Assignment",
    "Assignor",
    "AssignorError",
    "GroupSpec",
    "MemberSpec",
    "Partitions",
    "RangeAssignor",
    "SubscriptionType",
    "TimelineOrder",
    "TopicMetadata",
    "UniformAssignor",
    "described_assignor",
    "elect_assignor",
    "member_order",
    "partition_order",
    "same_partitions",
    "stored_topic_order",
    "string_map_order",
    "string_set_order",
    "subscription_type",
]

BUILTIN: Final[Mapping[str, Assignor]] = MappingProxyType(
    {"uniform": UniformAssignor(), "range": RangeAssignor()}
)
"""The default assignors of a broker, the preferred one first."""
