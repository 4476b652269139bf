"""OffsetCommit (API 8): from which members, for which partitions, and which records result.

Two layers decide, as in Kafka. The broker's API layer answers for topics and partitions that do not
exist (UNKNOWN_TOPIC_OR_PARTITION, or UNKNOWN_TOPIC_ID for a topic id), and removes them from the
request. The coordinator validates the member once for the whole request: an error there applies to
every partition. It does not check whether the partition is assigned to the member: the current
epoch is enough. From 4.3 on an older epoch is enough for partitions that the member had at that
epoch already (KIP-1251).

A commit without a member is always accepted in a group without members, and creates a *simple*
group if there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from kip848_client.core.types import ZERO_TOPIC_ID, TopicId
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kip848_client.core.wire.messages.txn_offset_commit import TxnOffsetCommitResponse
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.offsets.classic_commits import (
    commit_keeps_session,
    require_committer,
)
from mock_coordinator.core.groups.records.state_records import (
    OffsetAndMetadata,
    OffsetCommit,
    StateRecord,
)
from mock_coordinator.core.groups.state.classic_group import ClassicGroup
from mock_coordinator.core.groups.state.connect_group import ConnectGroup
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.environment import Decision, Environment, TimerChange
from mock_coordinator.core.groups.state.errors import group_id_not_found, not_a_consumer_group
from mock_coordinator.core.groups.state.member import Member, outdated_error
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.topics.catalog import Catalog

__all__ = [
    "CommittedTopic",
    "decide_commit",
    "decide_offsets",
    "names_partitions",
    "refuse_offsets",
    "require_txn_committer",
    "too_large",
]

_Response = TypeVar("_Response", OffsetCommitResponse, TxnOffsetCommitResponse)

MEMBER_EPOCH_VERSION: Final = 9
"""From this version on, OffsetCommit carries member epochs (KIP-848)."""
TOPIC_ID_VERSION: Final = 10
"""From this version on, OffsetCommit and OffsetFetch name topics by id."""


@dataclass(frozen=True, slots=True)
class _Topic:
    """One topic of a commit: what the API layer has answered, and what the coordinator must."""

    asked: OffsetCommitRequestTopic
    name: str
    topic_id: TopicId
    exists: bool
    answered: tuple[OffsetCommitResponsePartition, ...]
    open: tuple[OffsetCommitRequestPartition, ...]


CommittedTopic: TypeAlias = _Topic


def decide_commit(
    env: Environment, now_ms: int, version: int, request: OffsetCommitRequest
) -> Decision[OffsetCommitResponse]:
    """Decide one OffsetCommit. Never raises: every refusal is an answer per partition."""
    decision = decide_offsets(
        env,
        now_ms,
        version,
        request,
        lambda topics: _require_committer(env, version, request, topics),
    )
    if decision.simple_group is not None:
        decision.timers += _session(env, now_ms, request)
    return decision


def too_large(response: _Response) -> _Response:
    """The answer to a commit whose records do not fit into one batch: the coordinator failed on
    all that it had looked at, and nothing is stored."""
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code in (0, ErrorCode.OFFSET_METADATA_TOO_LARGE):
                partition.error_code = ErrorCode.UNKNOWN_SERVER_ERROR
    return response


def decide_offsets(
    env: Environment,
    now_ms: int,
    version: int,
    request: OffsetCommitRequest,
    require: Callable[[Sequence[_Topic]], None],
    *,
    producer: tuple[int, int] | None = None,
) -> Decision[OffsetCommitResponse]:
    """Decide about offsets for a committer that ``require`` lets through, or refuses by raising
    ``Refused``; pending ones for a ``producer``."""
    topics = [_looked_up(env.catalog, version, topic) for topic in request.topics]
    refused: Refused | None = None
    asked = any(topic.open for topic in topics)
    if asked:
        try:
            require(topics)
        except Refused as err:
            refused = err
    commit = _Commit(env, now_ms, version, request, producer)
    answers = _in_order(
        topics,
        lambda topic, partition: (
            commit.partition(topic, partition)
            if refused is None
            else _answer(partition, refused.code)
        ),
    )
    served = asked and refused is None
    return Decision(
        OffsetCommitResponse(topics=answers),
        commit.records,
        simple_group=request.group_id if served else None,
    )


def refuse_offsets(
    catalog: Catalog, version: int, request: OffsetCommitRequest, code: ErrorCode
) -> OffsetCommitResponse:
    """The answer when the coordinator cannot be asked: what does not exist has its own error."""
    topics = [_looked_up(catalog, version, topic) for topic in request.topics]
    return OffsetCommitResponse(
        topics=_in_order(topics, lambda _topic, partition: _answer(partition, code))
    )


def names_partitions(catalog: Catalog, version: int, request: OffsetCommitRequest) -> bool:
    """Whether the request names any existing partition; the API layer answers for the others."""
    return any(_looked_up(catalog, version, topic).open for topic in request.topics)


def _in_order(
    topics: Sequence[_Topic],
    answer: Callable[[_Topic, OffsetCommitRequestPartition], OffsetCommitResponsePartition],
) -> tuple[OffsetCommitResponseTopic, ...]:
    """What the API layer refused comes first, topic by topic; the coordinator's answers follow.

    A topic that exists is not mentioned when the request names no partition of it. What is said of
    one topic is put together, unless nothing was refused: then the coordinator's answer is passed
    on as it is, with the topics as often as they were named.
    """
    refused = [topic for topic in topics if topic.answered or not topic.exists]
    open_topics = [topic for topic in topics if topic.open]
    rows: dict[tuple[str, bytes, int], OffsetCommitResponseTopic] = {}

    def add(
        topic: _Topic, number: int, partitions: Iterable[OffsetCommitResponsePartition]
    ) -> None:
        asked = topic.asked
        key = (asked.name, bytes(asked.topic_id), number)
        row = rows.setdefault(
            key, OffsetCommitResponseTopic(name=asked.name, topic_id=asked.topic_id)
        )
        row.partitions = (*row.partitions, *partitions)

    for topic in refused:
        add(topic, 0, topic.answered)
    for number, topic in enumerate(open_topics):
        add(topic, 0 if refused else number, (answer(topic, each) for each in topic.open))
    return tuple(rows.values())


def _session(env: Environment, now_ms: int, request: OffsetCommitRequest) -> list[TimerChange]:
    """In classic groups a commit is a sign of life."""
    group = env.state.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        return []
    kept = commit_keeps_session(group, request.member_id)
    return [] if kept is None else [TimerChange(kept[0], now_ms + kept[1])]


class _Commit:
    """A commit that was let through, partition by partition."""

    def __init__(
        self,
        env: Environment,
        now_ms: int,
        version: int,
        request: OffsetCommitRequest,
        producer: tuple[int, int] | None,
    ) -> None:
        self.records: list[StateRecord] = []
        self._producer = producer
        self._group_id = request.group_id
        self._now_ms = now_ms
        by_id = version >= TOPIC_ID_VERSION or env.profile.named_commits_store_topic_id
        # the only record format that has a time of expiry has no field for an id
        self._stores_ids = by_id and request.retention_time_ms == -1
        self._metadata_max = env.config.integer("offset.metadata.max.bytes")
        retention_ms = request.retention_time_ms
        self._expire_ms = None if retention_ms == -1 else _as_java_adds(now_ms, retention_ms)

    def partition(
        self, topic: _Topic, partition: OffsetCommitRequestPartition
    ) -> OffsetCommitResponsePartition:
        """Note the offset, unless its metadata is too long."""
        metadata = partition.committed_metadata or ""
        if _java_length(metadata) > self._metadata_max:
            return _answer(partition, ErrorCode.OFFSET_METADATA_TOO_LARGE)
        value = OffsetAndMetadata(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp_ms=self._now_ms,
            expire_timestamp_ms=self._expire_ms,
            topic_id=topic.topic_id if self._stores_ids else ZERO_TOPIC_ID,
        )
        record = OffsetCommit(
            self._group_id, topic.name, partition.partition_index, value, self._producer
        )
        self.records.append(record)
        return _answer(partition, ErrorCode.NONE)


# --- The API layer --------------------------------------------------------------------------------


def _looked_up(catalog: Catalog, version: int, asked: OffsetCommitRequestTopic) -> _Topic:
    """Answer for what does not exist: the topic, or a partition of it."""
    by_id = version >= TOPIC_ID_VERSION
    found = catalog.topic_by_id(asked.topic_id) if by_id else catalog.topic(asked.name)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if found is None and by_id:
        missing = ErrorCode.UNKNOWN_TOPIC_ID
    count = 0 if found is None else found.partitions
    known: list[OffsetCommitRequestPartition] = []
    unknown: list[OffsetCommitRequestPartition] = []
    for partition in asked.partitions:
        (known if 0 <= partition.partition_index < count else unknown).append(partition)
    return _Topic(
        asked,
        asked.name if found is None else found.name,
        ZERO_TOPIC_ID if found is None else found.topic_id,
        found is not None,
        tuple(_answer(partition, missing) for partition in unknown),
        tuple(known),
    )


def _answer(
    partition: OffsetCommitRequestPartition, code: ErrorCode
) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)


def _java_length(text: str) -> int:
    """``String.length()``: UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


# --- The coordinator ------------------------------------------------------------------------------


def _require_committer(
    env: Environment,
    version: int,
    request: OffsetCommitRequest,
    topics: Sequence[_Topic],
) -> None:
    """Raise ``Refused`` when this member, or a client without one, may not commit to the group
    now."""
    epoch = request.generation_id_or_member_epoch
    group = env.state.groups.get(request.group_id)
    if group is None:
        if epoch < 0:
            return  # a simple group comes into being
        if version >= MEMBER_EPOCH_VERSION:
            raise group_id_not_found(request.group_id)
        raise Refused(ErrorCode.ILLEGAL_GENERATION)
    if isinstance(group, ConnectGroup):
        raise not_a_consumer_group(request.group_id)
    if isinstance(group, ConsumerGroup):
        _require_member(env, group, version, request, topics)
        return
    require_committer(group, request.member_id, request.group_instance_id, epoch)


def _require_member(
    env: Environment,
    group: ConsumerGroup,
    version: int,
    request: OffsetCommitRequest,
    topics: Sequence[_Topic],
) -> None:
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and group.is_empty:
        return
    member = group.members.get(request.member_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    if version < MEMBER_EPOCH_VERSION and member.classic is None:
        raise Refused(ErrorCode.UNSUPPORTED_VERSION)
    _require_epoch(env, member, epoch, topics)


def require_txn_committer(
    env: Environment, request: OffsetCommitRequest, topics: Sequence[_Topic]
) -> None:
    """Raise ``Refused`` when a producer may not commit now, for this member or without one."""
    epoch, member_id = request.generation_id_or_member_epoch, request.member_id
    group = env.state.groups.get(request.group_id)
    if group is None:
        if epoch >= 0:
            raise group_id_not_found(request.group_id)
        return  # a simple group comes into being
    if isinstance(group, ConnectGroup):
        raise not_a_consumer_group(request.group_id)
    if not isinstance(group, ConsumerGroup):
        require_committer(group, member_id, request.group_instance_id, epoch, transactional=True)
        return
    if epoch < 0 and group.is_empty:
        return
    if epoch == -1 and not member_id and request.group_instance_id is None:
        return
    member = group.members.get(member_id)
    if member is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID)
    _require_epoch(env, member, epoch, topics)


def _require_epoch(env: Environment, member: Member, epoch: int, topics: Sequence[_Topic]) -> None:
    """The member's epoch, or an older one for what was its own already (KIP-1251)."""
    if epoch == member.epoch:
        return
    if not env.profile.commits_use_assignment_epoch or epoch > member.epoch:
        raise Refused(outdated_error(member))
    limit = env.config.integer("offset.metadata.max.bytes")
    if not all(
        _was_owned(env, member, topic.name, partition.partition_index, epoch)
        for topic in topics
        for partition in topic.open
        if _java_length(partition.committed_metadata or "") <= limit  # refused on its own
    ):
        raise Refused(outdated_error(member))


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


def _as_java_adds(one: int, other: int) -> int:
    """The sum of two int64; a retention time without sense makes Kafka's overflow, too."""
    return (one + other + 2**63) % 2**64 - 2**63
