"""Assignors of KIP-848, on both sides.

``ClientAssignor`` is the protocol of an assignor that runs in a member: write one, or use
``StickyAssignor`` or ``RackAwareAssignor``, and give it to the consumer's setting
``group_local_assignors``. Only brokers with the client-side assignors of KIP-848's text can use
them (docs/reference/draft-protocols.md). ``streams`` has what members of Kafka Streams exchange.
``Assignor`` is the protocol of an assignor that runs in the coordinator.
"""

from __future__ import annotations

from kip848_client.core.assignors import Assignor
from kip848_client.core.client_assignors import (
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
    RackAwareAssignor,
    StickyAssignor,
    streams,
)

__all__ = [
    "ASSIGNOR_FAILED",
    "Assignor",
    "AssignorFailed",
    "AssignorMetadata",
    "ClientAssignor",
    "GroupAssignment",
    "GroupMember",
    "GroupTopic",
    "MemberAssignment",
    "NewAssignment",
    "PreparedGroup",
    "RackAwareAssignor",
    "StickyAssignor",
    "streams",
]
