"""``Admin`` on our broker, over TCP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer

from kip848_client import (
    Admin,
    AdminFailed,
    BrokerError,
    ConfigError,
    Consumer,
    CoordinatorUnavailable,
    LocalProtocolError,
    Producer,
    RequestTimedOut,
    TopicPartition,
    TransportError,
)
from kip848_client.admin import (
    EARLIEST,
    LATEST,
    CommittedOffset,
    ConfigSource,
    NewTopic,
    ShiftBy,
    ToEarliest,
    ToLatest,
    ToPlan,
)
from kip848_client.cli._command_config import settings_from
from kip848_client.cli.groups.core._views import members_table
from kip848_client.core.wire.messages.list_offsets import ListOffsetsRequest
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import GroupAuthorizationFailed, GroupIdNotFound
from kip848_client.runtime.net._transport import KafkaTransport
from mock_coordinator import Fault, Match, MockBroker, MockCluster
from mock_coordinator.core.faults import Disconnect, Drop, Moment, Refuse
from tests.integration.test_foreign_security import (
    WAYS,
    Certificates,
    aiokafka_options,
    certificates,
    secured,
)

__all__ = ["certificates"]

pytestmark = pytest.mark.asyncio

FAST = {
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
PATIENCE_S = 30


@asynccontextmanager
async def serving() -> AsyncGenerator[tuple[MockBroker, Admin]]:
    async with (
        MockBroker(topics={"orders": 3, "other": 1}, config=FAST) as broker,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
    ):
        yield broker, admin


def tp(partition: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, partition)


def is_stable(broker: MockBroker, group: str) -> bool:
    snapshot = broker.snapshot(group)
    return snapshot is not None and snapshot.state == "Stable"


async def test_a_group_with_members_is_described_with_epochs_and_assignments() -> None:
    async with serving() as (broker, admin):
        consumer = Consumer(
            "orders",
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            group_instance_id="i",
            client_id="c",
            client_rack="r",
        )
        async with consumer:
            await consumer.wait_assigned()
            await broker.wait_for(lambda: is_stable(broker, "g"))
            found = (await admin.describe_groups(["g"]))["g"]
            (member,) = found.members
            assert (found.type, found.state, found.assignor) == ("Consumer", "Stable", "uniform")
            assert found.group_epoch == found.target_assignment_epoch == member.epoch
            assert (found.coordinator.host, found.coordinator.port) == (broker.host, broker.port)
            assert member.assignment == member.target_assignment == (tp(0), tp(1), tp(2))
            assert (member.instance_id, member.client_id, member.rack) == ("i", "c", "r")
            assert member.subscribed_topics == ("orders",)
            assert member.is_classic is False
            listed = await admin.list_groups()
            assert [(each.group_id, each.type, each.state) for each in listed] == [
                ("g", "Consumer", "Stable")
            ]
            assert await admin.list_groups(states=["empty"]) == ()
            assert await admin.list_groups(types=["classic"]) == ()
            with pytest.raises(AdminFailed, match="NON_EMPTY_GROUP") as refused:
                await admin.delete_groups(["g"])
            assert isinstance(refused.value.errors["g"], BrokerError)
            with pytest.raises(LocalProtocolError, match="current state is Stable"):
                await admin.reset_group_offsets("g", ToEarliest())


async def test_a_classic_group_is_described_as_one() -> None:
    async with serving() as (broker, admin):
        consumer = AIOKafkaConsumer("orders", bootstrap_servers=broker.bootstrap, group_id="old")
        await consumer.start()
        try:
            await broker.wait_for(lambda: is_stable(broker, "old"))
            found = (await admin.describe_groups(["old"]))["old"]
        finally:
            await consumer.stop()
        (member,) = found.members
        assert (found.type, found.state, found.assignor) == ("Classic", "Stable", "roundrobin")
        assert found.group_epoch is found.target_assignment_epoch is member.epoch is None
        assert member.assignment == (tp(0), tp(1), tp(2))
        assert member.target_assignment is None


async def test_members_of_both_protocols_are_told_apart() -> None:
    async with serving() as (broker, admin):
        new = Consumer("orders", bootstrap_servers=broker.bootstrap, group_id="g", client_id="new")
        old = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=broker.bootstrap,
            group_id="g",
            client_id="old",
            heartbeat_interval_ms=50,
        )
        async with new:
            await new.wait_assigned()
            await old.start()
            try:
                await broker.wait_for(lambda: is_stable(broker, "g") and bool(old.assignment()))
                found = (await admin.describe_groups(["g"]))["g"]
            finally:
                await old.stop()
        assert {each.client_id: each.is_classic for each in found.members} == {
            "new": False,
            "old": True,
        }
        table = members_table(found, verbose=True)
        assert table.plain()[0].endswith(" UPGRADED")
        by_client = {line.split()[3]: line.split()[-1] for line in table.plain()[1:]}
        assert by_client == {"new": "true", "old": "false"}


async def test_what_fails_is_told_by_group_and_what_is_done_beside_it() -> None:
    async with serving() as (_, admin):
        await admin.alter_group_offsets("simple", {tp(0): 0})
        with pytest.raises(AdminFailed, match="Group nowhere not found") as failed:
            await admin.describe_groups(["nowhere", "simple"])
        assert isinstance(failed.value.errors["nowhere"], GroupIdNotFound)
        assert failed.value.done["simple"].state == "Empty"
        assert failed.value.__cause__ is failed.value.errors["nowhere"]
        with pytest.raises(AdminFailed):
            await admin.delete_groups(["nowhere", "simple"])
        assert await admin.list_groups() == ()


async def test_offsets_are_altered_reset_and_deleted() -> None:
    async with serving() as (broker, admin):
        broker.produce("orders", b"1", b"2", b"3", partition=0)
        await admin.alter_group_offsets("g", {tp(0): 1, tp(1): CommittedOffset(0, 0, "note")})
        assert await admin.list_group_offsets("g") == {
            tp(0): CommittedOffset(1),
            tp(1): CommittedOffset(0, 0, "note"),
        }
        planned = await admin.reset_group_offsets("g", ToLatest(), dry_run=True)
        assert planned == {tp(0): 3, tp(1): 0}
        assert (await admin.list_group_offsets("g"))[tp(0)].offset == 1
        assert await admin.reset_group_offsets("g", ShiftBy(1), [tp(0)]) == {tp(0): 2}
        assert (await admin.list_group_offsets("g"))[tp(0)].offset == 2
        plan = ToPlan({tp(0): 99, tp(2): 5})
        assert await admin.reset_group_offsets("g", plan) == {tp(0): 3, tp(2): 0}
        await admin.delete_group_offsets("g", [tp(0), tp(1)])
        assert list(await admin.list_group_offsets("g")) == [tp(2)]
        with pytest.raises(AdminFailed) as unknown:
            await admin.delete_group_offsets("nowhere", [tp(0)])
        assert isinstance(unknown.value.errors[tp(0)], GroupIdNotFound)
        with pytest.raises(GroupIdNotFound):
            await admin.reset_group_offsets("new", ToEarliest(), [tp(0)])
        assert await admin.reset_group_offsets("new", ToEarliest(), [tp(0)], create=True)
        found = await admin.list_offsets({tp(0): LATEST, tp(1): EARLIEST})
        assert {each: where.offset for each, where in found.items()} == {tp(0): 3, tp(1): 0}
        with pytest.raises(AdminFailed, match="UNKNOWN_TOPIC_OR_PARTITION") as gone:
            await admin.list_offsets({tp(0): LATEST, tp(9): LATEST})
        assert set(gone.value.done) == {tp(0)}


async def test_offsets_are_asked_of_the_leader_that_is_known_and_up_to_open_transactions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[ListOffsetsRequest] = []
    send = KafkaTransport.broker

    async def noted(self: KafkaTransport, node: int, request: Any, **rest: Any) -> Any:
        if isinstance(request, ListOffsetsRequest):
            asked.append(request)
        return await send(self, node, request, **rest)

    monkeypatch.setattr(KafkaTransport, "broker", noted)
    async with serving() as (broker, admin):
        broker.produce("orders", b"x", partition=0)
        async with (
            Producer(bootstrap_servers=broker.bootstrap, transactional_id="t") as producer,
            producer.transaction() as txn,
        ):
            await (await txn.send("orders", b"open", partition=0))
            ends = await admin.list_offsets({tp(0): LATEST})
            stable = await admin.list_offsets({tp(0): LATEST}, isolation_level="read_committed")
    assert (ends[tp(0)].offset, stable[tp(0)].offset) == (2, 1)
    (topic,) = asked[-1].topics
    assert topic.partitions[0].current_leader_epoch == stable[tp(0)].leader_epoch


async def test_a_consumer_begins_where_its_group_was_reset_to() -> None:
    async with serving() as (broker, admin):
        broker.produce("other", b"1", b"2", b"3", partition=0)
        await admin.alter_group_offsets("g", {tp(0, "other"): 2})
        async with Consumer("other", bootstrap_servers=broker.bootstrap, group_id="g") as consumer:
            async with asyncio.timeout(PATIENCE_S):
                record = await consumer.getone()
            assert record.value == b"3"


async def test_settings_of_groups_and_topics_are_changed_one_by_one() -> None:
    async with serving() as (_, admin):
        await admin.alter_group_configs({"g": {"consumer.session.timeout.ms": "50000"}})
        found = {each.name: each for each in (await admin.describe_group_configs(["g"]))["g"]}
        mine = found["consumer.session.timeout.ms"]
        assert (mine.value, mine.source) == ("50000", ConfigSource.DYNAMIC_GROUP_CONFIG)
        assert mine.is_own
        assert not mine.is_default
        of_the_broker = found["consumer.heartbeat.interval.ms"]
        assert (of_the_broker.is_own, of_the_broker.is_default) == (False, False)
        await admin.alter_group_configs({"g": {"consumer.session.timeout.ms": None}})
        found = {each.name: each for each in (await admin.describe_group_configs(["g"]))["g"]}
        back = found["consumer.session.timeout.ms"]
        assert (back.is_own, back.is_default) == (False, True)
        await admin.alter_topic_configs({"orders": {"retention.ms": "1000"}})
        of_topic = (await admin.describe_topic_configs(["orders"]))["orders"]
        assert next(each for each in of_topic if each.name == "retention.ms").value == "1000"
        with pytest.raises(AdminFailed, match="INVALID_CONFIG"):
            await admin.alter_topic_configs({"orders": {"retention.ms": "soon"}})


async def test_topics_are_created_described_grown_and_deleted() -> None:
    async with serving() as (_, admin):
        new = NewTopic("new", 2, 1, (("retention.ms", "1000"),))
        await admin.create_topics([new], validate_only=True)
        assert [each.name for each in await admin.list_topics()] == ["orders", "other"]
        await admin.create_topics([new])
        found = (await admin.describe_topics(["new"]))["new"]
        assert [each.partition for each in found.partitions] == [0, 1]
        assert found.partitions[0].replicas == found.partitions[0].in_sync_replicas
        with pytest.raises(AdminFailed, match="TOPIC_ALREADY_EXISTS") as twice:
            await admin.create_topics([new, NewTopic("newer")])
        assert set(twice.value.done) == {"newer"}
        await admin.create_partitions({"new": 3})
        assert len((await admin.describe_topics(["new"]))["new"].partitions) == 3
        with pytest.raises(AdminFailed, match="INVALID_PARTITIONS"):
            await admin.create_partitions({"new": 1})
        await admin.delete_topics(["new"])
        with pytest.raises(AdminFailed, match="UNKNOWN_TOPIC_OR_PARTITION"):
            await admin.describe_topics(["new"])


async def test_topics_of_any_size_are_described() -> None:
    config = {"max.request.partition.size.limit": "2"}
    topics = {"a": 5, "b": 1, "c": 2, "d": 3}
    async with (
        MockBroker(topics=topics, config=config) as broker,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
    ):
        found = await admin.describe_topics(["d", "a", "b", "c"])
        assert list(found) == ["d", "a", "b", "c"]
        for name, count in topics.items():
            assert [each.partition for each in found[name].partitions] == list(range(count))
        with pytest.raises(AdminFailed, match="UNKNOWN_TOPIC_OR_PARTITION") as gone:
            await admin.describe_topics(["nowhere", "d", "aa", "a"])
        assert set(gone.value.errors) == {"nowhere", "aa"}
        assert {name: len(each.partitions) for name, each in gone.value.done.items()} == {
            "a": 5,
            "d": 3,
        }


async def test_a_coordinator_that_moves_is_found_again() -> None:
    async with (
        MockCluster(topics={"orders": 3}, brokers=3, config=FAST) as cluster,
        Admin(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        groups = [f"g{number}" for number in range(12)]
        for group in groups:
            await admin.alter_group_offsets(group, {tp(0): 0})
        before = await admin.describe_groups(groups)
        assert len({each.coordinator.node_id for each in before.values()}) > 1
        assert [each.group_id for each in await admin.list_groups()] == sorted(groups)
        for group in groups:
            old = before[group].coordinator.node_id
            cluster.move_coordinator(group, next(each for each in (1, 2, 3) if each != old))
        after = await admin.describe_groups(groups)
        for group in groups:
            assert after[group].coordinator.node_id != before[group].coordinator.node_id
        await admin.delete_groups(groups)
        assert await admin.list_groups() == ()


async def test_wrong_arguments_are_refused() -> None:
    async with serving() as (_, admin):
        wrong: Any
        for wrong in ("g", None, [""], [7], ["x" * 40_000]):
            with pytest.raises(ConfigError):
                await admin.describe_groups(wrong)
        with pytest.raises(ConfigError, match="Stable"):
            await admin.list_groups(states=["nonsense"])
        with pytest.raises(ConfigError):
            await admin.alter_group_offsets("g", {tp(0): -1})
        wrong = "earliest"
        with pytest.raises(ConfigError, match="ToEarliest"):
            await admin.reset_group_offsets("g", wrong)
        wrong = ToLatest
        with pytest.raises(ConfigError, match=r"write ToLatest\(\.\.\.\)"):
            await admin.reset_group_offsets("g", wrong)
        with pytest.raises(ConfigError):
            await admin.create_topics([NewTopic("a/b")])
        with pytest.raises(ConfigError):
            await admin.create_partitions({"orders": 0})
        with pytest.raises(ConfigError):
            await admin.alter_group_configs({"g": {}})


async def test_an_admin_that_is_not_there_says_so() -> None:
    wrong: Any = {"bootstrap_server": "x"}
    with pytest.raises(ConfigError, match="did you mean bootstrap_servers"):
        Admin(**wrong)
    async with MockBroker() as broker:
        admin = Admin(bootstrap_servers=broker.bootstrap)
        with pytest.raises(LocalProtocolError, match="not started"):
            await admin.list_groups()
        await admin.start()
        await admin.stop()
        await admin.stop()
        with pytest.raises(LocalProtocolError, match="closed"):
            await admin.list_groups()


async def test_another_event_loop_is_told_where_to_call() -> None:
    async with serving() as (_, admin):

        async def elsewhere() -> None:
            for call in (admin.list_groups, admin.stop):
                with pytest.raises(LocalProtocolError, match="in another event loop"):
                    await call()

        await asyncio.to_thread(asyncio.run, elsewhere())
        assert not await admin.list_groups()


async def test_a_coordinator_that_loads_or_moves_is_asked_again_until_the_time_is_over() -> None:
    async with serving() as (broker, admin):
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        await admin.alter_group_offsets("g", {tp(0): 0})
        for code in (loading, ErrorCode.NOT_COORDINATOR):
            broker.faults.add(Fault(Refuse(code), Match(api="ConsumerGroupDescribe"), times=3))
            assert (await admin.describe_groups(["g"]))["g"].state == "Empty"
        broker.faults.add(Fault(Refuse(loading), Match(api="ListGroups")))
        assert [each.group_id for each in await admin.list_groups()] == ["g"]
        broker.faults.add(Fault(Refuse(ErrorCode.NOT_COORDINATOR), Match(api="OffsetCommit")))
        await admin.alter_group_offsets("g", {tp(0): 0})
        broker.faults.add(Fault(Refuse(loading), Match(api="OffsetFetch"), times=None))
        with pytest.raises(AdminFailed, match="COORDINATOR_LOAD_IN_PROGRESS") as failed:
            await admin.list_group_offsets("g", timeout_ms=300)
        assert isinstance(failed.value.errors["g"], CoordinatorUnavailable)


async def test_a_broker_that_does_not_answer_ends_a_call_in_time() -> None:
    async with serving() as (broker, admin):
        broker.faults.add(Fault(Drop(Moment.REQUEST), Match(api="Metadata"), times=None))
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(RequestTimedOut):
                await admin.list_topics(timeout_ms=100)
            with pytest.raises(AdminFailed) as failed:
                await admin.create_topics([NewTopic("new")], timeout_ms=100)
        assert isinstance(failed.value.errors["new"], RequestTimedOut)


async def test_a_broker_that_says_nothing_costs_one_attempt_at_most() -> None:
    async with (
        MockCluster(topics={"orders": 3}, brokers=3, config=FAST) as cluster,
        Admin(bootstrap_servers=cluster.bootstrap, request_timeout_ms=300) as admin,
    ):
        await admin.list_groups()
        cluster.faults.add(Fault(Drop(Moment.REQUEST), Match(node_id=2), times=None))
        async with asyncio.timeout(PATIENCE_S):
            for number in range(8):
                new = NewTopic(f"new-{number}")
                await admin.create_topics([new], timeout_ms=5_000)
            descriptions = [admin.describe_topics(["orders"]) for _ in range(16)]
            settings = [admin.describe_topic_configs(["orders"]) for _ in range(16)]
            await asyncio.gather(*descriptions, *settings)


async def test_a_leader_that_has_not_heard_of_its_topic_is_asked_again() -> None:
    async with serving() as (broker, admin):
        broker.faults.add(
            Fault(Refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), Match(api="ListOffsets"), times=2)
        )
        assert (await admin.list_offsets({tp(0): LATEST}))[tp(0)].offset == 0


async def test_what_was_done_although_the_answer_was_lost_is_done() -> None:
    async with serving() as (broker, admin):
        for api in ("CreateTopics", "DeleteTopics", "DeleteGroups"):
            broker.faults.add(Fault(Disconnect(), Match(api=api)))
        await admin.alter_group_offsets("g", {tp(0): 0})
        await admin.create_topics([NewTopic("new")])
        await admin.delete_topics(["new"])
        await admin.delete_groups(["g"])
        assert len(broker.faults.hits) == 3
        assert [each.name for each in await admin.list_topics() if not each.is_internal] == [
            "orders",
            "other",
        ]


async def test_a_call_that_is_cancelled_leaves_the_admin_as_it_was() -> None:
    async with serving() as (broker, admin):
        await admin.alter_group_offsets("g", {tp(0): 0})
        broker.faults.add(Fault(Drop(), Match(api="ConsumerGroupDescribe")))
        call = asyncio.create_task(admin.describe_groups(["g"]))
        await broker.wait_for(lambda: bool(broker.requests("ConsumerGroupDescribe")))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert len(await admin.list_groups()) == 1


async def test_a_call_ends_when_the_admin_is_stopped() -> None:
    async with serving() as (broker, admin):
        broker.faults.add(Fault(Drop(Moment.REQUEST), Match(api="Metadata"), times=None))
        call = asyncio.create_task(admin.list_topics())
        asked = len(broker.requests("Metadata"))
        await broker.wait_for(lambda: len(broker.requests("Metadata")) > asked)
        await admin.stop()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(LocalProtocolError, match="closed"):
                await call


@pytest.mark.parametrize("way", WAYS, ids="-".join)
async def test_every_way_in(certificates: Certificates, way: tuple[str, str]) -> None:
    async with secured(certificates) as broker:
        options = aiokafka_options(broker, certificates, way)
        async with Admin(**options) as admin:
            await admin.alter_group_offsets("g", {tp(0, "t"): 0})
            assert [each.group_id for each in await admin.list_groups()] == ["g"]
            with pytest.raises(AdminFailed) as refused:
                await admin.describe_groups(["not-mine", "g"])
            assert isinstance(refused.value.errors["not-mine"], GroupAuthorizationFailed)


async def test_the_command_config_gets_in_with_a_certificate_and_with_a_password(
    certificates: Certificates, tmp_path: Path
) -> None:
    chain, key = map(Path, certificates.client)
    both = tmp_path / "both.pem"
    both.write_text(key.read_text() + chain.read_text())
    trust = f"ssl.truststore.type=PEM\nssl.truststore.location={certificates.ca}\n"
    login = (
        "sasl.mechanism=SCRAM-SHA-256\nsasl.jaas.config=org.apache.kafka.common.security.scram."
        'ScramLoginModule required username="alice" password="an apple, a day";\n'
    )
    mine = f"ssl.keystore.type=PEM\nssl.keystore.location={both}\n"
    file = tmp_path / "client.properties"
    async with secured(certificates) as broker:
        for protocol, text in (("SSL", trust + mine), ("SASL_SSL", trust + login)):
            file.write_text(f"security.protocol={protocol}\n{text}")
            settings = settings_from(str(file))
            address = broker.bootstrap_of(protocol)
            async with Admin(bootstrap_servers=address, **settings) as admin:
                await admin.alter_group_offsets("g", {tp(0, "t"): 0})


async def test_a_look_up_that_is_lost_puts_nothing_in_doubt() -> None:
    async with serving() as (broker, admin):
        broker.faults.add(Fault(Disconnect(), Match(api="FindCoordinator")))
        with pytest.raises(AdminFailed) as refused:
            await admin.delete_groups(["nobody-has-this-one"])
        assert isinstance(refused.value.errors["nobody-has-this-one"], GroupIdNotFound)
        assert len(broker.faults.hits) == 1


async def test_brokers_that_name_none_for_a_moment_are_asked_again() -> None:
    async with serving() as (broker, admin):
        await admin.alter_group_offsets("g", {tp(0): 1})
        nobody = Fault(Refuse(ErrorCode.LEADER_NOT_AVAILABLE), Match(api="Metadata"), times=2)
        broker.faults.add(nobody)
        assert [each.group_id for each in await admin.list_groups()] == ["g"]
        broker.faults.clear()
        broker.faults.add(nobody)
        await admin.create_topics([NewTopic("new")])
        broker.faults.clear()
        broker.faults.add(replace(nobody, times=None))
        with pytest.raises(AdminFailed, match="no broker names the brokers"):
            await admin.delete_topics(["new"], timeout_ms=300)
        with pytest.raises(TransportError, match="no broker names the brokers"):
            await admin.list_groups(timeout_ms=300)


async def test_what_was_wrong_counts_more_than_that_the_time_is_over() -> None:
    async with serving() as (broker, admin):
        await admin.create_topics([NewTopic("new")])
        refused = Fault(Refuse(ErrorCode.LEADER_NOT_AVAILABLE), Match(api="Metadata"), times=1)
        broker.faults.add(refused)
        broker.faults.add(Fault(Drop(), Match(api="Metadata"), times=None))
        with pytest.raises(AdminFailed, match="no broker names the brokers"):
            await admin.delete_topics(["new"], timeout_ms=600)
