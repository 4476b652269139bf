"""Types of identifiers that all layers share.

Ids are ``NewType``s over the cheapest runtime type, so that a type checker tells them apart and the
hot paths pay nothing (a topic id is 16 raw bytes, not a ``uuid.UUID``: hashing one is 5x cheaper).
"""

from __future__ import annotations

import base64
import binascii
from typing import Final, NamedTuple, NewType
from uuid import UUID

__all__ = [
    "ANY_VERSION",
    "JOIN_EPOCH",
    "LEAVE_EPOCH",
    "STATIC_LEAVE_EPOCH",
    "ZERO_TOPIC_ID",
    "GroupId",
    "GroupMetadata",
    "MemberId",
    "TopicId",
    "TopicIdPartition",
    "TopicPartition",
    "VersionLimits",
    "Wait",
    "format_topic_id",
    "parse_topic_id",
]

TopicId = NewType("TopicId", bytes)
"""The 16 bytes of a Kafka topic id (big-endian, as on the wire)."""

GroupId = NewType("GroupId", str)
MemberId = NewType("MemberId", str)

TopicIdPartition = tuple[TopicId, int]
"""(topic id, partition): the identity that the group protocol uses: a topic that is created again
is another topic."""

ZERO_TOPIC_ID: Final = TopicId(bytes(16))

JOIN_EPOCH: Final = 0
"""Member epoch of a heartbeat that joins the group (KIP-848, heartbeat request)."""
LEAVE_EPOCH: Final = -1
"""Member epoch of a heartbeat that leaves the group permanently."""
STATIC_LEAVE_EPOCH: Final = -2
"""Member epoch with which a static member leaves temporarily and keeps its partitions."""


class TopicPartition(NamedTuple):
    """A topic and one of its partitions, as users name it.

    Equal and hash-equal to a plain tuple of two, and therefore to ``aiokafka.TopicPartition``.

    Attributes:
        topic: Name of the topic.
        partition: Number of the partition, from 0.
    """

    topic: str
    partition: int


class GroupMetadata(NamedTuple):
    """Identifies a member of a group (KIP-447).

    For a transactional producer's ``send_offsets_to_transaction`` and for client-side assignors.
    This is a snapshot. Get a new one for each transaction, because the epoch changes.

    Attributes:
        group_id: Name of the group.
        member_epoch: The member's epoch; -1 outside of a group.
        member_id: The member's id; empty outside of a group.
        group_instance_id: Id of a static member (KIP-345), else ``None``.
    """

    group_id: str
    member_epoch: int
    member_id: str
    group_instance_id: str | None


class Wait(NamedTuple):
    """Reason and start time of a client's wait, which its core reports with the name of the awaited
    object. Waits for the same object with different start times are different waits.
    """

    why: str
    since_ms: int

    def goes_on(self, now_ms: int, what: str) -> str:
        """The log line that reports the wait."""
        return f"waiting for {what} for {self._seconds(now_ms)} s: {self.why}"

    def is_over(self, now_ms: int, what: str) -> str:
        """The log line that reports its end."""
        return f"done waiting for {what} after {self._seconds(now_ms)} s"

    def _seconds(self, now_ms: int) -> str:
        return f"{(now_ms - self.since_ms) / 1000:.0f}"


def format_topic_id(topic_id: bytes) -> str:
    """Return Kafka's text form of a topic id: URL-safe base64 without padding, 22 characters."""
    return base64.urlsafe_b64encode(topic_id).rstrip(b"=").decode("ascii")


def parse_topic_id(text: str) -> TopicId:
    """Parse a topic id.

    Args:
        text: Kafka's base64 (22 characters), hyphenated hex, or plain hex.

    Returns:
        The 16 bytes of the id.

    Raises:
        ValueError: The text has another form.
    """
    if len(text) in (22, 24):
        try:
            raw = base64.b64decode(text.rstrip("=") + "==", altchars=b"-_", validate=True)
        except binascii.Error as err:
            raise ValueError(f"not a topic id: {text!r}") from err
        if len(raw) == 16:
            return TopicId(raw)
    try:
        return TopicId(UUID(text).bytes)
    except ValueError as err:
        raise ValueError(f"not a topic id: {text!r} (base64 or hex of 16 bytes)") from err


VersionLimits = tuple[int, int]
"""Lowest and highest version of a request that its sender can use."""

ANY_VERSION: Final[VersionLimits] = (0, 32767)
