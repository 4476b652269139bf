"""The keys of ``__consumer_offsets``, field by field, as in Kafka's record definitions.

A key is two bytes of type and then these fields; the types are Kafka's key types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from kip848_client.core.wire._fields import int32, string

__all__ = ["GroupKey", "GroupMemberKey", "OffsetCommitKey", "RegularExpressionKey"]


@dataclass(slots=True, kw_only=True)
class GroupKey:
    """Types 2, 3, 4 and 6: one record for each group."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = -1

    group: str = string()


@dataclass(slots=True, kw_only=True)
class OffsetCommitKey:
    """Types 0 (Kafka's before 0.8.2) and 1: one record for each partition of a group."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = -1

    group: str = string()
    topic: str = string()
    partition: int = int32()


@dataclass(slots=True, kw_only=True)
class GroupMemberKey:
    """Types 5, 7 and 8: one record for each member."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = -1

    group: str = string()
    member_id: str = string()


@dataclass(slots=True, kw_only=True)
class RegularExpressionKey:
    """Type 16: one record for each regex of a group."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = -1

    group: str = string()
    regular_expression: str = string()
