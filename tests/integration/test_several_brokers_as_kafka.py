"""Three real brokers and our three are asked the same, and answer the same: at the leader and
elsewhere, at the coordinator and elsewhere, before and after a broker is shut down."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kip848_client.core.wire.messages.cluster import DescribeClusterRequest
from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.core.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochRequestOffsetForLeaderPartition,
    OffsetForLeaderEpochRequestOffsetForLeaderTopic,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.core.wire.messages.offset_delete import OffsetDeleteRequest
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from kip848_client.core.wire.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableReplicaAssignment,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator import MockCluster, NewRecord
from mock_coordinator.batches import encode_batch
from tests.support.real_cluster import RealCluster

GROUPS = tuple(f"g{i}" for i in range(8))
CONFIGS = {
    "offsets.topic.num.partitions": "6",
    "offsets.topic.replication.factor": "3",
    "group.consumer.assignment.interval.ms": "0",
}
PLACES = {
    "__consumer_offsets": ((1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2), (2, 1, 3), (3, 2, 1)),
    "all": ((1, 2, 3), (2, 3, 1), (3, 1, 2)),
    "one": ((1,), (2,), (3,)),
    "strict": ((1, 2, 3), (2, 3, 1), (3, 1, 2)),
}
MIN_IN_SYNC = {"strict": "3"}
MASKED = {
    "port",
    "cluster_id",
    "controller_id",
    "topic_id",
    "records",
    "high_watermark",  # a real follower learns of these later
    "last_stable_offset",
}
"""Of these it is only compared whether there is anything."""
PATIENCE_S = 30.0

Ask = Callable[[int, Any, int], Awaitable[Any]]


def placed(name: str) -> CreateTopicsRequest:
    assignments = tuple(
        CreateTopicsRequestCreatableReplicaAssignment(partition_index=i, broker_ids=brokers)
        for i, brokers in enumerate(PLACES[name])
    )
    topic = CreateTopicsRequestCreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=assignments,
        configs=(
            CreateTopicsRequestCreatableTopicConfig(
                name="min.insync.replicas", value=MIN_IN_SYNC.get(name, "1")
            ),
        ),
    )
    return CreateTopicsRequest(topics=(topic,), timeout_ms=10_000)


def metadata(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))


def produce(topic: str, partition: int, acks: int = -1) -> ProduceRequest:
    batch = encode_batch([NewRecord(b"x")], int(time.time() * 1000))
    data = ProduceRequestPartitionProduceData(index=partition, records=batch)
    named = ProduceRequestTopicProduceData(name=topic, partition_data=(data,))
    return ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=(named,))


def fetch(topic_id: bytes, partition: int, *, epoch: int = -1, last: int = -1) -> FetchRequest:
    wanted = FetchRequestFetchPartition(
        partition=partition,
        fetch_offset=0,
        current_leader_epoch=epoch,
        last_fetched_epoch=last,
        partition_max_bytes=1 << 20,
    )
    named = FetchRequestFetchTopic(topic_id=topic_id, partitions=(wanted,))
    return FetchRequest(session_epoch=-1, min_bytes=0, topics=(named,))


def offsets(topic: str, partition: int, *, epoch: int = -1) -> ListOffsetsRequest:
    wanted = ListOffsetsRequestListOffsetsPartition(
        partition_index=partition, current_leader_epoch=epoch, timestamp=-1
    )
    named = ListOffsetsRequestListOffsetsTopic(name=topic, partitions=(wanted,))
    return ListOffsetsRequest(topics=(named,))


def epoch_end(topic: str, partition: int, asked: int) -> OffsetForLeaderEpochRequest:
    wanted = OffsetForLeaderEpochRequestOffsetForLeaderPartition(
        partition=partition, current_leader_epoch=-1, leader_epoch=asked
    )
    named = OffsetForLeaderEpochRequestOffsetForLeaderTopic(topic=topic, partitions=(wanted,))
    return OffsetForLeaderEpochRequest(topics=(named,))


def commit(group: str) -> OffsetCommitRequest:
    named = OffsetCommitRequestTopic(
        name="all",
        partitions=(
            OffsetCommitRequestPartition(
                partition_index=0, committed_offset=1, committed_metadata=""
            ),
        ),
    )
    return OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=(named,))


def join(group: str, member: str = "m") -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=("all",),
        topic_partitions=(),
    )


def of_partitions(topic: str, topic_id: bytes) -> list[tuple[Any, int]]:
    """What is asked of every broker about every partition of a topic."""
    asked: list[tuple[Any, int]] = []
    for partition in range(3):
        asked += [
            (produce(topic, partition), 9),
            (produce(topic, partition), 12),
            (fetch(topic_id, partition), 15),
            (fetch(topic_id, partition), 16),
            (fetch(topic_id, partition, epoch=0), 16),
            (fetch(topic_id, partition, epoch=9), 16),
            (fetch(topic_id, partition, last=0), 16),
            (offsets(topic, partition), 9),
            (offsets(topic, partition, epoch=0), 9),
            (offsets(topic, partition, epoch=9), 9),
            (epoch_end(topic, partition, 0), 4),
            (epoch_end(topic, partition, 1), 4),
        ]
    return asked


def of_groups() -> list[tuple[Any, int]]:
    """What is asked of every broker about every group."""
    asked: list[tuple[Any, int]] = [
        (FindCoordinatorRequest(key_type=0, coordinator_keys=GROUPS), 4),
        (ConsumerGroupDescribeRequest(group_ids=("", *GROUPS)), 0),
        (DescribeGroupsRequest(groups=GROUPS), 6),
        (
            OffsetFetchRequest(
                groups=tuple(OffsetFetchRequestGroup(group_id=g, topics=None) for g in GROUPS)
            ),
            9,
        ),
    ]
    for group in GROUPS[:6]:
        asked += [
            (join(group), 1),
            (join(group, ""), 1),
            (commit(group), 8),
            (commit(group), 9),
            (OffsetFetchRequest(group_id=group, topics=None), 7),
            (JoinGroupRequest(group_id=group, session_timeout_ms=1), 4),
            (HeartbeatRequest(group_id=group, generation_id=1, member_id="x"), 4),
            (SyncGroupRequest(group_id=group, generation_id=1, member_id="x"), 4),
            (LeaveGroupRequest(group_id=group, member_id="x"), 2),
            (OffsetDeleteRequest(group_id=group), 0),
        ]
    return [*asked, (ListGroupsRequest(), 5), (DeleteGroupsRequest(groups_names=GROUPS[4:]), 2)]


def plain(value: Any) -> Any:
    """A response to compare: without what is chosen at random."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: bool(getattr(value, f.name))
            if f.name in MASKED
            else plain(getattr(value, f.name))
            for f in dataclasses.fields(value)
        }
    if isinstance(value, tuple):
        found = [plain(each) for each in value]
        if all(isinstance(each, dict) and "partition_index" in each for each in found):
            found.sort(key=lambda each: each["partition_index"])  # 4.0 has them in no order
        return found
    return value


async def until(ask: Ask, node_id: int, request: Any, version: int, done: Any) -> Any:
    """Ask until the answer is as it should be: real brokers tell each other things in time."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = await ask(node_id, request, version)
        if done(answer):
            return answer
        assert time.monotonic() < deadline, answer
        await anyio.sleep(0.05)


async def replicated(ask: Ask, topic_id: bytes) -> None:
    """Write to each partition of topic ``all``, and wait until every replica has it to give."""
    for partition in range(3):
        for node_id in (1, 2, 3):
            await ask(node_id, produce("all", partition), 12)
    for partition in range(3):
        for node_id in (1, 2, 3):
            wanted = fetch(topic_id, partition)
            await until(
                ask, node_id, wanted, 16, lambda f: bool(f.responses[0].partitions[0].records)
            )


async def prepared(ask: Ask) -> dict[str, bytes]:
    """Make the topics; return their ids when every broker and coordinator knows them."""
    for name in PLACES:
        answer = await ask(1, placed(name), 7)
        assert answer.topics[0].error_code == 0, answer
    ids: dict[str, bytes] = {}
    for node_id in (1, 2, 3):
        answer = await until(
            ask, node_id, metadata(*PLACES), 12, lambda m: all(t.partitions for t in m.topics)
        )
        ids = {topic.name: topic.topic_id for topic in answer.topics}
    for group in GROUPS:  # each coordinator has loaded, and knows the topics
        found = await ask(1, FindCoordinatorRequest(key_type=0, coordinator_keys=(group,)), 4)
        node_id = found.coordinators[0].node_id
        describe = ConsumerGroupDescribeRequest(group_ids=(group,))
        await until(
            ask,
            node_id,
            describe,
            0,
            lambda d: d.groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND,
        )
        leave = dataclasses.replace(join(group), member_epoch=-1)

        async def joined(node_id: int = node_id, group: str = group, leave: Any = leave) -> bool:
            answer = await ask(node_id, join(group), 1)
            await ask(node_id, leave, 1)
            return bool(answer.assignment and answer.assignment.topic_partitions)

        while not await joined():  # noqa: ASYNC110 - nothing tells when a real broker knows
            await anyio.sleep(0.05)
        await ask(node_id, DeleteGroupsRequest(groups_names=(group,)), 2)
    return ids


async def play(ask: Ask, stop: Callable[[int], Awaitable[None]]) -> list[tuple[str, Any]]:
    """The whole conversation: what was asked, and the answer."""
    said: list[tuple[str, Any]] = []

    async def every(asked: list[tuple[Any, int]], nodes: tuple[int, ...]) -> None:
        for node_id in nodes:
            for request, version in asked:
                answer = await ask(node_id, request, version)
                said.append((f"{node_id} v{version} {request}", plain(answer)))

    ids = await prepared(ask)
    await every([(metadata(*PLACES), 12), (DescribeClusterRequest(), 1)], (1, 2, 3))
    await every(of_partitions("one", ids["one"]), (1, 2, 3))
    await replicated(ask, ids["all"])
    await every(of_partitions("all", ids["all"]), (1, 2, 3))
    await every(of_groups(), (1, 2, 3))
    strict = [
        (produce(topic, partition, acks), 12)
        for topic in MIN_IN_SYNC
        for partition in range(3)
        for acks in (-1, 1)
    ]
    await every(strict, (1, 2, 3))
    await stop(3)
    for node_id in (1, 2):
        old = fetch(ids["all"], 2, epoch=0)  # led by the one that stops
        await until(
            ask,
            node_id,
            old,
            16,
            lambda f: f.responses[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH,
        )
    for group in GROUPS:
        found = await ask(1, FindCoordinatorRequest(key_type=0, coordinator_keys=(group,)), 4)
        described = DescribeGroupsRequest(groups=(group,))
        await until(
            ask,
            found.coordinators[0].node_id,
            described,
            5,
            lambda d: (
                d.groups[0].error_code
                not in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
            ),
        )
    described_all = DescribeClusterRequest(include_fenced_brokers=True)
    await every([(metadata(*PLACES), 12), (described_all, 2)], (1, 2))
    await every(of_partitions("one", ids["one"]), (1, 2))
    await every(of_partitions("all", ids["all"]), (1, 2))
    await every(of_groups(), (1, 2))
    await every(strict, (1, 2))
    return said


@pytest.mark.real_kafka
@pytest.mark.asyncio
@pytest.mark.timeout(180)
async def test_three_brokers_answer_as_three_real_ones(kafka_version: str) -> None:
    with RealCluster.start(kafka_version, CONFIGS) as kafka:

        async def ask_kafka(node_id: int, request: Any, version: int) -> Any:
            return kafka.ask(node_id, request, version)

        async def stop_kafka(node_id: int) -> None:
            kafka.stop(node_id)

        real = await play(ask_kafka, stop_kafka)
    ours = MockCluster(
        brokers=3,
        racks=("r1", "r2", "r3"),
        profile=kafka_version.rpartition(".")[0],
        config=CONFIGS,
        listen=False,
    )
    for node in ours.nodes:
        node.port = node.node_id  # what is masked is only whether there is one

    async def ask_ours(node_id: int, request: Any, version: int) -> Any:
        connection = ours.connect(node_id=node_id, client_id="kip848-tests")
        try:
            return connection.ask(request, version)
        finally:
            connection.close()

    mock = await play(ask_ours, ours.stop_broker)
    assert len(real) == len(mock) > 400
    for (asked, theirs), (_, answer) in zip(real, mock, strict=True):
        assert answer == theirs, asked
