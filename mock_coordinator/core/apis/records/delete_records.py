"""DeleteRecords (key 21): moves the start of a partition's log forward (KIP-107)."""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsResponseDeleteRecordsPartitionResult,
    DeleteRecordsResponseDeleteRecordsTopicResult,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.map_orders import grouped_as_scala
from mock_coordinator.core.settings.topic_config import topic_text
from mock_coordinator.core.state.broker import Broker

__all__ = ["delete_records"]

_Partition = DeleteRecordsResponseDeleteRecordsPartitionResult

_TO_THE_END: Final = -1
_NO_WATERMARK: Final = -1


def delete_records(call: ApiCall[DeleteRecordsRequest]) -> DeleteRecordsResponse:
    """Delete what is below an offset (-1: everything); the answer is where each log begins now."""
    broker, request = call.broker, call.request
    results: dict[tuple[str, int], _Partition] = {}
    wanted = {  # of two offsets for one partition the later one counts
        (topic.name, asked.partition_index): asked.offset
        for topic in request.topics
        for asked in topic.partitions
    }
    for (name, index), offset in wanted.items():
        results[name, index] = _deleted(broker, name, index, offset)
    return DeleteRecordsResponse(
        topics=tuple(
            DeleteRecordsResponseDeleteRecordsTopicResult(
                name=name, partitions=tuple(results[name, index] for index in indexes)
            )
            for name, indexes in grouped_as_scala(results).items()
        )
    )


def _deleted(broker: Broker, name: str, index: int, offset: int) -> _Partition:
    topic = broker.catalog.topic(name)
    log = None if topic is None else broker.logs.of(topic, index)
    if topic is None or log is None:
        return _refused(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.internal:
        return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION)
    if "delete" not in (topic_text(broker.config, topic, "cleanup.policy") or "").split(","):
        return _refused(index, ErrorCode.POLICY_VIOLATION)
    if not broker.leads(topic, index):
        return _refused(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if offset == _TO_THE_END:
        offset = log.high_watermark
    if not 0 <= offset <= log.high_watermark:
        return _refused(index, ErrorCode.OFFSET_OUT_OF_RANGE)
    log.delete_before(offset)
    return _Partition(partition_index=index, low_watermark=log.log_start_offset)


def _refused(index: int, code: ErrorCode) -> _Partition:
    return _Partition(partition_index=index, low_watermark=_NO_WATERMARK, error_code=code)
