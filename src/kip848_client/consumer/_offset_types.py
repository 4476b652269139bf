"""The offset types of a consumer's API."""

from __future__ import annotations

from typing import NamedTuple

from kip848_client.core.types import TopicId

__all__ = ["OffsetAndMetadata", "OffsetAndTimestamp", "OffsetForTransaction"]


class OffsetAndMetadata(NamedTuple):
    """A position to commit, with a text of the user's.

    Attributes:
        offset: The offset of the *next* record to read.
        metadata: At most 32,767 bytes in UTF-8.
    """

    offset: int
    metadata: str = ""


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time.

    Attributes:
        offset: Its offset.
        timestamp: Its timestamp, in milliseconds since 1970.
    """

    offset: int
    timestamp: int


class OffsetForTransaction(NamedTuple):
    """The offset that a producer commits for a consumer: the next offset to read, the leader epoch
    of the record before it (-1: not known), a text, and the id of the topic that was read, if it is
    known: a recreated topic is another one."""

    offset: int
    leader_epoch: int
    metadata: str
    topic_id: TopicId | None
