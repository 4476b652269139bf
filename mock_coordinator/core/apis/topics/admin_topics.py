"""DeleteTopics (key 20) and CreatePartitions (key 37), as Kafka's controller answers them."""

from __future__ import annotations

from collections import Counter

from kip848_client.core.assignors._java_order import string_set_order
from kip848_client.core.types import ZERO_TOPIC_ID
from kip848_client.core.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreatePartitionsResponse,
    CreatePartitionsResponseCreatePartitionsTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
    DeleteTopicsResponse,
    DeleteTopicsResponseDeletableTopicResult,
)
from kip848_client.error_codes import ErrorCode, default_message
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.apis.topics.create_topics import (
    MAX_PARTITIONS_PER_REQUEST,
    check_replicas,
)
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.topics.catalog import Topic

__all__ = ["create_partitions", "delete_topics"]

_Deleted = DeleteTopicsResponseDeletableTopicResult
_Grown = CreatePartitionsResponseCreatePartitionsTopicResult

_NAMES_ONLY_BEFORE = 6
_DISABLED_SINCE = 3


def delete_topics(call: ApiCall[DeleteTopicsRequest]) -> DeleteTopicsResponse:
    """Delete topics by name or by id. Refusals come first in the response."""
    broker, version, request = call.broker, call.version, call.request
    asked = (
        request.topics
        if version >= _NAMES_ONLY_BEFORE
        else tuple(DeleteTopicsRequestDeleteTopicState(name=n) for n in request.topic_names)
    )
    if not broker.config.boolean("delete.topic.enable"):
        code = ErrorCode.TOPIC_DELETION_DISABLED
        if version < _DISABLED_SINCE:
            code = ErrorCode.INVALID_REQUEST
        return DeleteTopicsResponse(
            responses=tuple(
                _Deleted(name=t.name, topic_id=t.topic_id, error_code=code, error_message=None)
                for t in asked
            )
        )
    if request.timeout_ms <= 0 and _any_once(asked):
        code = ErrorCode.REQUEST_TIMED_OUT  # before the controller has looked for them
        return DeleteTopicsResponse(
            responses=tuple(_refusal(t.name, t.topic_id, None, code) for t in asked)
        )
    refused, to_delete = _sorted_out(broker, asked)
    for topic in to_delete:
        broker.catalog.delete(topic.name)
    deleted = [_Deleted(name=t.name, topic_id=t.topic_id, error_message=None) for t in to_delete]
    return DeleteTopicsResponse(responses=(*refused, *deleted))


def _any_once(asked: tuple[DeleteTopicsRequestDeleteTopicState, ...]) -> bool:
    """Whether any topic is named as it should be: by name or by id, and once."""
    named = Counter(
        (entry.name, bytes(entry.topic_id))
        for entry in asked
        if (entry.name is None) != (entry.topic_id == ZERO_TOPIC_ID)
    )
    return 1 in named.values()


def _sorted_out(
    broker: Broker, asked: tuple[DeleteTopicsRequestDeleteTopicState, ...]
) -> tuple[list[_Deleted], list[Topic]]:
    """Refusals, and topics to be deleted. A topic that is named twice is not deleted at all."""
    names: dict[str, int] = {}
    ids: dict[bytes, int] = {}
    refused: list[_Deleted] = []
    for entry in asked:
        topic_id = bytes(entry.topic_id)
        if entry.name is None and topic_id == ZERO_TOPIC_ID:
            refused.append(_refusal(None, topic_id, "Neither topic name nor id were specified."))
        elif entry.name is not None and topic_id != ZERO_TOPIC_ID:
            text = "You may not specify both topic name and topic id."
            refused.append(_refusal(entry.name, topic_id, text))
        elif entry.name is not None:
            names[entry.name] = names.get(entry.name, 0) + 1
        else:
            ids[topic_id] = ids.get(topic_id, 0) + 1
    to_delete: dict[bytes, Topic] = {}
    for topic_id, times in ids.items():
        topic = broker.catalog.topic_by_id(topic_id)
        if times > 1:
            refused.append(_refusal(None, topic_id, "Duplicate topic id."))
        elif topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
            refused.append(_refusal(None, topic_id, default_message(code), code))
        else:
            to_delete[topic_id] = topic
    by_name: list[Topic] = []
    for name, times in names.items():
        topic = broker.catalog.topic(name)
        if times > 1:
            refused.append(_refusal(name, ZERO_TOPIC_ID, "Duplicate topic name."))
        elif topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(_refusal(name, ZERO_TOPIC_ID, default_message(code), code))
        elif topic.topic_id in ids:
            text = "The provided topic name maps to an ID that was already supplied."
            refused.append(_refusal(name, topic.topic_id, text))
            to_delete.pop(topic.topic_id, None)
        else:
            by_name.append(topic)
    return refused, [*by_name, *to_delete.values()]


def _refusal(
    name: str | None,
    topic_id: bytes,
    text: str | None,
    code: ErrorCode = ErrorCode.INVALID_REQUEST,
) -> _Deleted:
    return _Deleted(name=name, topic_id=topic_id, error_code=code, error_message=text)


def create_partitions(call: ApiCall[CreatePartitionsRequest]) -> CreatePartitionsResponse:
    """Add partitions to topics, up to a count."""
    broker, request = call.broker, call.request
    counts: dict[str, int] = {}
    for asked in request.topics:
        counts[asked.name] = counts.get(asked.name, 0) + 1
    refused_as_a_whole = _whole_refusal(broker, request, counts)
    if refused_as_a_whole is not None:
        code, text = refused_as_a_whole
        return CreatePartitionsResponse(
            results=tuple(
                _Grown(name=asked.name, error_code=code, error_message=text)
                for asked in request.topics
            )
        )
    twice = string_set_order(name for name, times in counts.items() if times > 1)
    code, text = ErrorCode.INVALID_REQUEST, "Duplicate topic name."
    results = {name: _Grown(name=name, error_code=code, error_message=text) for name in twice}
    grown_by = 0
    for asked in request.topics:
        if asked.name in results:
            continue
        try:
            topic = _check_growth(broker, asked)
            grown_by += asked.count - topic.partitions
            _check_batch(grown_by)
            if not request.validate_only:
                factor = len(broker.partition_state(topic, 0).replicas)
                broker.catalog.grow(asked.name, asked.count)
                given = asked.assignments
                where = None if given is None else [tuple(a.broker_ids) for a in given]
                broker.disk.leaders.place(topic, where, factor)
            results[asked.name] = _Grown(name=asked.name)
        except Refused as refused:
            results[asked.name] = _Grown(
                name=asked.name, error_code=refused.code, error_message=refused.message
            )
    return CreatePartitionsResponse(results=tuple(results.values()))


def _check_batch(grown_by: int) -> None:
    """Brokers before 4.4 fail on it; later ones have refused it by now. Raises ``Refused``."""
    if grown_by > MAX_PARTITIONS_PER_REQUEST:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, None)


def _whole_refusal(
    broker: Broker, request: CreatePartitionsRequest, counts: dict[str, int]
) -> tuple[ErrorCode, str | None] | None:
    """Why nothing is done at all, as an error and its words, which each topic gets."""
    if request.timeout_ms <= 0:
        return ErrorCode.REQUEST_TIMED_OUT, None
    if not broker.profile.partition_growth_limited:
        return None
    grown_by = 0
    for asked in request.topics:
        topic = broker.catalog.topic(asked.name)
        if topic is not None and counts[asked.name] == 1:
            grown_by += max(asked.count - topic.partitions, 0)
    if grown_by <= MAX_PARTITIONS_PER_REQUEST:
        return None
    text = "Excessively large number of additional partitions per request."
    return ErrorCode.POLICY_VIOLATION, text


def _check_growth(broker: Broker, asked: CreatePartitionsRequestCreatePartitionsTopic) -> Topic:
    """The topic that may grow. Raises ``Refused``."""
    topic = broker.catalog.topic(asked.name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    if asked.count == topic.partitions:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS, f"Topic already has {topic.partitions} partition(s)."
        )
    if asked.count < topic.partitions:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {topic.partitions} partition(s); "
            f"{asked.count} would not be an increase.",
        )
    more = asked.count - topic.partitions
    if asked.assignments is None:
        return topic
    if len(asked.assignments) != more:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {more} additional partition(s), but only "
            f"{len(asked.assignments)} assignment(s) were specified.",
        )
    for assignment in asked.assignments:
        check_replicas(broker, assignment.broker_ids)
    return topic
