"""Deletion of offsets and groups: OffsetDelete, DeleteGroups (APIs 47 and 42), retention, deleted
topics.

Each is a list of tombstones in Kafka's order. An empty group without offsets is removed by the next
cleanup.
"""

from __future__ import annotations

from collections.abc import Iterable

from kip848_client.core.wire.messages.groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteGroupsResponseDeletableGroupResult,
)
from kip848_client.core.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.offsets.classic_commits import (
    expires_from_ms,
    require_offsets_deletable,
)
from mock_coordinator.core.groups.records.state_records import (
    GroupEpochMetadata,
    GroupMetadata,
    OffsetAndMetadata,
    OffsetCommit,
    PartitionMetadata,
    StateRecord,
    TargetAssignmentMetadata,
)
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment
from mock_coordinator.core.groups.state.errors import group_id_not_found
from mock_coordinator.core.groups.state.groups_state import Group
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.refused import Refused

__all__ = [
    "decide_cleanup",
    "decide_delete_groups",
    "decide_offset_delete",
    "forget_topics",
    "group_tombstones",
]

_MINUTE_MS = 60_000


def decide_offset_delete(
    env: Environment, _now_ms: int, _received: RequestReceived, request: OffsetDeleteRequest
) -> Decision[OffsetDeleteResponse]:
    """OffsetDelete. A topic that the group subscribes to keeps its offsets
    (GROUP_SUBSCRIBED_TO_TOPIC).

    The API layer answers for topics and partitions that do not exist, and its answers come first;
    but the coordinator is always asked, so a missing group is the whole answer
    (GROUP_ID_NOT_FOUND). A topic that exists is not mentioned when the request names no partition
    of it.
    """
    if not request.group_id:
        return Decision(OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID))
    group = env.state.groups.get(request.group_id)
    if group is None:
        return Decision(OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
    if isinstance(group, ConnectGroup):
        return Decision(OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
    if isinstance(group, ClassicGroup):
        try:
            require_offsets_deletable(group)
        except Refused as err:
            return Decision(OffsetDeleteResponse(error_code=err.code))
    records: list[StateRecord] = []
    refused: list[OffsetDeleteResponseTopic] = []
    served: list[OffsetDeleteResponseTopic] = []
    for topic in request.topics:
        found = env.catalog.topic(topic.name)
        in_use = group.is_subscribed_to(topic.name)
        unknown: list[OffsetDeleteResponsePartition] = []
        known: list[OffsetDeleteResponsePartition] = []
        for partition in topic.partitions:
            index = partition.partition_index
            if found is None or not 0 <= index < found.partitions:
                unknown.append(_deleted_offset(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            elif in_use:
                known.append(_deleted_offset(index, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC))
            else:
                if _has_offset(env, request.group_id, topic.name, index):
                    records.append(OffsetCommit(request.group_id, topic.name, index, None))
                known.append(_deleted_offset(index, ErrorCode.NONE))
        answer = OffsetDeleteResponseTopic(name=topic.name, partitions=(*unknown, *known))
        if unknown or found is None:
            refused.append(answer)
        elif known:
            served.append(answer)
    return Decision(OffsetDeleteResponse(topics=(*refused, *served)), records)


def _has_offset(env: Environment, group_id: str, topic: str, partition: int) -> bool:
    """Whether a tombstone would take something away: a committed offset, or a pending one."""
    committed = env.state.committed(group_id, topic, partition) is not None
    return committed or env.state.pending.holds(group_id, topic, partition)


def _deleted_offset(index: int, code: ErrorCode) -> OffsetDeleteResponsePartition:
    return OffsetDeleteResponsePartition(partition_index=index, error_code=code)


def decide_delete_groups(
    env: Environment, _now_ms: int, _received: RequestReceived, request: DeleteGroupsRequest
) -> Decision[DeleteGroupsResponse]:
    """DeleteGroups. Only groups without members go (else 68); their offsets go with them.

    A group that is named twice is answered once. The message of version 3 stays null, as in
    Kafka 4.4.
    """
    records: list[StateRecord] = []
    results: list[DeleteGroupsResponseDeletableGroupResult] = []
    for group_id in dict.fromkeys(request.groups_names):
        code = ErrorCode.NONE
        try:
            records += _deleted(env, group_id)
        except Refused as err:
            code = err.code
        results.append(DeleteGroupsResponseDeletableGroupResult(group_id=group_id, error_code=code))
    return Decision(DeleteGroupsResponse(results=tuple(results)), records)


def _deleted(env: Environment, group_id: str) -> list[StateRecord]:
    group = env.state.groups.get(group_id)
    if group is None:
        raise group_id_not_found(group_id)
    if not group.is_empty:
        raise Refused(ErrorCode.NON_EMPTY_GROUP, f"Group {group_id} is not empty.")
    offsets: list[StateRecord] = [
        OffsetCommit(group_id, topic, partition, None)
        for topic, partitions in env.state.offsets.get(group_id, {}).items()
        for partition in partitions
    ]
    offsets += [
        OffsetCommit(group_id, topic, partition, None)
        for topic, partition in env.state.pending.of_group(group_id)
        if env.state.committed(group_id, topic, partition) is None
    ]
    return [*offsets, *group_tombstones(group)]


def group_tombstones(group: Group) -> list[StateRecord]:
    """The records that delete a group, whatever its type; its offsets stay."""
    if isinstance(group, ConsumerGroup):
        return [
            TargetAssignmentMetadata(group.group_id, None),
            PartitionMetadata(group.group_id, None),
            GroupEpochMetadata(group.group_id, None),
        ]
    if isinstance(group, ConnectGroup):
        types = group.records
        return [types.target_epoch(group.group_id, None), types.epoch(group.group_id, None)]
    return [GroupMetadata(group.group_id)]


def decide_cleanup(env: Environment, now_ms: int) -> list[StateRecord]:
    """Expired offsets of all groups, and groups that have neither members nor offsets left."""
    retention_ms = env.config.integer("offsets.retention.minutes") * _MINUTE_MS
    records: list[StateRecord] = []
    for group_id, group in env.state.groups.items():
        remaining = env.state.pending.has_open_transaction(group_id)
        for topic, partitions in env.state.offsets.get(group_id, {}).items():
            in_use = group.is_subscribed_to(topic)
            for partition, value in partitions.items():
                kept = in_use or env.state.pending.holds(group_id, topic, partition)
                if kept or not _is_expired(group, value, now_ms, retention_ms):
                    remaining = True
                else:
                    records.append(OffsetCommit(group_id, topic, partition, None))
        if not remaining and group.is_empty:
            records += group_tombstones(group)
    return records


def _is_expired(group: Group, value: OffsetAndMetadata, now_ms: int, retention_ms: int) -> bool:
    began_ms: int | None = value.commit_timestamp_ms
    if isinstance(group, ClassicGroup):
        began_ms = expires_from_ms(group, value)
    if began_ms is None:
        return False
    if value.expire_timestamp_ms is not None:
        return now_ms >= value.expire_timestamp_ms
    return now_ms - began_ms >= retention_ms


def forget_topics(env: Environment, topics: Iterable[str]) -> list[StateRecord]:
    """The offsets of deleted topics go with them, in every group."""
    names = list(topics)
    committed = [
        (group_id, topic, partition)
        for group_id, stored in env.state.offsets.items()
        for topic in names
        for partition in stored.get(topic, {})
    ]
    pending = [
        (group_id, topic, partition)
        for topic in names
        for group_id, partition in env.state.pending.groups_of_topic(topic)
    ]
    return [OffsetCommit(*place, None) for place in dict.fromkeys((*committed, *pending))]
