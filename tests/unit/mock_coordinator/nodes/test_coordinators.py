"""Group coordinators spread over brokers: who answers, what the others say, moves and loads: as
three brokers of Kafka 4.4.0 were seen to answer."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.classic_group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
)
from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.core.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.core.wire.messages.offset_delete import OffsetDeleteRequest
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from kip848_client.core.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)
from kip848_client.core.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.service.splitting import coordinator_order, partition_for
from tests.unit.mock_coordinator.nodes.cluster_harness import ClusterHarness, join

LOADING, NOT_COORDINATOR = 14, 16
GROUPS = tuple(f"g{i}" for i in range(12))
SIX = {"offsets.topic.num.partitions": "6", "transaction.state.log.num.partitions": "6"}


def cluster(**config: str) -> ClusterHarness:
    return ClusterHarness(config={**SIX, **{k.replace("_", "."): v for k, v in config.items()}})


def commit(harness: ClusterHarness, group: str, *topics: str) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=tuple(
            OffsetCommitRequestTopic(
                topic_id=harness.ids.get(topic, b"\1" * 16),
                partitions=(OffsetCommitRequestPartition(partition_index=0, committed_offset=1),),
            )
            for topic in topics
        ),
    )


def classic_join(group: str = "k1", **more: Any) -> JoinGroupRequest:
    fields: dict[str, Any] = {
        "group_id": group,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": (JoinGroupRequestProtocol(name="range", metadata=b""),),
    }
    return JoinGroupRequest(**{**fields, **more})


# -- who it is ---------------------------------------------------------------------------------


def test_the_partition_of_a_group_is_javas_hash_of_its_name() -> None:
    expected = {"g0": 1, "g1": 2, "g2": 3, "g3": 4, "g4": 5, "g5": 0, "g10": 2, "g11": 3}
    assert {group: partition_for(group, 6) for group in expected} == expected
    lowest = "polygenelubricants"  # the text whose hash is -2147483648, of which there is no abs()
    assert partition_for(lowest, 50) == 0


def test_the_coordinator_leads_the_groups_partition() -> None:
    harness = cluster()
    found = harness.find(*GROUPS)
    assert [c.key for c in found] == list(GROUPS)
    for coordinator in found:
        partition = partition_for(coordinator.key, 6)
        assert coordinator.node_id == harness.cluster.leader_of("__consumer_offsets", partition)
        assert (coordinator.error_code, coordinator.error_message) == (0, "")
    assert {c.node_id for c in found} == {1, 2, 3}
    one = harness.at(3, FindCoordinatorRequest(key="g1", key_type=0), 3)
    assert (one.error_code, one.error_message, one.node_id) == (0, "NONE", found[1].node_id)


def test_transactions_have_coordinators_of_their_own() -> None:
    harness = cluster()
    found = harness.find("t1", "t2", "t3", key_type=1)
    assert [c.node_id for c in found] == [
        harness.cluster.leader_of("__transaction_state", partition_for(c.key, 6)) for c in found
    ]
    assert harness.cluster.core.broker.catalog.topic("__consumer_offsets") is None


def test_before_the_first_lookup_nobody_coordinates_anything() -> None:
    harness = cluster()
    assert all(harness.at(n, join(), 1).error_code == NOT_COORDINATOR for n in (1, 2, 3))


# -- at the wrong broker -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "version", "code"),
    [
        (join("g1"), 1, NOT_COORDINATOR),
        (join("g1", epoch=5), 1, NOT_COORDINATOR),
        (join("g1", ""), 1, 42),
        (join("", "m"), 1, 42),
        (classic_join("g1"), 9, NOT_COORDINATOR),
        (classic_join("g1"), 4, NOT_COORDINATOR),
        (classic_join("g1", session_timeout_ms=1), 9, 26),
        (HeartbeatRequest(group_id="g1", generation_id=1, member_id="x"), 4, NOT_COORDINATOR),
        (
            SyncGroupRequest(
                group_id="g1",
                generation_id=1,
                member_id="x",
                protocol_type="consumer",
                protocol_name="range",
            ),
            5,
            NOT_COORDINATOR,
        ),
        (LeaveGroupRequest(group_id="g1", member_id="x"), 2, NOT_COORDINATOR),
        (
            LeaveGroupRequest(
                group_id="g1", members=(LeaveGroupRequestMemberIdentity(member_id="x"),)
            ),
            5,
            NOT_COORDINATOR,
        ),
        (OffsetDeleteRequest(group_id="g1"), 0, NOT_COORDINATOR),
        (OffsetFetchRequest(group_id="g1", topics=None), 7, NOT_COORDINATOR),
    ],
)
def test_requests_for_one_group_at_another_broker(
    request_: Message, version: int, code: int
) -> None:
    harness = cluster()
    response = harness.at(harness.other(harness.coordinator("g1")), request_, version)
    assert response.error_code == code
    if isinstance(request_, JoinGroupRequest):
        assert response.protocol_name == (None if version >= 7 else "")


@pytest.mark.parametrize(("profile", "code"), [("4.0", NOT_COORDINATOR), ("4.1", 42)])
def test_a_nonsensical_heartbeat_at_another_broker(profile: str, code: int) -> None:
    harness = ClusterHarness(profile=profile, config=SIX)
    wrong = harness.other(harness.coordinator("g1"))
    assert harness.at(wrong, join("g1", ""), 1).error_code == code
    assert (
        harness.at(harness.coordinator("g1"), join("g1", ""), 1).error_code
        == ErrorCode.INVALID_REQUEST
    )


def test_an_empty_group_id_is_refused_wherever_it_comes() -> None:
    harness = cluster()
    wrong = harness.other(harness.coordinator(""))
    for request in (
        classic_join(""),
        HeartbeatRequest(group_id="", generation_id=1, member_id="x"),
        LeaveGroupRequest(group_id=""),
        OffsetDeleteRequest(group_id=""),
    ):
        version = None if isinstance(request, OffsetDeleteRequest) else 4
        assert harness.at(wrong, request, version).error_code == ErrorCode.INVALID_GROUP_ID


def test_commits_at_another_broker() -> None:
    harness = cluster()
    wrong = harness.other(harness.coordinator("g1"))
    response = harness.at(wrong, commit(harness, "g1", "all", "nope"), 10)
    codes = {topic.topic_id: topic.partitions[0].error_code for topic in response.topics}
    assert codes == {harness.ids["all"]: NOT_COORDINATOR, b"\1" * 16: 100}, (
        "what is not, is not there"
    )
    named = TxnOffsetCommitRequestTopic(
        name="all",
        partitions=(
            TxnOffsetCommitRequestPartition(
                partition_index=0, committed_offset=1, committed_metadata=""
            ),
        ),
    )
    pending = TxnOffsetCommitRequest(
        transactional_id="t1", group_id="g1", producer_id=1, producer_epoch=0, topics=(named,)
    )
    response = harness.at(wrong, pending, 5)
    assert response.topics[0].partitions[0].error_code == NOT_COORDINATOR


def test_offsets_of_old_versions_at_another_broker() -> None:
    harness = cluster()
    wrong = harness.other(harness.coordinator("g1"))
    topic = OffsetFetchRequestTopic(name="all", partition_indexes=(0, 3))
    response = harness.at(wrong, OffsetFetchRequest(group_id="g1", topics=(topic,)), 1)
    partitions = response.topics[0].partitions
    assert [(p.partition_index, p.committed_offset, p.error_code) for p in partitions] == [
        (0, -1, NOT_COORDINATOR),
        (3, -1, NOT_COORDINATOR),
    ]


def test_transactions_at_another_broker() -> None:
    harness = cluster()
    coordinator = harness.find("t1", key_type=1)[0].node_id
    wrong = harness.other(coordinator)
    init = InitProducerIdRequest(transactional_id="t1", transaction_timeout_ms=10_000)
    assert harness.at(wrong, init, 5).error_code == NOT_COORDINATOR
    assert harness.at(coordinator, init, 5).error_code == 0
    more: dict[str, Any] = {"transactional_id": "t1", "producer_id": 1, "producer_epoch": 0}
    assert harness.at(wrong, AddOffsetsToTxnRequest(**more, group_id="g"), 4).error_code == (
        NOT_COORDINATOR
    )
    assert harness.at(wrong, EndTxnRequest(**more, committed=True), 5).error_code == NOT_COORDINATOR
    late = InitProducerIdRequest(transactional_id="t1", transaction_timeout_ms=10**9)
    assert harness.at(wrong, late, 5).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


# -- several groups in one request -------------------------------------------------------------


def test_partitions_come_as_a_java_map_gives_them() -> None:
    assert coordinator_order(range(6)) == [0, 5, 3, 4, 1, 2]


def test_descriptions_of_many_groups_are_in_kafkas_order() -> None:
    harness = cluster()
    node = harness.coordinator("g3")
    response = harness.at(node, ConsumerGroupDescribeRequest(group_ids=("", *GROUPS)), 1)
    order = ["g5", "g4", "g2", "g8", "g11", "g3", "g9", "g0", "g6", "g1", "g7", "g10"]
    assert [group.group_id for group in response.groups] == ["", *order]
    assert response.groups[0].error_code == ErrorCode.INVALID_GROUP_ID
    for group in response.groups[1:]:
        here = harness.coordinator(group.group_id) == node
        assert group.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if here else NOT_COORDINATOR)
        assert group.error_message == (f"Group {group.group_id} not found." if here else None)
    classic = harness.at(node, DescribeGroupsRequest(groups=("", *GROUPS)), 6)
    assert [group.group_id for group in classic.groups] == ["", *order], "no id is one, too"
    elsewhere = next(g for g in classic.groups if g.error_code == NOT_COORDINATOR)
    assert (elsewhere.group_state, elsewhere.error_message) == ("", None)


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("4.0", ["g5", "g4", "g2", "g8", "g11", "g3", "g9", "g6", "g7", "g10"]),
        ("4.4", ["g5", "g4", "g8", "g11", "g2", "g9", "g3", "g6", "g7", "g10"]),
    ],
)
def test_deletions_of_many_groups_are_in_the_order_of_a_set(
    profile: str, expected: list[str]
) -> None:
    harness = ClusterHarness(profile=profile, config=SIX)
    node = harness.coordinator("g3")
    response = harness.at(node, DeleteGroupsRequest(groups_names=GROUPS[2:]))
    assert [result.group_id for result in response.results] == expected
    for result in response.results:
        here = harness.coordinator(result.group_id) == node
        assert (result.error_code, result.error_message) == (69 if here else NOT_COORDINATOR, None)


def test_offsets_of_many_groups_keep_the_order_of_the_request() -> None:
    harness = cluster()
    node = harness.coordinator("g3")
    harness.at(node, commit(harness, "g3", "all"), 10)
    wanted = tuple(OffsetFetchRequestGroup(group_id=g, topics=None) for g in GROUPS)
    response = harness.at(node, OffsetFetchRequest(groups=wanted), 9)
    assert [group.group_id for group in response.groups] == list(GROUPS)
    for group in response.groups:
        here = harness.coordinator(group.group_id) == node
        assert group.error_code == (0 if here else NOT_COORDINATOR)
    assert response.groups[3].topics[0].partitions[0].committed_offset == 1
    assert harness.at(node, OffsetFetchRequest(groups=()), 9).groups == ()


def test_each_broker_lists_its_own_groups() -> None:
    harness = cluster()
    for group in GROUPS:
        harness.at(harness.coordinator(group), join(group), 1)
    for node_id in (1, 2, 3):
        listed = {g.group_id for g in harness.at(node_id, ListGroupsRequest(), 5).groups}
        assert listed == {group for group in GROUPS if harness.coordinator(group) == node_id}
    assert len(harness.at(None, ListGroupsRequest(), 5).groups) == len(GROUPS)
    assert sorted(harness.cluster.core.groups.group_ids) == sorted(GROUPS)


# -- coordinators that move --------------------------------------------------------------------


def test_a_group_goes_on_at_its_new_coordinator() -> None:
    harness = cluster()
    old = harness.coordinator()
    first = harness.at(old, join(), 1)
    before = harness.cluster.snapshot("g")
    new = harness.other(old)
    harness.cluster.move_coordinator("g", new)
    after = harness.cluster.snapshot("g")
    assert before is not None
    assert after is not None
    assert after.without_timers() == before.without_timers()
    assert harness.find("g")[0].node_id == new
    again = join(epoch=first.member_epoch)
    assert harness.at(old, again, 1).error_code == NOT_COORDINATOR
    assert harness.at(new, again, 1).member_epoch == first.member_epoch
    assert harness.at(old, ListGroupsRequest(), 5).groups == ()


def test_sessions_begin_anew_where_a_coordinator_has_loaded() -> None:
    harness = cluster()
    harness.at(harness.coordinator(), join(), 1)
    harness.cluster.advance(44_000)
    harness.cluster.move_coordinator("g", harness.other(harness.coordinator()))
    harness.cluster.advance(44_000)
    assert len(harness.members("g")) == 1
    harness.cluster.advance(1_000)
    assert harness.members("g") == []


def test_a_coordinator_answers_nothing_while_it_loads() -> None:
    harness = cluster()
    harness.at(harness.coordinator(), commit(harness, "g", "all"), 10)
    harness.at(harness.coordinator(), join(), 1)
    harness.cluster.load_time_ms = 500
    node = harness.other(harness.coordinator())
    harness.cluster.move_coordinator("g", node)
    assert harness.find("g")[0].node_id == node, "where it will be is known"
    assert harness.cluster.snapshot("g") is None
    for request, version in (
        (join(epoch=2), 1),
        (classic_join("g"), 9),
        (SyncGroupRequest(group_id="g", protocol_type="c", protocol_name="r"), 5),
        (LeaveGroupRequest(group_id="g"), 4),
        (OffsetDeleteRequest(group_id="g"), 0),
        (ListGroupsRequest(), 5),
    ):
        assert harness.at(node, request, version).error_code == LOADING
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="x")
    assert harness.at(node, heartbeat, 4).error_code == 0, "a classic member need not know"
    wanted = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),))
    assert harness.at(node, wanted, 9).groups[0].error_code == LOADING
    harness.cluster.advance(499)
    assert harness.at(node, join(epoch=2), 1).error_code == LOADING
    harness.cluster.advance(1)
    assert harness.at(node, join(epoch=2), 1).error_code == 0
    assert harness.at(node, wanted, 9).groups[0].topics[0].partitions[0].committed_offset == 1


def test_a_session_does_not_run_while_its_group_loads() -> None:
    harness = cluster()
    harness.at(harness.coordinator(), join(), 1)
    harness.cluster.load_time_ms = 120_000
    harness.cluster.move_coordinator("g", harness.other(harness.coordinator()))
    harness.cluster.advance(120_000)
    assert len(harness.members("g")) == 1
    harness.cluster.advance(45_000)
    assert harness.members("g") == []


@pytest.mark.asyncio
async def test_who_waits_for_a_coordinator_that_goes_is_told() -> None:
    harness = ClusterHarness(config={**SIX, "group.initial.rebalance.delay.ms": "3000"})
    node = harness.coordinator("k1")
    connection = harness.cluster.connect(node_id=node)
    answers: list[Any] = []

    async def ask() -> None:
        answers.append(await connection.request(classic_join(member_id=""), 3))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert answers == []
        harness.cluster.move_coordinator("k1", harness.other(node))
    assert answers[0].error_code == NOT_COORDINATOR
    harness.cluster.advance(10_000)


@pytest.mark.asyncio
async def test_a_coordinator_that_is_shut_down_is_followed_by_another() -> None:
    harness = cluster()
    old = harness.coordinator()
    epoch = harness.at(old, join(), 1).member_epoch
    await harness.cluster.stop_broker(old)
    new = harness.coordinator()
    assert new != old
    assert harness.at(new, join(epoch=epoch), 1).error_code == 0
    await harness.cluster.start_broker(old)
    assert harness.coordinator() == new, "nothing moves back by itself"


@pytest.mark.asyncio
async def test_nobody_coordinates_what_a_dead_broker_did_until_it_is_noticed() -> None:
    harness = cluster()
    old = harness.coordinator()
    epoch = harness.at(old, join(), 1).member_epoch
    await harness.cluster.crash_broker(old)
    assert harness.cluster.coordinator_of("g") is None
    found = harness.find("g", node_id=harness.other(old))[0]
    assert (found.error_code, found.node_id, found.port) == (15, -1, -1)
    assert harness.at(None, join(epoch=epoch), 1).error_code == NOT_COORDINATOR
    harness.cluster.advance(9_000)
    assert harness.at(harness.coordinator(), join(epoch=epoch), 1).error_code == 0


def test_a_restart_loads_every_group() -> None:
    harness = cluster()
    for group in GROUPS:
        harness.at(harness.coordinator(group), join(group), 1)
    harness.cluster.restart()
    assert sorted(harness.cluster.core.groups.group_ids) == sorted(GROUPS)
    harness.cluster.advance(45_000)
    assert all(harness.members(group) == [] for group in GROUPS), "sessions began at the restart"


def test_topics_that_change_concern_the_groups_of_every_coordinator() -> None:
    harness = cluster()
    for group in GROUPS:
        harness.at(harness.coordinator(group), join(group), 1)
    harness.cluster.add_partitions("all", 7)
    for group in GROUPS:
        answer = harness.at(harness.coordinator(group), join(group, epoch=2), 1)
        assert [len(t.partitions) for t in answer.assignment.topic_partitions] == [7]
