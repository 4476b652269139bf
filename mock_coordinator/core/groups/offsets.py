"""OffsetCommit and OffsetFetch (APIs 8 and 9): who may, for which partitions, and what is stored.

Two layers decide, as in Kafka. The broker's API layer answers for topics that do not exist (3, or
100 for a topic id) and does not bother the coordinator with them. The coordinator validates the
member once for the whole request: an error there is the answer for every partition. Neither checks
that the partition exists or belongs to the member: the current epoch is all it takes. From 4.3 on
an older epoch is enough for partitions that were the member's at that epoch already (KIP-1251).

A commit without a member is always welcome in a group without members, and makes a *simple* group
where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kip848_client._types import ZERO_TOPIC_ID, TopicId
from kip848_client.wire import ErrorCode
from kip848_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from mock_coordinator.core.catalog import Catalog
from mock_coordinator.core.groups.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.environment import Decision, Environment
from mock_coordinator.core.groups.errors import GroupError, group_id_not_found
from mock_coordinator.core.groups.member import Member
from mock_coordinator.core.groups.records import OffsetAndMetadata, OffsetCommit, StateRecord

__all__ = ["decide_commit"]

MEMBER_EPOCH_VERSION: Final = 9
"""From this version on, OffsetCommit carries member epochs (KIP-848)."""
TOPIC_ID_VERSION: Final = 10
"""From this version on, OffsetCommit and OffsetFetch name topics by id."""


def decide_commit(
    env: Environment, now_ms: int, version: int, request: OffsetCommitRequest
) -> Decision[OffsetCommitResponse]:
    """Decide one OffsetCommit. Never raises: every refusal is an answer per partition."""
    known, answered = _known_topics(env.catalog, version, request.topics)
    if not known:
        return Decision(OffsetCommitResponse(topics=tuple(answered)))
    try:
        _require_committer(env, version, request, known)
    except GroupError as err:
        refused = [_answer(topic, name, err.code) for name, topic in known]
        return Decision(OffsetCommitResponse(topics=(*answered, *refused)))
    expire_ms = None if request.retention_time_ms == -1 else now_ms + request.retention_time_ms
    limit = env.config.integer("offset.metadata.max.bytes")
    records: list[StateRecord] = []
    for name, topic in known:
        partitions: list[OffsetCommitResponsePartition] = []
        for partition in topic.partitions:
            metadata = partition.committed_metadata or ""
            too_large = _java_length(metadata) > limit
            code = ErrorCode.OFFSET_METADATA_TOO_LARGE if too_large else ErrorCode.NONE
            partitions.append(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=code
                )
            )
            if too_large:
                continue
            value = OffsetAndMetadata(
                offset=partition.committed_offset,
                leader_epoch=partition.committed_leader_epoch,
                metadata=metadata,
                commit_timestamp_ms=now_ms,
                expire_timestamp_ms=expire_ms,
                topic_id=TopicId(topic.topic_id) if version >= TOPIC_ID_VERSION else ZERO_TOPIC_ID,
            )
            records.append(OffsetCommit(request.group_id, name, partition.partition_index, value))
        answered.append(
            OffsetCommitResponseTopic(
                name=topic.name, topic_id=topic.topic_id, partitions=tuple(partitions)
            )
        )
    return Decision(OffsetCommitResponse(topics=tuple(answered)), records)


# --- The API layer --------------------------------------------------------------------------------


def _known_topics(
    catalog: Catalog, version: int, topics: Iterable[OffsetCommitRequestTopic]
) -> tuple[list[tuple[str, OffsetCommitRequestTopic]], list[OffsetCommitResponseTopic]]:
    """The topics that exist, with their names, and the answers for the others."""
    known: list[tuple[str, OffsetCommitRequestTopic]] = []
    answered: list[OffsetCommitResponseTopic] = []
    for topic in topics:
        by_id = version >= TOPIC_ID_VERSION
        found = catalog.topic_by_id(topic.topic_id) if by_id else catalog.topic(topic.name)
        if found is not None:
            known.append((found.name, topic))
        else:
            missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answered.append(_answer(topic, topic.name, missing))
    return known, answered


def _answer(
    topic: OffsetCommitRequestTopic, name: str, code: ErrorCode
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetCommitResponsePartition(
                partition_index=partition.partition_index, error_code=code
            )
            for partition in topic.partitions
        ),
    )


def _java_length(text: str) -> int:
    """``String.length()``: UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


# --- The coordinator ------------------------------------------------------------------------------


def _require_committer(
    env: Environment,
    version: int,
    request: OffsetCommitRequest,
    known: Sequence[tuple[str, OffsetCommitRequestTopic]],
) -> None:
    """Raise ``GroupError`` when this member, or nobody, may not commit to the group now."""
    epoch = request.generation_id_or_member_epoch
    group = env.state.groups.get(request.group_id)
    if group is None:
        if epoch < 0:
            return  # a simple group comes into being
        if version >= MEMBER_EPOCH_VERSION:
            raise group_id_not_found(request.group_id)
        raise GroupError(ErrorCode.ILLEGAL_GENERATION)
    if isinstance(group, ConsumerGroup):
        _require_member(env, group, version, request, known)
        return
    # a classic group without members: only commits that name no member
    if epoch < 0:
        return
    if request.group_instance_id is not None or request.member_id or epoch >= 0:
        raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)


def _require_member(
    env: Environment,
    group: ConsumerGroup,
    version: int,
    request: OffsetCommitRequest,
    known: Sequence[tuple[str, OffsetCommitRequestTopic]],
) -> None:
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and group.is_empty:
        return
    member = group.members.get(request.member_id)
    if member is None:
        raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
    if version < MEMBER_EPOCH_VERSION:
        raise GroupError(ErrorCode.UNSUPPORTED_VERSION)
    if epoch == member.epoch:
        return
    if not env.profile.commits_use_assignment_epoch or epoch > member.epoch:
        raise GroupError(ErrorCode.STALE_MEMBER_EPOCH)
    if not all(
        _was_owned(env, member, name, partition.partition_index, epoch)
        for name, topic in known
        for partition in topic.partitions
    ):
        raise GroupError(ErrorCode.STALE_MEMBER_EPOCH)


def _was_owned(env: Environment, member: Member, topic: str, partition: int, epoch: int) -> bool:
    """Whether the partition has been the member's since this epoch or longer (KIP-1251)."""
    found = env.catalog.topic(topic)
    if found is None:
        return False
    for owned in (member.assigned, member.pending_revocation):
        assignment_epoch = owned.get(found.topic_id, {}).get(partition)
        if assignment_epoch is not None:
            return assignment_epoch <= epoch
    return False
