"""Commits and committed offsets between the cores' terms and the wire's: pure translation.

Every driver of the group core (the consumer, the simulation) translates through here.

OffsetCommit and OffsetFetch identify topics by name up to version 9 and by id from version 10. The
builders fill in both, so the message fits the negotiated version, and report whether version 10 is
possible: only when every topic's id is known. Answers are matched by the same table that built the
request, not by newer metadata (KAFKA-20040).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kip848_client.core.group import CommittedRow
from kip848_client.core.offsets import CommitRefusal, CommittableOffset
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId, TopicPartition, VersionLimits
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kip848_client.error_codes import default_message, error_name
from kip848_client.errors import RemoteProtocolError

__all__ = [
    "TopicTable",
    "commit_request",
    "commit_results",
    "committed_offsets",
    "fetch_request",
]

_BY_NAME: Final[VersionLimits] = (9, 9)
"""Version 9 brings the member epoch (KIP-848)."""
_BY_NAME_OR_ID: Final[VersionLimits] = (9, 10)


class TopicTable:
    """The topics of one request, by name and by id."""

    def __init__(self, topics: Iterable[str], id_of: Callable[[str], TopicId | None]) -> None:
        self._ids = {topic: id_of(topic) or ZERO_TOPIC_ID for topic in sorted(set(topics))}
        self._names = {topic_id: name for name, topic_id in self._ids.items()}

    @property
    def versions(self) -> VersionLimits:
        """The versions that can carry these topics."""
        return _BY_NAME if ZERO_TOPIC_ID in self._names else _BY_NAME_OR_ID

    def id_of(self, topic: str) -> TopicId:
        """The id that goes into the request."""
        return self._ids[topic]

    def name_of(self, name: str, topic_id: bytes) -> str | None:
        """Return the topic of the request that an answer refers to; ``None`` if there is none."""
        if name:
            return name if name in self._ids else None
        return self._names.get(TopicId(topic_id))


def commit_request(
    group_id: str,
    member: tuple[str, int, str | None] | None,
    offsets: Mapping[TopicPartition, CommittableOffset],
    table: TopicTable,
) -> OffsetCommitRequest:
    """Build an OffsetCommit request; ``member`` is (id, epoch, instance id), ``None`` for a plain
    commit."""
    member_id, epoch, instance_id = ("", -1, None) if member is None else member
    by_topic: dict[str, list[OffsetCommitRequestPartition]] = {}
    for tp, wanted in sorted(offsets.items()):
        by_topic.setdefault(tp.topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=tp.partition,
                committed_offset=wanted.offset,
                committed_leader_epoch=wanted.leader_epoch,
                committed_metadata=wanted.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic, topic_id=table.id_of(topic), partitions=tuple(partitions)
            )
            for topic, partitions in by_topic.items()
        ),
    )


def commit_results(
    response: OffsetCommitResponse, table: TopicTable
) -> dict[TopicPartition, CommitRefusal | None]:
    """Return ``None`` per stored partition, or the refusal."""
    results: dict[TopicPartition, CommitRefusal | None] = {}
    refusals: dict[int, CommitRefusal | None] = {0: None}
    for topic in response.topics:
        name = table.name_of(topic.name, topic.topic_id)
        if name is None:
            continue
        for each in topic.partitions:
            code = each.error_code
            if code not in refusals:
                refusals[code] = CommitRefusal(code, error_name(code), default_message(code))
            results[TopicPartition(name, each.partition_index)] = refusals[code]
    return results


def fetch_request(
    group_id: str,
    member: tuple[str, int] | None,
    partitions: Iterable[TopicPartition],
    table: TopicTable,
) -> OffsetFetchRequest:
    """Build an OffsetFetch request for stable offsets; ``member`` is (id, epoch), ``None`` for a
    plain one."""
    member_id, epoch = (None, -1) if member is None else member
    by_topic: dict[str, list[int]] = {}
    for tp in sorted(partitions):
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    group = OffsetFetchRequestGroup(
        group_id=group_id,
        member_id=member_id,
        member_epoch=epoch,
        topics=tuple(
            OffsetFetchRequestTopics(
                name=topic, topic_id=table.id_of(topic), partition_indexes=tuple(numbers)
            )
            for topic, numbers in by_topic.items()
        ),
    )
    return OffsetFetchRequest(groups=(group,), require_stable=True)


def committed_offsets(
    response: OffsetFetchResponse, table: TopicTable
) -> tuple[int, dict[TopicPartition, CommittedRow]]:
    """Return the group's error code, and the stored offset per partition."""
    if len(response.groups) != 1:
        raise RemoteProtocolError(
            f"OffsetFetch answered for {len(response.groups)} groups instead of one",
            hint="ask again",
        )
    group = response.groups[0]
    found: dict[TopicPartition, CommittedRow] = {}
    for topic in group.topics:
        name = table.name_of(topic.name, topic.topic_id)
        if name is not None:
            for each in topic.partitions:
                found[TopicPartition(name, each.partition_index)] = CommittedRow(
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.metadata or "",
                    each.error_code,
                )
    return group.error_code, found
