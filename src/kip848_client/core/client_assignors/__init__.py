"""Client-side assignors: the Protocol, its inputs and its results.

Write a ``ClientAssignor``, or use ``StickyAssignor`` or ``RackAwareAssignor``, and give it to
``Consumer(group_local_assignors=[...])``. They need a broker with the client-side assignors of
KIP-848's text (docs/reference/draft-protocols.md).
"""

from __future__ import annotations

from kip848_client.core.client_assignors import streams
from kip848_client.core.client_assignors._checked import (
    CheckedAssignment,
    MemberRow,
    checked_assignment,
)
from kip848_client.core.client_assignors._model import (
    ASSIGNOR_FAILED,
    AssignorFailed,
    AssignorMetadata,
    ClientAssignor,
    GroupAssignment,
    GroupMember,
    GroupTopic,
    MemberAssignment,
    NewAssignment,
    PreparedGroup,
)
from kip848_client.core.client_assignors._rack_aware import RackAwareAssignor
from kip848_client.core.client_assignors._sticky import StickyAssignor

__all__ = [
    "ASSIGNOR_FAILED",
    "AssignorFailed",
    "AssignorMetadata",
    "CheckedAssignment",
    "ClientAssignor",
    "GroupAssignment",
    "GroupMember",
    "GroupTopic",
    "MemberAssignment",
    "MemberRow",
    "NewAssignment",
    "PreparedGroup",
    "RackAwareAssignor",
    "StickyAssignor",
    "checked_assignment",
    "streams",
]
