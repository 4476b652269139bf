"""Requests that write to partitions and read them: Produce, Fetch, ListOffsets,
OffsetForLeaderEpoch."""

from __future__ import annotations

import random
import time
from typing import Final

from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
)
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from mock_coordinator.batches import NewRecord, encode_batch
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import Ask, Topic

__all__ = ["NO_PRODUCER", "batch", "fetch", "list_offsets", "produce"]

NO_PRODUCER: Final = (-1, -1, -1)
_TRANSACTIONAL: Final = 0x10
_TIME_MS: Final = int(time.time() * 1000) - 60_000
"""Near the present: a week between two records would begin a segment, and fetches end there."""

_TOPIC_IDS_FROM: Final = 13


def batch(
    rng: random.Random,
    producer: tuple[int, int, int] = NO_PRODUCER,
    *,
    count: int = 1,
    transactional: bool = False,
) -> bytes:
    """A batch of records. ``producer`` is (id, epoch, base sequence)."""
    records = [
        NewRecord(
            rng.choice([b"v", b"value", None, b"x" * 200]),
            key=rng.choice([None, b"k", b"key"]),
            timestamp_ms=_TIME_MS + rng.randrange(5000),
            headers=rng.choice([(), (("h", b"1"),), (("h", None),)]),
        )
        for _ in range(count)
    ]
    producer_id, epoch, sequence = producer
    return encode_batch(
        records,
        _TIME_MS,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=_TRANSACTIONAL if transactional else 0,
    )


def produce(
    state: SequenceState,
    topic: Topic,
    partition: int,
    records: bytes,
    *,
    action: str = "produce",
    transactional_id: str | None = None,
    version: int | None = None,
    acks: int = -1,
) -> Ask:
    """Write one batch to one partition."""
    chosen = max(3, state.version("Produce")) if version is None else version
    data = ProduceRequestTopicProduceData(
        name=topic.name,
        topic_id=topic.topic_id if chosen >= _TOPIC_IDS_FROM else bytes(16),
        partition_data=(ProduceRequestPartitionProduceData(index=partition, records=records),),
    )
    message = ProduceRequest(
        transactional_id=transactional_id, acks=acks, timeout_ms=10_000, topic_data=(data,)
    )
    return state.ask(action, message, chosen)


def fetch(
    state: SequenceState, topic: Topic, partition: int, offset: int, *, committed: bool = False
) -> Ask:
    """Read one partition, without waiting and without a session."""
    version = state.version("Fetch")
    asked = FetchRequestFetchTopic(
        topic=topic.name,
        topic_id=topic.topic_id if version >= _TOPIC_IDS_FROM else bytes(16),
        partitions=(
            FetchRequestFetchPartition(
                partition=partition, fetch_offset=offset, partition_max_bytes=1_000_000
            ),
        ),
    )
    message = FetchRequest(
        max_wait_ms=0, min_bytes=0, isolation_level=1 if committed else 0, topics=(asked,)
    )
    return state.ask("fetch-records", message, version)


def list_offsets(
    state: SequenceState, topic: Topic, partition: int, timestamp: int, *, committed: bool = False
) -> Ask:
    """Look an offset up by time, or by one of the special times."""
    version = state.version("ListOffsets")
    asked = ListOffsetsRequestListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    message = ListOffsetsRequest(
        replica_id=-1,
        topics=(ListOffsetsRequestListOffsetsTopic(name=topic.name, partitions=(asked,)),),
    )
    if version >= 2 and committed:
        message.isolation_level = 1
    return state.ask("list-offsets", message, version)
