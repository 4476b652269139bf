"""Several brokers in process, on a clock that stands still: a connection to each, and one to
all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.core.wire.messages.list_offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochRequestOffsetForLeaderPartition,
    OffsetForLeaderEpochRequestOffsetForLeaderTopic,
)
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from mock_coordinator import MockCluster, NewRecord, VirtualClock
from mock_coordinator.batches import encode_batch
from tests.unit.mock_coordinator.broker_harness import START_MS, counting

__all__ = ["ClusterHarness", "join"]


def join(
    group: str = "g", member: str = "m", *, topic: str = "all", epoch: int = 0
) -> ConsumerGroupHeartbeatRequest:
    """A member's first heartbeat, or with an epoch a later one that says nothing new."""
    if epoch:
        return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch)
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=(topic,),
        topic_partitions=(),
    )


class ClusterHarness:
    """Three brokers; topic ``one`` has a replica of each partition, ``all`` has three."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        racks: Sequence[str] = (),
        profile: str = "4.4",
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.clock = VirtualClock(START_MS)
        self.cluster = MockCluster(
            brokers=brokers,
            racks=racks,
            profile=profile,
            config={
                "group.consumer.assignment.interval.ms": "0",
                "group.initial.rebalance.delay.ms": "0",
                **(config or {}),
            },
            listen=False,
            clock=self.clock,
            new_uuid=counting(),
        )
        self.cluster.create_topic("one", 6, replication_factor=1)
        self.cluster.create_topic("all", 6)
        self.ids = {
            name: topic.topic_id for name, topic in self.cluster.core.broker.catalog.topics.items()
        }

    def at(self, node_id: int | None, request: Message, version: int | None = None) -> Any:
        """The answer of a broker (``None``: of whichever it takes)."""
        connection = self.cluster.connect(node_id=node_id)
        try:
            return connection.ask(request, version)
        finally:
            connection.close()

    def other(self, node_id: int | None) -> int:
        """A broker that is not this one."""
        return next(node.node_id for node in self.cluster.nodes if node.node_id != node_id)

    def leader(self, topic: str, partition: int = 0) -> int:
        """Who leads a partition."""
        leader = self.cluster.leader_of(topic, partition)
        assert leader is not None
        return leader

    def coordinator(self, group: str = "g") -> int:
        """Who coordinates a group."""
        found = self.cluster.coordinator_of(group)
        assert found is not None
        return found

    def produce_request(
        self, topic: str, partition: int = 0, version: int = 12, *, acks: int = -1
    ) -> ProduceRequest:
        """One record for one partition."""
        data = ProduceRequestPartitionProduceData(
            index=partition, records=encode_batch([NewRecord(b"x")], START_MS)
        )
        named = ProduceRequestTopicProduceData(
            name=topic if version < 13 else "",
            topic_id=self.ids[topic] if version >= 13 else bytes(16),
            partition_data=(data,),
        )
        return ProduceRequest(acks=acks, topic_data=(named,))

    def produce(
        self, node_id: int | None, topic: str, partition: int = 0, version: int = 12
    ) -> Any:
        """The whole answer to one record for one partition."""
        return self.at(node_id, self.produce_request(topic, partition, version), version)

    def fetch_request(
        self,
        topic: str,
        partition: int = 0,
        *,
        version: int = 17,
        offset: int = 0,
        epoch: int = -1,
        last_fetched: int = -1,
        max_wait_ms: int = 0,
    ) -> FetchRequest:
        """A fetch of one partition."""
        wanted = FetchRequestFetchPartition(
            partition=partition,
            fetch_offset=offset,
            current_leader_epoch=epoch,
            last_fetched_epoch=last_fetched,
            partition_max_bytes=1 << 20,
        )
        named = FetchRequestFetchTopic(
            topic=topic if version < 13 else "",
            topic_id=self.ids[topic] if version >= 13 else bytes(16),
            partitions=(wanted,),
        )
        return FetchRequest(session_epoch=-1, max_wait_ms=max_wait_ms, min_bytes=1, topics=(named,))

    def fetch(self, node_id: int | None, topic: str, *, version: int = 17, **more: Any) -> Any:
        """The whole answer to a fetch of one partition."""
        return self.at(node_id, self.fetch_request(topic, version=version, **more), version)

    def epoch_end(self, node_id: int | None, topic: str, asked: int, *, epoch: int = -1) -> Any:
        """Where a leader epoch of partition 0 ended."""
        wanted = OffsetForLeaderEpochRequestOffsetForLeaderPartition(
            partition=0, current_leader_epoch=epoch, leader_epoch=asked
        )
        named = OffsetForLeaderEpochRequestOffsetForLeaderTopic(topic=topic, partitions=(wanted,))
        response = self.at(node_id, OffsetForLeaderEpochRequest(topics=(named,)), 4)
        return response.topics[0].partitions[0]

    def find(self, *keys: str, key_type: int = 0, node_id: int | None = 1) -> Any:
        """Where the coordinators are, as a broker says it."""
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)
        return self.at(node_id, request, 6).coordinators

    def members(self, group: str) -> list[str]:
        """The members of a group that is loaded."""
        snapshot = self.cluster.snapshot(group)
        assert snapshot is not None
        return list(snapshot.members)
