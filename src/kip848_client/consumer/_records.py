"""What a consumer hands out and takes in beside records: offsets, the identity of a member."""

from __future__ import annotations

from typing import NamedTuple

from kip848_client._types import TopicId

__all__ = ["GroupMetadata", "OffsetAndMetadata", "OffsetAndTimestamp", "OffsetForTransaction"]


class OffsetAndMetadata(NamedTuple):
    """A position to commit (the offset of the *next* record) with a text of the user's."""

    offset: int
    metadata: str = ""


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a moment: its offset and its timestamp."""

    offset: int
    timestamp: int


class GroupMetadata(NamedTuple):
    """Who this member is, for a transactional producer's ``send_offsets_to_transaction``.

    A snapshot: take it anew for each transaction, because the epoch moves. Out of a group the
    epoch is -1 and the member id empty.
    """

    group_id: str
    member_epoch: int
    member_id: str
    group_instance_id: str | None


class OffsetForTransaction(NamedTuple):
    """What a producer commits for a consumer: the next offset to read, the leader epoch of the
    record before it (-1: not known), a text, and the id of the topic that was read, if it is known:
    a topic that was created again under its name is another one."""

    offset: int
    leader_epoch: int
    metadata: str
    topic_id: TopicId | None
