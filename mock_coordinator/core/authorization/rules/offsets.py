"""Rules for offsets: OffsetCommit, OffsetFetch, OffsetDelete, TxnOffsetCommit.

Errors from a broker's API layer (topic not authorized or unknown) come first in the response, in
the order of the request; results of the coordinator come after them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kip848_client.core.wire.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kip848_client.core.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.authorization.requester import (
    ADMITTED,
    Admission,
    Admitted,
    Denied,
    Requester,
)
from mock_coordinator.core.security.acls import Operation

__all__ = [
    "admit_offset_commit",
    "admit_offset_delete",
    "admit_offset_fetch",
    "admit_txn_offset_commit",
]

_TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_FOUND_WRONG_FIRST: Final = (
    _TOPIC_DENIED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
)
_BATCHED_SINCE: Final = 8
_GROUP_ERROR_SINCE: Final = 2


def admit_offset_commit(requester: Requester, request: Any) -> Admission:
    """Key 8: READ on the group, then READ on each topic."""

    def refusal(topic: Any, code: ErrorCode) -> OffsetCommitResponseTopic:
        return OffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
                for p in topic.partitions
            ),
        )

    if not requester.may_group(Operation.READ, request.group_id):
        topics = tuple(refusal(topic, _GROUP_DENIED) for topic in request.topics)
        return Denied(OffsetCommitResponse(topics=topics))
    return _by_topic(requester, request, refusal, OffsetCommitResponse())


def admit_txn_offset_commit(requester: Requester, request: Any) -> Admission:
    """Key 28: WRITE on the transactional id, READ on the group, READ on each topic."""

    def refusal(topic: Any, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
        return TxnOffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                TxnOffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
                for p in topic.partitions
            ),
        )

    code = None
    if not requester.may_transact(Operation.WRITE, request.transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not requester.may_group(Operation.READ, request.group_id):
        code = _GROUP_DENIED
    if code is not None:
        topics = tuple(refusal(topic, code) for topic in request.topics)
        return Denied(TxnOffsetCommitResponse(topics=topics))
    return _by_topic(requester, request, refusal, TxnOffsetCommitResponse())


def admit_offset_delete(requester: Requester, request: Any) -> Admission:
    """Key 47: DELETE on the group, READ on each topic; the coordinator says what it thinks of the
    group even when no topic is left."""

    def refusal(topic: Any, code: ErrorCode) -> OffsetDeleteResponseTopic:
        return OffsetDeleteResponseTopic(
            name=topic.name,
            partitions=tuple(
                OffsetDeleteResponsePartition(partition_index=p.partition_index, error_code=code)
                for p in topic.partitions
            ),
        )

    if not requester.may_group(Operation.DELETE, request.group_id):
        return Denied(OffsetDeleteResponse(error_code=_GROUP_DENIED))
    return _by_topic(requester, request, refusal, None)


def _by_topic(requester: Requester, request: Any, refusal: Any, nothing_left: Any) -> Admission:
    """Hold back the topics that the client may not READ. When all are, the answer is made from
    ``nothing_left``; ``None`` for a coordinator that is asked nevertheless."""
    kept: list[Any] = []
    denied: list[Any] = []
    for topic in request.topics:
        by_id = any(getattr(topic, "topic_id", b""))
        name = requester.name_of(topic.topic_id) if by_id else topic.name
        if name is None or requester.may_topic(Operation.READ, name):
            kept.append(topic)
        else:
            denied.append(refusal(topic, _TOPIC_DENIED))
    if not denied:
        return ADMITTED

    def complete(response: Any) -> Any:
        if getattr(response, "error_code", 0):
            return response
        return replace(response, topics=_in_order(request.topics, denied, response.topics))

    if not kept and nothing_left is not None:
        return Denied(complete(nothing_left))
    return Admitted(replace(request, topics=tuple(kept)), complete)


def _key(topic: Any) -> tuple[str, bytes]:
    return topic.name, bytes(getattr(topic, "topic_id", b""))


def _in_order(asked: Any, denied: Any, answered: Any) -> tuple[Any, ...]:
    """What was found wrong first, in the order of the request, then the coordinator's answers."""
    order = {_key(topic): index for index, topic in enumerate(asked)}
    wrong = [topic for topic in answered if _is_wrong(topic)]
    fine = [topic for topic in answered if not _is_wrong(topic)]
    wrong = sorted([*wrong, *denied], key=lambda topic: order.get(_key(topic), 0))
    return (*wrong, *fine)


def _is_wrong(topic: Any) -> bool:
    return any(p.error_code in _FOUND_WRONG_FIRST for p in topic.partitions)


def admit_offset_fetch(requester: Requester, request: OffsetFetchRequest) -> Admission:
    """Key 9: DESCRIBE on the group, DESCRIBE on each topic; all topics means those."""
    if requester.version < _BATCHED_SINCE:
        return _fetch_of_one(requester, request)
    kept = tuple(
        replace(group, topics=_describable(requester, group.topics))
        for group in request.groups
        if requester.may_group(Operation.DESCRIBE, group.group_id)
    )

    def complete(response: Any) -> Any:
        answered = list(response.groups)
        merged: list[OffsetFetchResponseGroup] = []
        for group in request.groups:
            if requester.may_group(Operation.DESCRIBE, group.group_id):
                merged.append(_completed(requester, group, answered.pop(0)))
            else:
                merged.append(
                    OffsetFetchResponseGroup(group_id=group.group_id, error_code=_GROUP_DENIED)
                )
        return replace(response, groups=tuple(merged))

    if not kept:
        return Denied(complete(OffsetFetchResponse()))
    return Admitted(replace(request, groups=kept), complete)


def _fetch_of_one(requester: Requester, request: OffsetFetchRequest) -> Admission:
    if not requester.may_group(Operation.DESCRIBE, request.group_id):
        if requester.version >= _GROUP_ERROR_SINCE:
            return Denied(OffsetFetchResponse(error_code=_GROUP_DENIED))
        topics = tuple(_unreadable(topic, _GROUP_DENIED) for topic in request.topics or ())
        return Denied(OffsetFetchResponse(topics=topics))
    kept = _describable(requester, request.topics)

    def complete(response: Any) -> Any:
        if response.error_code:
            return response
        if request.topics is None:
            return replace(response, topics=_visible(requester, response.topics))
        denied = [_unreadable(t, _TOPIC_DENIED) for t in request.topics if t not in (kept or ())]
        return replace(response, topics=(*response.topics, *denied))

    return Admitted(replace(request, topics=kept), complete)


def _name(requester: Requester, topic: Any) -> str | None:
    """The topic's name; ``None`` for an id that is not known."""
    by_id = any(getattr(topic, "topic_id", b""))
    return requester.name_of(topic.topic_id) if by_id else str(topic.name)


def _may_describe(requester: Requester, topic: Any) -> bool:
    name = _name(requester, topic)
    return name is None or requester.may_topic(Operation.DESCRIBE, name)


def _describable(requester: Requester, topics: Any) -> Any:
    return None if topics is None else tuple(t for t in topics if _may_describe(requester, t))


def _visible(requester: Requester, topics: Any) -> tuple[Any, ...]:
    return tuple(topic for topic in topics if _may_describe(requester, topic))


def _completed(requester: Requester, asked: Any, answered: Any) -> OffsetFetchResponseGroup:
    """The group's answer with what was held back, behind what could be fetched."""
    group: OffsetFetchResponseGroup = answered
    if group.error_code:
        return group
    if asked.topics is None:
        return replace(group, topics=_visible(requester, group.topics))
    denied = [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=tuple(
                OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=-1,
                    metadata="",
                    error_code=_TOPIC_DENIED,
                )
                for index in topic.partition_indexes
            ),
        )
        for topic in asked.topics
        if not _may_describe(requester, topic)
    ]
    order = {_key(topic): index for index, topic in enumerate(asked.topics)}
    wrong = [topic for topic in group.topics if _is_wrong(topic)]
    fine = [topic for topic in group.topics if not _is_wrong(topic)]
    wrong = sorted([*wrong, *denied], key=lambda topic: order.get(_key(topic), 0))
    return replace(group, topics=(*fine, *wrong))


def _unreadable(topic: Any, code: ErrorCode) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetFetchResponsePartition(
                partition_index=index, committed_offset=-1, metadata="", error_code=code
            )
            for index in topic.partition_indexes
        ),
    )
