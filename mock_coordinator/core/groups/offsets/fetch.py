"""OffsetFetch (API 9): committed offsets of one group, or of several from version 8 on.

Fetching is lenient where committing is strict: a group that does not exist has no offsets, and a
fetch without a member is always served. A fetch *with* a member must have its current epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kip848_client.core.types import ZERO_TOPIC_ID, TopicId
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.records.state_records import OffsetAndMetadata
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Environment
from mock_coordinator.core.groups.state.errors import not_a_consumer_group
from mock_coordinator.core.groups.state.member import outdated_error
from mock_coordinator.core.inputs import RequestReceived
from mock_coordinator.core.refused import Refused

__all__ = ["fetch_offsets"]

BATCH_VERSION: Final = 8
"""From this version on, a request asks for several groups."""
TOPIC_ID_VERSION: Final = 10
"""From this version on, topics are named by id."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A topic that is asked for, whatever the version; ``name`` None for an unknown id."""

    name: str | None
    topic_id: TopicId
    partitions: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Found:
    """The answer for one partition."""

    partition: int
    error: ErrorCode = ErrorCode.NONE
    value: OffsetAndMetadata | None = None


_Topics = list[tuple[_Wanted, list[_Found]]]


def fetch_offsets(
    env: Environment, received: RequestReceived, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    """Answer one OffsetFetch. Never raises: refusals are error codes of a group."""
    version = received.version
    if version >= BATCH_VERSION:
        return OffsetFetchResponse(
            groups=tuple(_group_response(env, version, request, group) for group in request.groups)
        )
    wanted = None
    if request.topics is not None:
        wanted = [
            _Wanted(topic.name, ZERO_TOPIC_ID, topic.partition_indexes) for topic in request.topics
        ]
    topics = _look_up(env, request, request.group_id, wanted, by_id=False)
    return OffsetFetchResponse(
        topics=tuple(
            OffsetFetchResponseTopic(
                name=topic.name or "", partitions=tuple(_single(found) for found in partitions)
            )
            for topic, partitions in topics
        )
    )


def _group_response(
    env: Environment, version: int, request: OffsetFetchRequest, group: OffsetFetchRequestGroup
) -> OffsetFetchResponseGroup:
    try:
        _require_member(env, group)
    except Refused as err:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=err.code)
    by_id = version >= TOPIC_ID_VERSION
    wanted = None
    if group.topics is not None:
        # what is not known by its id comes last
        wanted = sorted(
            _resolve(env, group.topics, by_id=by_id), key=lambda topic: topic.name is None
        )
    topics = _look_up(env, request, group.group_id, wanted, by_id=by_id)
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=tuple(
            OffsetFetchResponseTopics(
                name=topic.name or "",
                topic_id=topic.topic_id,
                partitions=tuple(_batched(found) for found in partitions),
            )
            for topic, partitions in topics
        ),
    )


def _require_member(env: Environment, request: OffsetFetchRequestGroup) -> None:
    """Raise ``Refused``: UNKNOWN_MEMBER_ID, STALE_MEMBER_EPOCH or ILLEGAL_GENERATION, and
    GROUP_ID_NOT_FOUND for a Connect group. Versions before 9 carry no member and always pass.

    An epoch without a member is not foreseen, neither here nor in Kafka, which answers
    UNKNOWN_SERVER_ERROR.
    """
    group = env.state.groups.get(request.group_id)
    if isinstance(group, ConnectGroup):
        raise not_a_consumer_group(request.group_id)
    if not isinstance(group, ConsumerGroup):
        return
    if request.member_id is None and request.member_epoch < 0:
        return
    if request.member_id is None:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    member = group.members.get(request.member_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.epoch != request.member_epoch:
        raise Refused(outdated_error(member))


def _resolve(
    env: Environment, topics: Iterable[OffsetFetchRequestTopics], *, by_id: bool
) -> Iterable[_Wanted]:
    for topic in topics:
        name: str | None = topic.name
        if by_id:
            found = env.catalog.topic_by_id(topic.topic_id)
            name = None if found is None else found.name
        yield _Wanted(name, TopicId(topic.topic_id), topic.partition_indexes)


def _look_up(
    env: Environment,
    request: OffsetFetchRequest,
    group_id: str,
    wanted: Sequence[_Wanted] | None,
    *,
    by_id: bool,
) -> _Topics:
    """The committed offsets that are asked for; all of the group's for ``None``.

    A request for stable offsets learns which of them an open transaction may yet change.
    """
    topics = _committed(env, group_id, wanted, by_id=by_id)
    if not request.require_stable or not env.state.pending.has_open_transaction(group_id):
        return topics
    return [
        (topic, [_stable(env, group_id, topic.name, found) for found in partitions])
        for topic, partitions in topics
    ]


def _stable(env: Environment, group_id: str, topic: str | None, found: _Found) -> _Found:
    if topic is None or not env.state.pending.holds(group_id, topic, found.partition):
        return found
    return _Found(found.partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)


def _committed(
    env: Environment, group_id: str, wanted: Sequence[_Wanted] | None, *, by_id: bool
) -> _Topics:
    stored = env.state.offsets.get(group_id, {})
    if wanted is None:
        topics: _Topics = []
        for name, partitions in stored.items():
            found = env.catalog.topic(name)
            if by_id and found is None:
                continue  # without an id the topic cannot be answered
            topic_id = ZERO_TOPIC_ID if found is None else found.topic_id
            values = [_Found(partition, value=value) for partition, value in partitions.items()]
            topics.append((_Wanted(name, topic_id, ()), values))
        return topics
    return [(topic, _partitions(topic, stored)) for topic in wanted]


def _partitions(topic: _Wanted, stored: dict[str, dict[int, OffsetAndMetadata]]) -> list[_Found]:
    if topic.name is None:
        return [_Found(partition, ErrorCode.UNKNOWN_TOPIC_ID) for partition in topic.partitions]
    offsets = stored.get(topic.name, {})
    found: list[_Found] = []
    for partition in topic.partitions:
        value = offsets.get(partition)
        if value is not None and _is_of_another_topic(value.topic_id, topic.topic_id):
            value = None
        found.append(_Found(partition, value=value))
    return found


def _is_of_another_topic(stored: TopicId, wanted: TopicId) -> bool:
    """A topic of the same name that was deleted since; unknown ids match everything."""
    return ZERO_TOPIC_ID not in (stored, wanted) and stored != wanted


def _single(found: _Found) -> OffsetFetchResponsePartition:
    value = found.value
    return OffsetFetchResponsePartition(
        partition_index=found.partition,
        committed_offset=-1 if value is None else value.offset,
        committed_leader_epoch=-1 if value is None else value.leader_epoch,
        metadata="" if value is None else value.metadata,
        error_code=found.error,
    )


def _batched(found: _Found) -> OffsetFetchResponsePartitions:
    value = found.value
    return OffsetFetchResponsePartitions(
        partition_index=found.partition,
        committed_offset=-1 if value is None else value.offset,
        committed_leader_epoch=-1 if value is None else value.leader_epoch,
        metadata="" if value is None else value.metadata,
        error_code=found.error,
    )
