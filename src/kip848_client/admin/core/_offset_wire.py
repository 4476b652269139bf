"""Translation of offsets between the admin's types and messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Final

from kip848_client.admin.core._model import CommittedOffset, ListedOffset
from kip848_client.admin.core._retry_rounds import Refusal, refusal_if_any
from kip848_client.core.types import TopicPartition
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochRequestOffsetForLeaderPartition,
    OffsetForLeaderEpochRequestOffsetForLeaderTopic,
    OffsetForLeaderEpochResponse,
)
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kip848_client.core.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from kip848_client.errors import refusal

__all__ = [
    "BY_NAME",
    "EARLIEST",
    "LATEST",
    "commit_request",
    "committed",
    "deletion_request",
    "epoch_ends",
    "epoch_request",
    "fetch_request",
    "fetched",
    "list_request",
    "listed",
    "removed",
]

BY_NAME: Final = (8, 9)
"""Versions of OffsetCommit and OffsetFetch that identify topics by name: an admin means the topic
of that name, whatever its id."""

EARLIEST: Final = -2
LATEST: Final = -1
_NO_EPOCH: Final = -1
_CONSUMER: Final = -1
"""Replica id of a client, as opposed to a broker."""
_READ_COMMITTED: Final = 1


def fetch_request(groups: Iterable[str], *, stable: bool = False) -> OffsetFetchRequest:
    """Build the request for all committed offsets of groups. ``stable``: not before open
    transactions that commit offsets have ended."""
    return OffsetFetchRequest(
        groups=tuple(OffsetFetchRequestGroup(group_id=each, topics=None) for each in groups),
        require_stable=stable,
    )


def fetched(
    answer: OffsetFetchResponse,
) -> dict[str, dict[TopicPartition, CommittedOffset] | Refusal]:
    """Return each group's committed offsets, sorted. An error of one partition counts for the
    group."""
    found: dict[str, dict[TopicPartition, CommittedOffset] | Refusal] = {}
    for group in answer.groups:
        rows = [
            (TopicPartition(topic.name, each.partition_index), each)
            for topic in group.topics
            for each in topic.partitions
            if each.committed_offset >= 0 or each.error_code
        ]
        code = group.error_code or next((each.error_code for _, each in rows if each.error_code), 0)
        if code:
            found[group.group_id] = refusal(code, None, "OffsetFetch")
            continue
        found[group.group_id] = {
            tp: CommittedOffset(
                each.committed_offset,
                None if each.committed_leader_epoch == _NO_EPOCH else each.committed_leader_epoch,
                each.metadata or "",
            )
            for tp, each in sorted(rows, key=lambda row: row[0])
        }
    return found


def commit_request(
    group: str, offsets: Mapping[TopicPartition, CommittedOffset]
) -> OffsetCommitRequest:
    """Build a commit without a member, which only a group without members accepts."""
    return OffsetCommitRequest(
        group_id=group,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=tp.partition,
                        committed_offset=offsets[tp].offset,
                        committed_leader_epoch=_epoch(offsets[tp]),
                        committed_metadata=offsets[tp].metadata,
                    )
                    for tp in partitions
                ),
            )
            for topic, partitions in groupby(sorted(offsets), key=lambda tp: tp.topic)
        ),
    )


def _epoch(offset: CommittedOffset) -> int:
    return _NO_EPOCH if offset.leader_epoch is None else offset.leader_epoch


def committed(answer: OffsetCommitResponse) -> dict[TopicPartition, Refusal | None]:
    """Return ``None`` per stored partition, or the refusal."""
    return {
        TopicPartition(topic.name, each.partition_index): refusal_if_any(
            each.error_code, None, "OffsetCommit"
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def deletion_request(group: str, partitions: Iterable[TopicPartition]) -> OffsetDeleteRequest:
    """Build the request to delete the committed offsets of some partitions."""
    return OffsetDeleteRequest(
        group_id=group,
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetDeleteRequestPartition(partition_index=tp.partition) for tp in each
                ),
            )
            for topic, each in groupby(sorted(partitions), key=lambda tp: tp.topic)
        ),
    )


def removed(answer: OffsetDeleteResponse) -> dict[TopicPartition, Refusal | None]:
    """Return ``None`` per deleted partition, or the refusal. (The caller handles a top-level
    error.)"""
    return {
        TopicPartition(topic.name, each.partition_index): refusal_if_any(
            each.error_code, None, "OffsetDelete"
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def list_request(
    times: Mapping[TopicPartition, int],
    timeout_ms: int,
    epochs: Mapping[TopicPartition, int],
    *,
    read_committed: bool,
) -> ListOffsetsRequest:
    """Build the request for the first offset from a time on, ``EARLIEST`` or ``LATEST``."""
    return ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=_READ_COMMITTED if read_committed else 0,
        topics=tuple(
            ListOffsetsRequestListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    ListOffsetsRequestListOffsetsPartition(
                        partition_index=tp.partition,
                        current_leader_epoch=epochs.get(tp, _NO_EPOCH),
                        timestamp=times[tp],
                    )
                    for tp in each
                ),
            )
            for topic, each in groupby(sorted(times), key=lambda tp: tp.topic)
        ),
        timeout_ms=timeout_ms,
    )


def epoch_request(
    epochs: Mapping[TopicPartition, int], current: Mapping[TopicPartition, int]
) -> OffsetForLeaderEpochRequest:
    """Build the request for the ends of leader epochs (KIP-320)."""
    return OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=tuple(
            OffsetForLeaderEpochRequestOffsetForLeaderTopic(
                topic=topic,
                partitions=tuple(
                    OffsetForLeaderEpochRequestOffsetForLeaderPartition(
                        partition=tp.partition,
                        current_leader_epoch=current.get(tp, _NO_EPOCH),
                        leader_epoch=epochs[tp],
                    )
                    for tp in each
                ),
            )
            for topic, each in groupby(sorted(epochs), key=lambda tp: tp.topic)
        ),
    )


def epoch_ends(answer: OffsetForLeaderEpochResponse) -> dict[TopicPartition, int | Refusal]:
    """Return the end offsets, -1 where the leader does not know the epoch, or the refusals."""
    return {
        TopicPartition(topic.topic, each.partition): (
            refusal(each.error_code, None, "OffsetForLeaderEpoch")
            if each.error_code
            else each.end_offset
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def listed(answer: ListOffsetsResponse) -> dict[TopicPartition, ListedOffset | Refusal]:
    """Return the offsets found, or the refusals."""
    return {
        TopicPartition(topic.name, each.partition_index): (
            refusal(each.error_code, None, "ListOffsets")
            if each.error_code
            else ListedOffset(
                each.offset,
                each.timestamp,
                None if each.leader_epoch == _NO_EPOCH else each.leader_epoch,
            )
        )
        for topic in answer.topics
        for each in topic.partitions
    }
