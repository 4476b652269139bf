"""Requests at the wrong broker, leader epochs, brokers that go and come: as three brokers of Kafka
4.4.0 were seen to answer."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kip848_client.core.wire.messages.cluster import DescribeClusterRequest
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
)
from kip848_client.core.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
)
from kip848_client.core.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsAssignment,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableReplicaAssignment,
    CreateTopicsRequestCreatableTopic,
)
from kip848_client.core.wire.messages.transaction_admin import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import ConfigError, TransportError
from mock_coordinator import MockCluster
from tests.unit.mock_coordinator.nodes.cluster_harness import ClusterHarness

NOT_LEADER, FENCED, UNKNOWN_EPOCH = 6, 74, 75


def described(harness: ClusterHarness, name: str) -> MetadataResponseTopic:
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),))
    topic: MetadataResponseTopic = harness.at(None, request).topics[0]
    return topic


# -- who is there ------------------------------------------------------------------------------


def test_metadata_lists_all_brokers_with_their_racks() -> None:
    harness = ClusterHarness(racks=("a", "b"))
    for node_id in (1, 2, 3):
        response = harness.at(node_id, MetadataRequest(topics=()))
        assert [(b.node_id, b.rack) for b in response.brokers] == [(1, "a"), (2, "b"), (3, "a")]
        assert response.controller_id == 1


def test_ids_count_from_node_id() -> None:
    harness = ClusterHarness(2, config={"node.id": "7", "broker.rack": "r"})
    response = harness.at(8, MetadataRequest(topics=()))
    assert [(b.node_id, b.rack) for b in response.brokers] == [(7, "r"), (8, "r")]


def test_leaders_are_spread_and_replicas_in_sync() -> None:
    harness = ClusterHarness()
    one = described(harness, "one")
    assert [p.leader_id for p in one.partitions] == [1, 2, 3, 1, 2, 3]
    everywhere = described(harness, "all")
    assert [p.leader_id for p in everywhere.partitions] == [2, 3, 1, 2, 3, 1]
    for partition in everywhere.partitions:
        assert sorted(partition.replica_nodes) == [1, 2, 3]
        assert partition.isr_nodes == partition.replica_nodes
        assert partition.leader_id == partition.replica_nodes[0]
        assert (partition.offline_replicas, partition.leader_epoch) == ((), 0)


@pytest.mark.asyncio
async def test_describe_cluster_shows_a_broker_that_is_down_only_when_asked() -> None:
    harness = ClusterHarness(racks=("a", "b", "c"))
    await harness.cluster.stop_broker(3)
    shown = harness.at(1, DescribeClusterRequest(), 2)
    assert [b.broker_id for b in shown.brokers] == [1, 2]
    shown = harness.at(2, DescribeClusterRequest(include_fenced_brokers=True), 2)
    assert [(b.broker_id, b.rack, b.is_fenced) for b in shown.brokers] == [
        (1, "a", False),
        (2, "b", False),
        (3, "c", True),
    ]


# -- at the wrong broker -----------------------------------------------------------------------


@pytest.mark.parametrize("version", [9, 10, 12, 13])
def test_produce_elsewhere_is_told_who_leads(version: int) -> None:
    harness = ClusterHarness()
    leader = harness.leader("one")
    response = harness.produce(harness.other(leader), "one", version=version)
    answer = response.responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (NOT_LEADER, -1, -1)
    assert answer.error_message is None
    told = (answer.current_leader.leader_id, answer.current_leader.leader_epoch)
    assert told == ((leader, 0) if version >= 10 else (-1, -1))
    assert [n.node_id for n in response.node_endpoints] == ([leader] if version >= 10 else [])
    assert (
        harness.produce(leader, "one", version=version)
        .responses[0]
        .partition_responses[0]
        .error_code
        == 0
    )


@pytest.mark.parametrize("version", [4, 11, 15, 16, 17])
def test_fetch_from_a_broker_without_a_replica(version: int) -> None:
    harness = ClusterHarness()
    leader = harness.leader("one")
    response = harness.fetch(harness.other(leader), "one", version=version, epoch=5)
    answer = response.responses[0].partitions[0]
    assert (answer.error_code, answer.high_watermark, answer.records) == (NOT_LEADER, -1, b"")
    told = (answer.current_leader.leader_id, answer.current_leader.leader_epoch)
    assert told == ((leader, 0) if version >= 16 else (-1, -1))
    assert [n.node_id for n in response.node_endpoints] == ([leader] if version >= 16 else [])


@pytest.mark.parametrize(("version", "code"), [(4, NOT_LEADER), (10, NOT_LEADER), (11, 0), (17, 0)])
def test_any_replica_may_be_read_since_fetch_11(version: int, code: int) -> None:
    harness = ClusterHarness()
    leader = harness.leader("all")
    harness.produce(leader, "all")
    response = harness.fetch(harness.other(leader), "all", version=version)
    answer = response.responses[0].partitions[0]
    assert answer.error_code == code
    assert bool(answer.records) is (code == 0)


def list_latest(harness: ClusterHarness, node_id: int, topic: str, *, epoch: int = -1) -> int:
    wanted = ListOffsetsRequestListOffsetsPartition(
        partition_index=0, current_leader_epoch=epoch, timestamp=-1
    )
    named = ListOffsetsRequestListOffsetsTopic(name=topic, partitions=(wanted,))
    response = harness.at(node_id, ListOffsetsRequest(topics=(named,)), 10)
    code: int = response.topics[0].partitions[0].error_code
    return code


def test_offsets_are_the_leaders_to_list() -> None:
    harness = ClusterHarness()
    leader = harness.leader("all")
    follower = harness.other(leader)
    assert list_latest(harness, leader, "all") == 0
    assert list_latest(harness, follower, "all") == NOT_LEADER
    assert list_latest(harness, follower, "all", epoch=0) == NOT_LEADER
    assert list_latest(harness, follower, "all", epoch=4) == UNKNOWN_EPOCH
    assert list_latest(harness, leader, "all", epoch=4) == UNKNOWN_EPOCH
    nobody = harness.other(harness.leader("one"))
    assert list_latest(harness, nobody, "one", epoch=4) == NOT_LEADER, "it does not know the epoch"


def test_epochs_are_the_leaders_to_tell() -> None:
    harness = ClusterHarness()
    leader = harness.leader("all")
    harness.produce(leader, "all")
    assert harness.epoch_end(harness.other(leader), "all", 0).error_code == NOT_LEADER
    assert harness.epoch_end(harness.other(leader), "all", 0, epoch=9).error_code == UNKNOWN_EPOCH
    found = harness.epoch_end(leader, "all", 0)
    assert (found.error_code, found.leader_epoch, found.end_offset) == (0, 0, 1)


def test_producers_are_known_to_every_replica_and_to_nobody_else() -> None:
    harness = ClusterHarness()
    for topic, code in (("one", NOT_LEADER), ("all", 0)):
        named = DescribeProducersRequestTopicRequest(name=topic, partition_indexes=(0,))
        request = DescribeProducersRequest(topics=(named,))
        response = harness.at(harness.other(harness.leader(topic)), request)
        assert response.topics[0].partitions[0].error_code == code


def test_a_failed_produce_without_acknowledgement_closes_the_connection() -> None:
    harness = ClusterHarness()
    connection = harness.cluster.connect(node_id=harness.other(harness.leader("one")))
    with pytest.raises(TransportError, match="closed"):
        connection.ask(harness.produce_request("one", acks=0), 12)


# -- leaders that move -------------------------------------------------------------------------


def test_a_new_leader_has_the_next_epoch_and_knows_the_old_ones() -> None:
    harness = ClusterHarness()
    old = harness.leader("all")
    harness.produce(old, "all")
    harness.produce(old, "all")
    harness.cluster.move_leader("all", 0, harness.other(old))
    new = harness.leader("all")
    assert new != old
    harness.produce(new, "all")
    assert described(harness, "all").partitions[0].leader_epoch == 1
    for asked, found in {0: (0, 2), 1: (1, 3), 2: (-1, -1), -1: (-1, -1)}.items():
        answer = harness.epoch_end(new, "all", asked)
        assert (answer.leader_epoch, answer.end_offset) == found
    assert harness.epoch_end(new, "all", 0, epoch=0).error_code == FENCED
    response = harness.fetch(new, "all", epoch=0)
    answer = response.responses[0].partitions[0]
    assert (answer.error_code, answer.current_leader.leader_id) == (FENCED, new)
    assert [n.node_id for n in response.node_endpoints] == [new]
    assert harness.fetch(new, "all", epoch=0, version=15).responses[0].partitions[0].error_code == (
        FENCED
    )
    assert harness.fetch(new, "all", epoch=1).responses[0].partitions[0].records
    assert list_latest(harness, new, "all", epoch=0) == FENCED


def test_an_epoch_in_which_nothing_was_written_is_told_as_the_one_before() -> None:
    harness = ClusterHarness()
    harness.produce(None, "all")
    for node_id in (1, 3, 1):
        harness.cluster.move_leader("all", 0, node_id)
    harness.produce(None, "all")
    answer = harness.epoch_end(harness.leader("all"), "all", 2)
    assert (answer.leader_epoch, answer.end_offset) == (0, 1)


def test_a_reader_that_is_ahead_in_an_old_epoch_is_told_where_it_diverges() -> None:
    harness = ClusterHarness()
    harness.cluster.move_leader("all", 0, harness.other(harness.leader("all")))
    harness.produce(None, "all")
    response = harness.fetch(harness.leader("all"), "all", offset=1, last_fetched=0)
    answer = response.responses[0].partitions[0]
    assert (answer.error_code, answer.records) == (0, b"")
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 0)


def test_a_broker_without_a_replica_takes_over_the_leaders() -> None:
    harness = ClusterHarness()
    old = harness.leader("one")
    harness.produce(old, "one")
    new = harness.other(old)
    harness.cluster.move_leader("one", 0, new)
    partition = described(harness, "one").partitions[0]
    assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (
        new,
        (new,),
        (new,),
    )
    assert harness.fetch(new, "one").responses[0].partitions[0].records
    harness.cluster.move_leader("one", 0, new)
    assert described(harness, "one").partitions[0].leader_epoch == 1, (
        "nothing moved the second time"
    )


@pytest.mark.asyncio
async def test_a_fetch_that_waits_is_told_that_the_leader_moved() -> None:
    harness = ClusterHarness()
    leader = harness.leader("one")
    connection = harness.cluster.connect(node_id=leader)
    answers: list[Any] = []

    async def fetch() -> None:
        answers.append(
            await connection.request(harness.fetch_request("one", max_wait_ms=60_000), 17)
        )

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fetch)
        await anyio.wait_all_tasks_blocked()
        assert harness.cluster.core.parked_requests == 1
        harness.cluster.move_leader("one", 0, harness.other(leader))
    assert answers[0].responses[0].partitions[0].error_code == NOT_LEADER
    assert harness.cluster.core.parked_requests == 0


def test_moves_that_cannot_be_made() -> None:
    harness = ClusterHarness()
    with pytest.raises(KeyError):
        harness.cluster.move_leader("none", 0, 1)
    with pytest.raises(IndexError):
        harness.cluster.move_leader("one", 6, 1)
    with pytest.raises(ConfigError, match="unknown broker 9, expected one of 1, 2, 3"):
        harness.cluster.move_leader("one", 0, 9)


# -- brokers that go and come ------------------------------------------------------------------


@pytest.mark.asyncio
async def test_what_a_stopped_broker_led_is_led_by_the_next_replica() -> None:
    harness = ClusterHarness()
    before = {p.partition_index: p for p in described(harness, "all").partitions}
    await harness.cluster.stop_broker(2)
    for partition in described(harness, "all").partitions:
        was = before[partition.partition_index]
        live = tuple(r for r in was.replica_nodes if r != 2)
        moved = was.leader_id == 2
        assert partition.leader_id == live[0]
        assert partition.leader_epoch == int(moved), "a smaller ISR alone is no new epoch"
        assert (partition.isr_nodes, partition.offline_replicas) == (live, (2,))
        assert partition.replica_nodes == was.replica_nodes


@pytest.mark.parametrize(("profile", "isr"), [("4.0", (2,)), ("4.1", ()), ("4.4", ())])
@pytest.mark.asyncio
async def test_a_partition_whose_only_broker_is_down_waits_for_it(
    profile: str, isr: tuple[int, ...]
) -> None:
    harness = ClusterHarness(profile=profile)
    assert harness.leader("one", 1) == 2
    await harness.cluster.stop_broker(2)
    partition = described(harness, "one").partitions[1]
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (5, -1, 1)
    assert (partition.isr_nodes, partition.offline_replicas) == (isr, (2,))
    for node_id in (1, 3, None):
        response = harness.produce(node_id, "one", 1, 12)
        answer = response.responses[0].partition_responses[0]
        assert (answer.error_code, answer.current_leader.leader_id) == (NOT_LEADER, -1)
        assert answer.current_leader.leader_epoch == 1
        assert response.node_endpoints == ()
    await harness.cluster.start_broker(2)
    partition = described(harness, "one").partitions[1]
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 2, 2)
    assert partition.isr_nodes == (2,)


@pytest.mark.asyncio
async def test_a_broker_that_comes_back_follows() -> None:
    harness = ClusterHarness()
    await harness.cluster.stop_broker(2)
    leaders = [p.leader_id for p in described(harness, "all").partitions]
    await harness.cluster.start_broker(2)
    for partition, leader in zip(described(harness, "all").partitions, leaders, strict=True):
        assert (partition.leader_id, partition.isr_nodes) == (leader, (1, 2, 3))
        assert partition.offline_replicas == ()


@pytest.mark.asyncio
async def test_a_death_is_noticed_after_a_while() -> None:
    harness = ClusterHarness()
    leader = harness.leader("all")
    await harness.cluster.crash_broker(leader, noticed_after_ms=9_000)
    with pytest.raises(ConfigError, match="is down"):
        harness.cluster.connect(node_id=leader)
    harness.cluster.advance(8_999)
    assert described(harness, "all").partitions[0].leader_id == leader
    assert len(harness.at(None, MetadataRequest(topics=())).brokers) == 3
    harness.cluster.advance(1)
    assert described(harness, "all").partitions[0].leader_id != leader
    assert len(harness.at(None, MetadataRequest(topics=())).brokers) == 2


@pytest.mark.asyncio
async def test_a_broker_that_is_back_before_its_death_was_noticed_has_lost_its_leaderships() -> (
    None
):
    harness = ClusterHarness()
    leader = harness.leader("all")
    await harness.cluster.crash_broker(leader, noticed_after_ms=9_000)
    await harness.cluster.start_broker(leader)
    partition = described(harness, "all").partitions[0]
    assert partition.leader_id != leader
    assert (partition.leader_epoch, sorted(partition.isr_nodes)) == (1, [1, 2, 3])
    harness.cluster.advance(20_000)
    assert len(harness.at(None, MetadataRequest(topics=())).brokers) == 3


@pytest.mark.asyncio
async def test_with_all_brokers_down_the_last_one_is_waited_for() -> None:
    harness = ClusterHarness(2)
    for node_id in (1, 2):
        await harness.cluster.stop_broker(node_id)
    await harness.cluster.start_broker(1)
    partitions = {p.partition_index: p.leader_id for p in described(harness, "all").partitions}
    assert set(partitions.values()) == {-1}, "broker 1 may lack what broker 2 got after it"
    await harness.cluster.start_broker(2)
    assert {p.leader_id for p in described(harness, "all").partitions} == {2}
    assert described(harness, "all").partitions[0].isr_nodes == (1, 2)


@pytest.mark.asyncio
async def test_a_restart_of_everything_keeps_who_is_down_and_who_leads() -> None:
    harness = ClusterHarness()
    await harness.cluster.stop_broker(2)
    await harness.cluster.crash_broker(3)
    before = described(harness, "all")
    harness.cluster.restart()
    harness.cluster.advance(0)
    after = described(harness, "all")
    assert [p.leader_epoch for p in after.partitions] >= [p.leader_epoch for p in before.partitions]
    assert {p.leader_id for p in after.partitions} == {1}


# -- topics over several brokers ---------------------------------------------------------------


def create(harness: ClusterHarness, **topic: Any) -> tuple[int, str | None]:
    asked = CreateTopicsRequestCreatableTopic(name="new", **topic)
    result = harness.at(2, CreateTopicsRequest(topics=(asked,), timeout_ms=1000), 7).topics[0]
    return result.error_code, result.error_message


def assignment(partition: int, *brokers: int) -> CreateTopicsRequestCreatableReplicaAssignment:
    return CreateTopicsRequestCreatableReplicaAssignment(
        partition_index=partition, broker_ids=brokers
    )


def test_more_replicas_than_brokers() -> None:
    assert create(ClusterHarness(), num_partitions=1, replication_factor=4) == (
        38,
        (
            "Unable to replicate the partition 4 time(s): The target replication factor of 4 "
            "cannot be reached because only 3 broker(s) are registered or some brokers have all "
            "their log directories cordoned."
        ),
    )


def test_replicas_by_hand() -> None:
    harness = ClusterHarness()
    given = (assignment(1, 2, 3), assignment(0, 3, 1))
    assert create(harness, num_partitions=-1, replication_factor=-1, assignments=given) == (0, None)
    partitions = described(harness, "new").partitions
    assert [(p.leader_id, p.replica_nodes) for p in partitions] == [(3, (3, 1)), (2, (2, 3))]
    more = CreatePartitionsRequestCreatePartitionsAssignment(broker_ids=(1, 2))
    grown = CreatePartitionsRequestCreatePartitionsTopic(name="new", count=3, assignments=(more,))
    harness.at(1, CreatePartitionsRequest(topics=(grown,), timeout_ms=1000))
    grown = CreatePartitionsRequestCreatePartitionsTopic(name="new", count=4, assignments=None)
    harness.at(1, CreatePartitionsRequest(topics=(grown,), timeout_ms=1000))
    assert [len(p.replica_nodes) for p in described(harness, "new").partitions] == [2] * 4
    assert described(harness, "new").partitions[2].replica_nodes == (1, 2)


@pytest.mark.parametrize(
    ("brokers", "words"),
    [
        (
            ((3, 1), (2,)),
            (
                "The manual partition assignment includes a partition with 1 replica(s), but this "
                "is not consistent with previous partitions, which have 2 replica(s)."
            ),
        ),
        (
            ((3, 9),),
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (
            ((3, 3),),
            "The manual partition assignment includes the broker 3 more than once.",
        ),
    ],
)
def test_replicas_by_hand_that_make_no_sense(
    brokers: tuple[tuple[int, ...], ...], words: str
) -> None:
    given = tuple(assignment(index, *replicas) for index, replicas in enumerate(brokers))
    harness = ClusterHarness()
    answer = create(harness, num_partitions=-1, replication_factor=-1, assignments=given)
    assert answer == (39, words)


def test_a_cluster_has_at_least_one_broker() -> None:
    with pytest.raises(ConfigError, match="brokers = 0: expected a number"):
        MockCluster(brokers=0, listen=False)
    assert MockCluster({"t": 1}, brokers=1, listen=False).leader_of("t") == 1


# -- replicas near the client, sessions of a broker that goes ----------------------------------


def test_the_leader_sends_a_consumer_to_the_replica_in_its_rack() -> None:
    """KIP-392, at the end of the log as well; followers send nobody away."""
    config = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    harness = ClusterHarness(racks=("a", "b", "c"), config=config)
    leader = harness.leader("all")
    near = harness.other(leader)
    rack = next(node.rack for node in harness.cluster.nodes if node.node_id == near)
    harness.produce(leader, "all")

    def asked(node_id: int, rack_id: str, offset: int) -> tuple[int, bytes]:
        request = harness.fetch_request("all", offset=offset)
        request.rack_id = rack_id
        partition = harness.at(node_id, request, 17).responses[0].partitions[0]
        return partition.preferred_read_replica, partition.records

    assert [asked(leader, rack or "", offset) for offset in (0, 1)] == [(near, b"")] * 2
    assert asked(leader, "nowhere", 0)[0] == asked(leader, "", 0)[0] == -1
    preferred, records = asked(near, rack or "", 0)
    assert preferred == -1
    assert records


@pytest.mark.asyncio
async def test_a_broker_that_stops_forgets_its_fetch_sessions() -> None:
    harness = ClusterHarness()
    request = harness.fetch_request("all")
    request.session_epoch = 0
    node = harness.leader("all")
    opened = harness.at(node, request, 17)
    assert opened.session_id > 0
    await harness.cluster.stop_broker(node)
    await harness.cluster.start_broker(node)
    request.session_id, request.session_epoch = opened.session_id, 1
    assert harness.at(node, request, 17).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
