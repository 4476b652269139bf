"""A broker in process, on a clock that stands still, with ids that count: for the unit tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponsePartitionData,
)
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
    ProduceResponsePartitionProduceResponse,
)
from mock_coordinator import InProcessConnection, MockBroker, NewRecord, VirtualClock
from mock_coordinator.batches import encode_batch

__all__ = ["BrokerHarness", "counting"]

START_MS = 1_750_000_000_000


def counting() -> Callable[[], bytes]:
    """Ids 1, 2, 3, .. as 16 bytes whose first four count too (session ids are made of them)."""
    count = 0

    def new_uuid() -> bytes:
        nonlocal count
        count += 1
        return count.to_bytes(4, "big") + bytes(8) + count.to_bytes(4, "big")

    return new_uuid


class BrokerHarness:
    """A broker, a clock and a connection."""

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        *,
        profile: str = "4.4",
        **config: str,
    ) -> None:
        self.clock = VirtualClock(START_MS)
        self.broker = MockBroker(
            topics,
            profile=profile,
            config={name.replace("_", "."): value for name, value in config.items()},
            listen=False,
            clock=self.clock,
            new_uuid=counting(),
        )
        self.connection: InProcessConnection = self.broker.connect()

    def ask(self, request: Message, version: int | None = None) -> Any:
        """The response to a request that is answered at once."""
        return self.connection.ask(request, version)

    def produce_bytes(
        self,
        topic: str,
        records: bytes | None,
        *,
        partition: int = 0,
        version: int = 9,
        **more: Any,
    ) -> ProduceResponsePartitionProduceResponse:
        """Produce any bytes to a partition."""
        acks = more.pop("acks", -1)
        data = ProduceRequestPartitionProduceData(index=partition, records=records)
        request = ProduceRequest(
            acks=acks,
            topic_data=(ProduceRequestTopicProduceData(name=topic, partition_data=(data,)),),
            **more,
        )
        response = self.ask(request, version)
        answer: ProduceResponsePartitionProduceResponse = response.responses[0].partition_responses[
            0
        ]
        return answer

    def batch(self, *values: bytes, **more: Any) -> bytes:
        """A batch of these values."""
        return encode_batch([NewRecord(value) for value in values], START_MS, **more)

    def fetch_request(
        self, *partitions: FetchRequestFetchPartition, topic: str = "t", **more: Any
    ) -> FetchRequest:
        """A fetch of partitions of one topic, by name."""
        topics = (FetchRequestFetchTopic(topic=topic, partitions=partitions),) if partitions else ()
        return FetchRequest(topics=topics, **more)

    def fetch(
        self, offset: int = 0, *, partition: int = 0, version: int = 12, **more: Any
    ) -> FetchResponsePartitionData:
        """Fetch one partition of topic ``t`` and return what is said about it."""
        wanted = fetch_partition(offset, partition=partition, **more)
        response = self.ask(self.fetch_request(wanted), version)
        answer: FetchResponsePartitionData = response.responses[0].partitions[0]
        return answer


def fetch_partition(
    offset: int = 0, *, partition: int = 0, max_bytes: int = 1 << 20, **more: Any
) -> FetchRequestFetchPartition:
    """One partition of a fetch request."""
    return FetchRequestFetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, **more
    )
