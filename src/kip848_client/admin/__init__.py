"""Administration: groups with their epochs and assignments, offsets, settings, topics."""

from __future__ import annotations

from kip848_client.admin._admin import Admin
from kip848_client.admin._model import (
    GROUP_STATES,
    GROUP_TYPES,
    CommittedOffset,
    ConfigEntry,
    ConfigSource,
    GroupDescription,
    GroupListing,
    ListedOffset,
    MemberDescription,
    NewTopic,
    Node,
    PartitionDescription,
    TopicDescription,
    TopicListing,
)
from kip848_client.admin._offset_wire import EARLIEST, LATEST
from kip848_client.admin._reset import (
    ByDuration,
    OffsetReset,
    ShiftBy,
    ToCurrent,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToPlan,
    ToTime,
    parse_datetime_ms,
    parse_plan,
    written_plan,
)

__all__ = [
    "EARLIEST",
    "GROUP_STATES",
    "GROUP_TYPES",
    "LATEST",
    "Admin",
    "ByDuration",
    "CommittedOffset",
    "ConfigEntry",
    "ConfigSource",
    "GroupDescription",
    "GroupListing",
    "ListedOffset",
    "MemberDescription",
    "NewTopic",
    "Node",
    "OffsetReset",
    "PartitionDescription",
    "ShiftBy",
    "ToCurrent",
    "ToEarliest",
    "ToLatest",
    "ToOffset",
    "ToPlan",
    "ToTime",
    "TopicDescription",
    "TopicListing",
    "parse_datetime_ms",
    "parse_plan",
    "written_plan",
]
