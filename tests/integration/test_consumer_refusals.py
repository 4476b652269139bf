"""What goes wrong, under its name: bad input, missing permissions, old or absent brokers."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from typing import Any

import pytest

from kip848_client import (
    BootstrapFailed,
    BrokerError,
    CallbackError,
    CommitFailed,
    ConfigError,
    Consumer,
    ConsumerClosed,
    LocalProtocolError,
    MemberState,
    ProtocolUnsupported,
    TopicPartition,
)
from kip848_client.core.wire.messages.api_versions import (
    ApiVersionsResponse,
    ApiVersionsResponseApiVersion,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
)
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    GroupAuthorizationFailed,
    InvalidRegularExpression,
    TopicAuthorizationFailed,
    UnsupportedAssignor,
)
from mock_coordinator import Fault, Match, MockBroker
from mock_coordinator.core.faults import Refuse, faults_from_json
from tests.integration.cluster import Cluster, eventually, polling
from tests.integration.intercepted import CLOSE, DROP, Interceptor, intercepted
from tests.support.kafka_broker import free_ports
from tests.support.real_kafka import FAST_CONFIGS

pytestmark = pytest.mark.asyncio


def state_of(consumer: Consumer[Any, Any]) -> MemberState:
    member = consumer.member
    assert member is not None
    return member.state


# -- input ---------------------------------------------------------------------------------------


async def test_settings_and_arguments_that_cannot_be_meant() -> None:
    with pytest.raises(ConfigError, match="group_id = ''"):
        Consumer("t", group_id="")
    with pytest.raises(ConfigError, match="needs a group_id"):
        Consumer("t")
    consumer = Consumer(group_id="g")
    with pytest.raises(ConfigError, match="topics or a pattern"):
        consumer.subscribe()
    with pytest.raises(ConfigError, match="list of names"):
        consumer.subscribe("orders")
    with pytest.raises(ConfigError, match="not a topic name"):
        consumer.subscribe([" "])
    with pytest.raises(ConfigError, match="no method on_partitions_revoked"):
        consumer.subscribe(["orders"], listener=object())  # type: ignore[arg-type]  # the point
    consumer.subscribe(["orders"])
    with pytest.raises(LocalProtocolError, match="unsubscribe"):
        consumer.assign([("orders", 0)])


async def test_classic_settings_are_reported_once_and_refused_when_strict(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "kip848_client"):
        Consumer("t", group_id="g", session_timeout_ms=10_000, heartbeat_interval_ms=3_000)
    (record,) = caplog.records
    assert "group.consumer.session.timeout.ms" in record.getMessage()
    assert "group.consumer.heartbeat.interval.ms" in record.getMessage()
    with pytest.raises(ConfigError, match="group_remote_assignor"):
        Consumer("t", group_id="g", partition_assignment_strategy=(), strict=True)


async def test_an_invalid_pattern_is_refused_at_the_call(cluster: Cluster) -> None:
    consumer = cluster.consumer(group=cluster.unique("regex"))
    with pytest.raises(ConfigError, match=r"a\("):
        consumer.subscribe(pattern="a(")
    with pytest.raises(ConfigError, match="VERBOSE"):
        consumer.subscribe(pattern=re.compile("a # comment", re.VERBOSE))


async def test_a_pattern_that_only_the_broker_refuses_ends_the_membership(cluster: Cluster) -> None:
    consumer = cluster.consumer(group=cluster.unique("regex"))
    consumer.subscribe(pattern=r"a\C")  # RE2 knows it, RE2/J does not
    async with consumer:
        for _ in range(2):
            with pytest.raises(InvalidRegularExpression, match=r"a\\C"):
                await consumer.getone()
        with pytest.raises(InvalidRegularExpression):
            consumer.subscribe(pattern="a.*")
        assert state_of(consumer) is MemberState.FATAL


async def test_the_flags_of_a_pattern_reach_the_broker(cluster: Cluster) -> None:
    name = cluster.unique("flags")
    await cluster.create_topic(name, 1)
    consumer = cluster.consumer(group=cluster.unique("g"))
    consumer.subscribe(pattern=re.compile(name.upper(), re.IGNORECASE))
    async with consumer:
        assert {tp.topic for tp in await consumer.wait_assigned(30_000)} == {name}


async def test_an_unknown_assignor_ends_the_membership(cluster: Cluster) -> None:
    settings = {"group_remote_assignor": "fair"}
    async with cluster.consumer("t", group=cluster.unique("fair"), **settings) as consumer:
        with pytest.raises(UnsupportedAssignor, match="fair"):
            await consumer.getone()


# -- brokers that are not there, too old, or strange -----------------------------------------------


async def test_no_broker_is_said_for_each_address() -> None:
    one, two = free_ports(2)
    consumer = Consumer(
        "t", group_id="g", bootstrap_servers=[f"127.0.0.1:{one}", f"127.0.0.1:{two}"]
    )
    with pytest.raises(BootstrapFailed) as caught:
        await consumer.start()
    assert f"127.0.0.1:{one}" in str(caught.value)
    assert f"127.0.0.1:{two}" in str(caught.value)
    with pytest.raises(ConsumerClosed, match="was stopped before"):
        await consumer.start()


async def test_a_server_that_accepts_and_says_nothing_is_no_broker() -> None:
    gone = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        gone.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    consumer = Consumer(
        "t", group_id="g", bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=200
    )
    with pytest.raises(BootstrapFailed, match=str(port)):
        await consumer.start()
    await gone.wait()
    server.close()
    await server.wait_closed()


@pytest.mark.parametrize("offered", [None, (0, 0)])
async def test_a_broker_without_kip848_is_one_clear_error(offered: tuple[int, int] | None) -> None:
    rows = {3: (0, 12), 10: (0, 4), 18: (0, 3), **({} if offered is None else {68: offered})}

    def old(_request: Any) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            api_keys=tuple(
                ApiVersionsResponseApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in rows.items()
            )
        )

    async with intercepted() as (door, cluster):
        door.answers["ApiVersions"] = old
        consumer = cluster.consumer("t", group="g")
        says = "does not offer it" if offered is None else "offers v0 to v0"
        with pytest.raises(ProtocolUnsupported, match=says) as caught:
            await consumer.start()
        assert "Apache Kafka 4.0 or newer" in str(caught.value)
        assert "aiokafka" in str(caught.value)


async def test_a_coordinator_that_switched_the_protocol_off_ends_the_membership() -> None:
    async with intercepted() as (door, cluster):
        door.answers["ConsumerGroupHeartbeat"] = lambda _: ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            error_message="The group coordinator is not available.",
        )
        async with cluster.consumer("t", group="g") as consumer:
            with pytest.raises(ProtocolUnsupported):
                await consumer.getone()


async def test_a_coordinator_that_comes_late_is_waited_for() -> None:
    async with intercepted() as (door, cluster):
        await cluster.create_topic("t", 1)
        await cluster.produce("t", {0: [b"x"]})
        door.answers["ConsumerGroupHeartbeat"] = lambda _: ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.NOT_COORDINATOR
        )
        async with cluster.consumer("t", group="g", retry_backoff_ms=10) as consumer:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    await consumer.getone()
            assert 2 < door.asked["ConsumerGroupHeartbeat"] < 60
            assert 2 < door.asked["FindCoordinator"] < 60
            del door.answers["ConsumerGroupHeartbeat"]
            assert (await consumer.getone()).value == b"x"


async def test_heartbeats_that_are_lost_do_not_lose_the_assignment() -> None:
    async with intercepted() as (door, cluster):
        await cluster.create_topic("t", 1)
        await cluster.produce("t", {0: [b"x"]})
        fates = iter([DROP, CLOSE])
        door.answers["ConsumerGroupHeartbeat"] = lambda _: next(fates, None)
        async with cluster.consumer("t", group="g", request_timeout_ms=300) as consumer:
            assert (await consumer.getone()).value == b"x"
            assert door.asked["ConsumerGroupHeartbeat"] >= 3


# -- permissions ---------------------------------------------------------------------------------


async def test_without_permission_for_the_group_the_membership_ends() -> None:
    async with intercepted() as (door, cluster):
        door.answers["ConsumerGroupHeartbeat"] = lambda _: ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
        )
        async with cluster.consumer("t", group="g") as consumer:
            for _ in range(2):
                with pytest.raises(GroupAuthorizationFailed):
                    await consumer.getmany(timeout_ms=2000)


async def test_without_permission_to_find_the_coordinator_it_says_so_and_recovers() -> None:
    async with intercepted() as (door, cluster):
        await cluster.create_topic("t", 1)
        await cluster.produce("t", {0: [b"x"]})
        refusal = FindCoordinatorResponseCoordinator(
            key="g", node_id=-1, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
        )
        door.answers["FindCoordinator"] = lambda _: FindCoordinatorResponse(coordinators=(refusal,))
        async with cluster.consumer("t", group="g") as consumer:
            with pytest.raises(GroupAuthorizationFailed, match="FindCoordinator"):
                await consumer.getone()
            assert await consumer.commit({}) == {}  # nothing to commit is no request
            with pytest.raises(CommitFailed, match="GROUP_AUTHORIZATION_FAILED"):
                await _commit_as_outsider(cluster)
            del door.answers["FindCoordinator"]
            assert (await consumer.getone()).value == b"x"


async def _commit_as_outsider(cluster: Cluster) -> None:
    async with cluster.consumer(group="g") as outsider:
        outsider.assign([("t", 0)])
        await outsider.commit({("t", 0): 1})


async def test_without_permission_for_the_topic_it_says_so_and_recovers() -> None:
    async with intercepted() as (door, cluster):
        await cluster.create_topic("t", 1)
        await cluster.produce("t", {0: [b"x"]})
        door.answers["ConsumerGroupHeartbeat"] = lambda _: ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        async with cluster.consumer("t", group="g") as consumer:
            with pytest.raises(TopicAuthorizationFailed):
                await consumer.getone()
            del door.answers["ConsumerGroupHeartbeat"]
            assert (await consumer.getone()).value == b"x"


async def test_a_refused_commit_names_partition_and_reason() -> None:
    async with intercepted() as (door, cluster):
        await cluster.create_topic("t", 1)
        await cluster.produce("t", {0: [b"x"]})
        row = OffsetCommitResponsePartition(
            partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        async with cluster.consumer("t", group="g", enable_auto_commit=False) as consumer:
            await consumer.getone()
            topic_id = cluster_topic_id(door)
            door.answers["OffsetCommit"] = lambda _: OffsetCommitResponse(
                topics=(OffsetCommitResponseTopic(name="t", topic_id=topic_id, partitions=(row,)),)
            )
            with pytest.raises(CommitFailed, match=r"t-0.*TOPIC_AUTHORIZATION_FAILED") as caught:
                await consumer.commit()
            assert list(caught.value.offsets) == [("t", 0)]


def cluster_topic_id(door: Interceptor) -> bytes:
    return door.broker.core.broker.catalog.topics["t"].topic_id


async def test_a_refused_offset_fetch_never_falls_back_to_the_reset_policy() -> None:
    """Only "nothing committed" means that nothing is committed."""
    async with intercepted() as (door, cluster):
        await cluster.create_topic("t", 1)
        await cluster.produce("t", {0: [b"0", b"1", b"2"]})
        async with cluster.consumer("t", group="g") as consumer:
            await consumer.getone()
            await consumer.commit()
        codes = iter([14, 16, 113, 88, 15, 30])

        def refuse(_request: Any) -> OffsetFetchResponse | None:
            code = next(codes, None)
            if code is None:
                return None
            row = OffsetFetchResponseGroup(group_id="g", error_code=code)
            return OffsetFetchResponse(groups=(row,))

        door.answers["OffsetFetch"] = refuse
        consumer = cluster.consumer("t", group="g", auto_offset_reset="earliest")
        async with consumer:
            with pytest.raises(GroupAuthorizationFailed, match="OffsetFetch"):
                await consumer.getone()
            assert (await consumer.getone()).offset == 1


# -- listeners -----------------------------------------------------------------------------------


class Listener:
    """Fails as told, and remembers what it was told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []
        self.fail: dict[str, int] = {}
        self.hang: set[str] = set()

    async def _called(self, name: str, partitions: set[TopicPartition]) -> None:
        self.calls.append((name, len(partitions)))
        if name in self.hang:
            await asyncio.Event().wait()
        if self.fail.get(name, 0) > 0:
            self.fail[name] -= 1
            raise ZeroDivisionError(name)

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        await self._called("assigned", assigned)

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        await self._called("revoked", revoked)

    async def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        await self._called("lost", lost)


async def test_an_assigned_callback_that_raises_is_repeated(cluster: Cluster) -> None:
    topic = cluster.unique("raises")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"x"]})
    listener = Listener()
    listener.fail["assigned"] = 1
    consumer = cluster.consumer(group=cluster.unique("raises"))
    consumer.subscribe([topic], listener=listener)
    async with consumer:
        with pytest.raises(CallbackError, match="on_partitions_assigned raised ZeroDivisionError"):
            await consumer.getone()
        assert (await consumer.getone()).value == b"x"
        # what it did not take the first time, it is asked to take again
        assert listener.calls == [("assigned", 1), ("assigned", 1)]


async def test_a_revoked_callback_that_raises_is_repeated(cluster: Cluster) -> None:
    topic, group = cluster.unique("keeps"), cluster.unique("keeps")
    await cluster.create_topic(topic, 2)
    await cluster.fast_group(group)
    listener = Listener()
    listener.fail["revoked"] = 1
    consumer = cluster.consumer(group=group)
    consumer.subscribe([topic], listener=listener)
    async with consumer:
        await consumer.wait_assigned(20_000)
        other = cluster.consumer(topic, group=group)
        async with other, polling(other):
            with pytest.raises(CallbackError, match="revoked"):
                await consumer.getone()
            assert len(consumer.assignment()) == 2  # not given up
            async with polling(consumer):
                await eventually(lambda: len(consumer.assignment()) == 1)
                await eventually(lambda: len(other.assignment()) == 1)
            assert [call for call in listener.calls if call[0] == "revoked"] == [
                ("revoked", 1),
                ("revoked", 1),
            ]


async def test_a_callback_that_never_returns_is_cancelled_while_heartbeats_go_on(
    cluster: Cluster,
) -> None:
    topic, group = cluster.unique("hangs"), cluster.unique("hangs")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"x"]})
    await cluster.fast_group(group)
    listener = Listener()
    listener.hang.add("assigned")
    consumer = cluster.consumer(group=group, rebalance_callback_timeout_ms=600)
    consumer.subscribe([topic], listener=listener)
    async with consumer:
        with pytest.raises(CallbackError, match="did not return within 600 ms"):
            await consumer.getone()
        member = consumer.member
        assert member is not None
        assert member.heartbeats_answered >= 3
        listener.hang.clear()
        assert (await consumer.getone()).value == b"x"


async def test_a_listener_may_use_the_consumer(cluster: Cluster) -> None:
    topic, group = cluster.unique("uses"), cluster.unique("uses")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"%d" % n for n in range(10)]})
    consumer = cluster.consumer(group=group, enable_auto_commit=False)
    tp = TopicPartition(topic, 0)
    trouble: list[BaseException] = []

    class Using:
        async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            assert consumer.assignment() == assigned == {tp}
            assert await consumer.committed(tp) is None
            assert await consumer.end_offsets([tp]) == {tp: 10}
            consumer.seek(tp, 6)
            assert await consumer.position(tp) == 6
            try:
                await consumer.stop()
            except LocalProtocolError as err:
                trouble.append(err)

        async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            assert revoked == {tp}
            await consumer.commit()

    consumer.subscribe([topic], listener=Using())
    async with consumer:
        assert (await consumer.getone()).value == b"6"
    assert len(trouble) == 1
    assert await cluster.committed(group, topic) == {0: 7}


async def test_stop_says_that_a_listener_failed_and_leaves_all_the_same(cluster: Cluster) -> None:
    topic, group = cluster.unique("leaves"), cluster.unique("leaves")
    await cluster.create_topic(topic, 1)
    listener = Listener()
    listener.fail["revoked"] = 1
    consumer = cluster.consumer(group=group)
    consumer.subscribe([topic], listener=listener)
    await consumer.start()
    await consumer.wait_assigned(20_000)
    with pytest.raises(CallbackError, match="revoked"):
        await consumer.stop()
    assert (await cluster.describe(group)).members == ()


async def test_stop_does_not_wait_for_ever(cluster: Cluster) -> None:
    topic, group = cluster.unique("stuck"), cluster.unique("stuck")
    await cluster.create_topic(topic, 1)
    listener = Listener()
    listener.hang.add("revoked")
    consumer = cluster.consumer(group=group)
    consumer.subscribe([topic], listener=listener)
    await consumer.start()
    await consumer.wait_assigned(20_000)
    started = time.monotonic()
    await consumer.stop(timeout_ms=300)
    assert time.monotonic() - started < 5
    assert (await cluster.describe(group)).members == ()


async def test_stop_goes_on_when_its_caller_is_cancelled(cluster: Cluster) -> None:
    topic, group = cluster.unique("cancelled"), cluster.unique("cancelled")
    await cluster.create_topic(topic, 1)
    consumer = cluster.consumer(topic, group=group)
    await consumer.start()
    await consumer.wait_assigned(20_000)
    stopping = asyncio.get_running_loop().create_task(consumer.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    await consumer.stop()
    assert (await cluster.describe(group)).members == ()


async def test_a_broker_error_of_a_fetch_is_raised() -> None:
    async with intercepted() as (door, cluster):
        await cluster.create_topic("t", 1)
        row = ListOffsetsResponseListOffsetsPartitionResponse(
            partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        door.answers["ListOffsets"] = lambda _: ListOffsetsResponse(
            topics=(ListOffsetsResponseListOffsetsTopicResponse(name="t", partitions=(row,)),)
        )
        async with cluster.consumer("t", group="g") as consumer:
            with pytest.raises(BrokerError, match="ListOffsets: TOPIC_AUTHORIZATION_FAILED"):
                await consumer.getone()
            with pytest.raises(TopicAuthorizationFailed):
                await consumer.end_offsets([("t", 0)])


async def test_partitions_that_were_not_asked_for_are_ignored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    strange = [
        {"topic": "t", "partitions": [fetched(7, ErrorCode.NOT_LEADER_OR_FOLLOWER)]},
        {"topic": "ghost", "partitions": [fetched(0), fetched(1)]},
    ]
    again = [{"topic": "t", "partitions": [fetched(0, ErrorCode.OFFSET_OUT_OF_RANGE)] * 2}]
    faults = [
        {"match": {"api": "Fetch"}, "nth": 2, "times": 3, "answer": {"responses": strange}},
        {"match": {"api": "Fetch"}, "nth": 5, "answer": {"responses": again}},
    ]
    async with MockBroker({"t": 1}, config=FAST_CONFIGS) as broker:
        cluster = Cluster("mock", "4.4", broker.host, broker.port)
        broker.faults.add(*faults_from_json(json.dumps(faults)))
        await cluster.produce("t", {0: [b"0"]})
        consumer = cluster.consumer("t", group="g", fetch_max_wait_ms=10)
        async with consumer, polling(consumer) as seen:
            await eventually(lambda: len(broker.faults.hits) == 4, 5)
            await cluster.produce("t", {0: [b"1"]})
            await eventually(lambda: b"1" in {each.value for each in seen}, 5)
        await cluster.close()
    said = [each.getMessage() for each in caplog.records if "broke the Fetch" in each.getMessage()]
    assert 1 <= len(said) <= 2  # not for each answer
    assert "partition 7" in said[0]


async def test_a_refusal_of_whole_fetches_is_no_storm() -> None:
    async with MockBroker({"t": 1}, config=FAST_CONFIGS) as broker:
        cluster = Cluster("mock", "4.4", broker.host, broker.port)
        await cluster.produce("t", {0: [b"0"]})
        consumer = cluster.consumer("t", group="g")
        async with consumer, polling(consumer) as seen:
            await eventually(lambda: len(seen) == 1)
            fault = Fault(Refuse(ErrorCode.UNKNOWN_SERVER_ERROR), Match(api="Fetch"), times=5)
            started = time.monotonic()
            broker.faults.add(fault)
            await eventually(lambda: len(broker.faults.hits) == 5)
            # pauses of 100, 200, 400 and 800 ms, each varied by a fifth
            assert time.monotonic() - started > 1.1
            await cluster.produce("t", {0: [b"1"]})
            await eventually(lambda: len(seen) == 2)
        await cluster.close()


def fetched(partition: int, error_code: int = 0) -> dict[str, Any]:
    return {"partition_index": partition, "error_code": int(error_code), "high_watermark": 3}


async def test_stop_does_not_wait_for_brokers_that_are_gone() -> None:
    async with intercepted() as (door, cluster):
        await cluster.create_topic("t", 1)
        await cluster.produce("t", {0: [b"x"]})
        consumer = cluster.consumer("t", group="g")
        await consumer.start()
        await consumer.getone()
        await door.close()
        started = time.monotonic()
        await consumer.stop(timeout_ms=300)
        assert time.monotonic() - started < 5
