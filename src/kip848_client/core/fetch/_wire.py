"""Fetch and ListOffsets between the core's terms and the wire's: pure translation.

Every driver of the fetch core (the consumer, the simulation) translates through here. Nothing here
raises, whatever a broker answers: rows that were not requested, or are empty, are left out or left
to the core.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from typing import Final

from kip848_client.core.cluster import (
    Endpoint,
)
from kip848_client.core.fetch._commands import CloseSession, ListOffsets
from kip848_client.core.fetch._model import (
    EpochEnd,
    FetchAnswer,
    FetchIntent,
    ListedOffset,
    PartitionAnswer,
    Wanted,
)
from kip848_client.core.types import TopicId, TopicIdPartition, TopicPartition
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestForgottenTopic,
    FetchResponse,
    FetchResponsePartitionData,
)
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
    ListOffsetsResponse,
)

__all__ = [
    "FETCH_VERSIONS",
    "closing_request",
    "fetch_answer",
    "fetch_request",
    "list_offsets_request",
    "list_offsets_versions",
    "listed_offsets",
]

FETCH_VERSIONS: Final = (13, 18)
"""The lowest and highest supported version. From 13 on topics are identified by id (KIP-516): by
name, a recreated topic would continue in the session of the old one."""

_CONSUMER: Final = -1
"""Replica id of a client, as opposed to a broker."""
_READ_COMMITTED: Final = 1
_LIST_OFFSETS_MAX: Final = 11
_ISOLATION_SINCE: Final = 2
_TIMES_SINCE: Final = {-3: 7, -4: 8, -5: 9, -6: 11}
"""Special timestamps, and the version of ListOffsets that added each."""
_ANY_TIME_SINCE: Final = 1

_FINAL_EPOCH: Final = -1


def fetch_request(intent: FetchIntent) -> FetchRequest:
    """Build the Fetch request (v13 to v18) for ``intent``.

    A broker serves partitions in the order in which they are named. So only neighbours share a row:
    a topic may be named more than once.
    """
    return FetchRequest(
        max_wait_ms=intent.max_wait_ms,
        min_bytes=intent.min_bytes,
        max_bytes=intent.max_bytes,
        isolation_level=_READ_COMMITTED if intent.read_committed else 0,
        session_id=intent.session_id,
        session_epoch=intent.session_epoch,
        topics=tuple(
            FetchRequestFetchTopic(
                topic_id=topic_id, partitions=tuple(_asked(each) for each in wanted)
            )
            for topic_id, wanted in groupby(intent.add, attrgetter("topic_id"))
        ),
        forgotten_topics_data=_forgotten(intent.forget),
        rack_id=intent.rack,
    )


def _asked(wanted: Wanted) -> FetchRequestFetchPartition:
    return FetchRequestFetchPartition(
        partition=wanted.partition,
        current_leader_epoch=wanted.leader_epoch,
        fetch_offset=wanted.offset,
        last_fetched_epoch=wanted.last_epoch,
        partition_max_bytes=wanted.max_bytes,
    )


def _forgotten(keys: Iterable[TopicIdPartition]) -> tuple[FetchRequestForgottenTopic, ...]:
    by_topic: dict[TopicId, list[int]] = {}
    for topic_id, partition in keys:
        by_topic.setdefault(topic_id, []).append(partition)
    return tuple(
        FetchRequestForgottenTopic(topic_id=topic_id, partitions=tuple(partitions))
        for topic_id, partitions in by_topic.items()
    )


def closing_request(command: CloseSession) -> FetchRequest:
    """Build the Fetch request that ends a session and fetches nothing (KIP-227: epoch -1)."""
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        session_id=command.session_id,
        session_epoch=_FINAL_EPOCH,
        topics=(),
        forgotten_topics_data=(),
        rack_id="",
    )


def fetch_answer(response: FetchResponse) -> FetchAnswer:
    """Translate a Fetch response (v13 to v18)."""
    partitions = tuple(
        _partition(TopicId(topic.topic_id), each)
        for topic in response.responses
        for each in topic.partitions
    )
    return FetchAnswer(
        error_code=response.error_code,
        session_id=response.session_id,
        throttle_time_ms=response.throttle_time_ms,
        partitions=partitions,
        nodes=tuple(
            Endpoint(node.node_id, node.host, node.port, node.rack)
            for node in response.node_endpoints
        ),
        size_bytes=sum(len(each.records) for each in partitions),
    )


def _partition(topic_id: TopicId, data: FetchResponsePartitionData) -> PartitionAnswer:
    end, leader = data.diverging_epoch, data.current_leader
    return PartitionAnswer(
        topic_id,
        data.partition_index,
        data.error_code,
        data.high_watermark,
        data.last_stable_offset,
        data.log_start_offset,
        None if end.epoch == end.end_offset == -1 else EpochEnd(end.epoch, end.end_offset),
        None
        if leader.leader_id == leader.leader_epoch == -1
        else (leader.leader_id, leader.leader_epoch),
        data.preferred_read_replica,
        tuple(
            (aborted.producer_id, aborted.first_offset)
            for aborted in data.aborted_transactions or ()
        ),
        data.records or b"",
    )


def list_offsets_request(command: ListOffsets, timeout_ms: int) -> ListOffsetsRequest:
    """Build the ListOffsets request for ``command``, in one of the versions of
    ``list_offsets_versions``. ``timeout_ms`` is how long a broker may search tiered storage."""
    asked = sorted(command.wanted.items())
    return ListOffsetsRequest(
        replica_id=_CONSUMER,
        isolation_level=_READ_COMMITTED if command.read_committed else 0,
        topics=tuple(
            ListOffsetsRequestListOffsetsTopic(
                name=topic,
                partitions=tuple(
                    ListOffsetsRequestListOffsetsPartition(
                        partition_index=tp.partition, current_leader_epoch=epoch, timestamp=time
                    )
                    for tp, (time, epoch) in rows
                ),
            )
            for topic, rows in groupby(asked, lambda row: row[0].topic)
        ),
        timeout_ms=timeout_ms,
    )


def list_offsets_versions(command: ListOffsets) -> tuple[int, int]:
    """The versions of ListOffsets that support this command."""
    lowest = _ISOLATION_SINCE if command.read_committed else _ANY_TIME_SINCE
    for time, _ in command.wanted.values():
        lowest = max(lowest, _TIMES_SINCE.get(time, lowest))
    return (lowest, _LIST_OFFSETS_MAX)


def listed_offsets(
    command: ListOffsets, response: ListOffsetsResponse
) -> dict[TopicPartition, ListedOffset]:
    """Return the rows of the response that were requested."""
    found: dict[TopicPartition, ListedOffset] = {}
    wanted: dict[tuple[str, int], TopicPartition] = {tp: tp for tp in command.wanted}
    for topic in response.topics:
        for each in topic.partitions:
            tp = wanted.get((topic.name, each.partition_index))
            if tp is not None:
                found[tp] = ListedOffset(
                    each.error_code, each.offset, each.timestamp, each.leader_epoch
                )
    return found
