"""Transactions, on our broker with both versions of them and on real Kafka."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

from kip848_client import (
    BrokerError,
    CommitFailed,
    ConfigError,
    Consumer,
    GroupMetadata,
    LocalProtocolError,
    Producer,
    ProducerFenced,
    RecordTooLarge,
    TopicPartition,
    Transaction,
    TransactionAborted,
)
from kip848_client.core.produce import State, _transaction_requests
from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.transactions import EndTxnRequest
from mock_coordinator import MockBroker, options
from mock_coordinator.core.profiles import profile_named
from tests.integration.cluster import Cluster, eventually
from tests.integration.conftest import running_mock
from tests.integration.reading import committed_values, limit_messages
from tests.support.pytest_kafka import chosen_versions, skip_without_kafka
from tests.support.real_kafka import RealKafka

pytestmark = pytest.mark.asyncio

OFFSETS_BY_ID = 6
"""The version of TxnOffsetCommit."""


class Broker(Cluster):
    """With the bundled broker itself, if it is that."""

    mock: MockBroker | None = None
    takes_ids: bool = True
    """Whether offsets of a transaction name topics by id."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    real = [
        pytest.param(f"kafka-{version}", marks=pytest.mark.real_kafka)
        for version in chosen_versions(metafunc.config)
    ]
    if "broker" in metafunc.fixturenames:
        metafunc.parametrize("broker", ["V1-4.4", "V2-4.4", *real], indirect=True)


@pytest_asyncio.fixture
async def broker(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    real_kafka_pool: Callable[[str], RealKafka],
) -> AsyncIterator[Broker]:
    """A broker with the transactions of Kafka 4 (V2), or as if it had been upgraded without them
    (V1)."""
    kind, _, version = str(request.param).partition("-")
    async with AsyncExitStack() as stack:
        if kind == "kafka":
            with skip_without_kafka():
                kafka = real_kafka_pool(version)
            found = Broker(version, kafka.profile, kafka.host, kafka.port)
        else:
            monkeypatch.setattr(options, "profile_named", lambda name: _with(name, int(kind[1])))
            mock = await stack.enter_async_context(running_mock(version))
            found = Broker("mock", version, mock.host, mock.port)
            found.mock = mock
        newest = profile_named(found.profile).api_versions["TxnOffsetCommit"][1]
        found.takes_ids = kind != "V1" and newest >= OFFSETS_BY_ID
        stack.push_async_callback(found.close)
        yield found


def _with(name: str, level: int) -> Any:
    profile = profile_named(name)
    features = {**profile.finalized_features, "transaction.version": level}
    return dataclasses.replace(profile, finalized_features=features)


@asynccontextmanager
async def running(
    cluster: Cluster, name: str = "tx", **settings: Any
) -> AsyncGenerator[Producer[Any, Any]]:
    settings["transactional_id"] = cluster.unique(name)
    producer: Producer[Any, Any] = Producer(bootstrap_servers=cluster.bootstrap, **settings)
    async with producer:
        yield producer


@asynccontextmanager
async def refused(
    producer: Producer[Any, Any], error: type[Exception], says: str | None = None
) -> AsyncGenerator[Transaction[Any, Any]]:
    """A transaction whose block ends with this error."""
    with pytest.raises(error, match=says):
        async with producer.transaction() as txn:
            yield txn


async def a_topic(cluster: Cluster, name: str = "t", partitions: int = 1) -> str:
    topic = cluster.unique(name)
    await cluster.create_topic(topic, partitions)
    return topic


async def test_what_is_committed_is_seen_and_what_is_aborted_is_not(broker: Broker) -> None:
    topic = await a_topic(broker)
    async with running(broker) as producer:
        async with producer.transaction() as txn:
            place = await txn.send(topic, b"0")
            await txn.send(topic, b"1")
        assert place.result().offset == 0
        async with refused(producer, ZeroDivisionError) as txn:
            dropped = await txn.send(topic, b"never")
            await producer.flush()
            assert dropped.result().offset > 0
            raise ZeroDivisionError
        async with producer.transaction():
            pass  # nothing to commit
        await producer.begin_transaction()
        await producer.send(topic, b"last")
        await producer.commit_transaction()
    assert await committed_values(broker, topic, b"last") == [b"0", b"1", b"last"]


async def test_the_version_of_transactions_is_the_clusters(broker: Broker) -> None:
    topic = await a_topic(broker)
    async with running(broker) as producer, producer.transaction() as txn:
        await txn.send(topic, b"0")
    mock = broker.mock
    if mock is not None:
        asked = [type(each.request).__name__ for each in mock.requests()]
        ends = [each for each in mock.requests("EndTxn") if isinstance(each.request, EndTxnRequest)]
        is_v1 = "AddPartitionsToTxnRequest" in asked
        assert [each.version for each in ends] == [4 if is_v1 else 5]


async def test_a_refused_record_makes_the_commit_raise(broker: Broker) -> None:
    topic = await a_topic(broker)
    await limit_messages(broker, topic, 1000)
    async with running(broker) as producer:
        async with refused(producer, TransactionAborted, says="MESSAGE_TOO_LARGE") as txn:
            await txn.send(topic, b"before")
            large = await txn.send(topic, b"x" * 2000)
        assert isinstance(large.exception(), BrokerError)
        for n in range(3):
            async with producer.transaction() as txn:
                await txn.send(topic, b"%d" % n)
    assert await committed_values(broker, topic, b"2") == [b"0", b"1", b"2"]


async def test_a_record_that_we_refuse_makes_the_commit_raise_though_it_was_caught(
    broker: Broker,
) -> None:
    topic = await a_topic(broker)
    async with running(broker, max_request_size=1000) as producer:
        async with refused(producer, TransactionAborted) as txn:
            await txn.send(topic, b"before")
            with pytest.raises(RecordTooLarge):
                await txn.send(topic, b"x" * 2000)
        async with producer.transaction() as txn:
            await txn.send(topic, b"0")
    assert await committed_values(broker, topic, b"0") == [b"0"]


def consumer_of(cluster: Cluster, topic: str, **settings: Any) -> Consumer[Any, Any]:
    settings.setdefault("enable_auto_commit", False)
    return cluster.consumer(topic, group=cluster.unique("g"), **settings)


async def test_offsets_of_a_consumer_are_part_of_the_transaction(broker: Broker) -> None:
    source, target = await a_topic(broker, "in"), await a_topic(broker, "out")
    await broker.produce(source, {0: [b"0", b"1", b"2"]})
    async with consumer_of(broker, source) as consumer, running(broker) as producer:
        await consumer.getone()
        async with refused(producer, ZeroDivisionError) as txn:
            await txn.send_offsets(consumer)
            raise ZeroDivisionError
        assert await consumer.committed((source, 0)) is None
        await consumer.getone()
        async with producer.transaction() as txn:
            await txn.send(target, b"0")
            await txn.send_offsets(consumer)
        assert await consumer.committed((source, 0)) == 2
        async with producer.transaction() as txn:
            await txn.send_offsets(consumer, {(source, 0): (3, "said")})
        assert await consumer.committed((source, 0)) == 3
        await producer.begin_transaction()
        await producer.send_offsets_to_transaction(
            {TopicPartition(source, 0): 1}, consumer.group_metadata()
        )
        await producer.commit_transaction()
        assert await consumer.committed((source, 0)) == 1


async def test_partitions_that_are_not_ours_are_refused(broker: Broker) -> None:
    source, target = await a_topic(broker, "in"), await a_topic(broker, "out")
    await broker.produce(source, {0: [b"0"]})
    async with consumer_of(broker, source) as consumer, running(broker) as producer:
        await consumer.getone()
        async with refused(
            producer, TransactionAborted, says="not assigned to this consumer"
        ) as txn:
            await txn.send(target, b"never")
            with pytest.raises(CommitFailed):
                await txn.send_offsets(consumer, {(target, 0): 1})
        consumer.unsubscribe()
        await eventually(lambda: not consumer.assignment())
        async with refused(producer, CommitFailed, says="not assigned to this consumer") as txn:
            await txn.send(target, b"never")
            await txn.send_offsets(consumer, {(source, 0): 1})
        async with producer.transaction() as txn:
            await txn.send(target, b"0")
    assert await committed_values(broker, target, b"0") == [b"0"]


async def test_a_member_that_the_group_does_not_know_cannot_commit(broker: Broker) -> None:
    source, target = await a_topic(broker, "in"), await a_topic(broker, "out")
    await broker.produce(source, {0: [b"0"]})
    async with consumer_of(broker, source) as consumer, running(broker) as producer:
        await consumer.getone()
        stale = consumer.group_metadata()._replace(member_epoch=77)
        async with refused(producer, TransactionAborted) as txn:
            await txn.send(target, b"never")
            with pytest.raises(TransactionAborted):
                await producer.send_offsets_to_transaction({(source, 0): 1}, stale)
        outside = stale._replace(member_epoch=-1, member_id="")
        async with refused(producer, CommitFailed, says="not a member") as txn:
            await producer.send_offsets_to_transaction({(source, 0): 1}, outside)
        async with producer.transaction() as txn:
            await txn.send(target, b"0")
            await txn.send_offsets(consumer)
        assert await consumer.committed((source, 0)) == 1
    assert await committed_values(broker, target, b"0") == [b"0"]


async def test_a_topic_created_again_does_not_get_the_offsets_of_its_forerunner(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where brokers take ids, since Kafka 4.4. By name nobody can tell the two apart."""
    monkeypatch.setattr(_transaction_requests, "GONE_MS", 300)
    source = await a_topic(broker, "in")
    await broker.produce(source, {0: [b"0"]})
    here = TopicPartition(source, 0)
    async with consumer_of(broker, source) as consumer, running(broker) as producer:
        await consumer.getone()
        _, before = consumer.offsets_for_transaction()
        assert before[here].offset == 1
        await broker.delete_topic(source)
        new_id = await broker.create_topic(source, 1)

        async def has_the_new_one() -> bool:
            await consumer.getmany(timeout_ms=20)
            return id_of(consumer, here) == new_id

        await eventually(has_the_new_one)

        class Forerunner:
            def offsets_for_transaction(self, _offsets: Any = None) -> Any:
                return consumer.group_metadata(), before

        if broker.takes_ids:
            async with refused(producer, TransactionAborted, says="UNKNOWN_TOPIC_ID") as txn:
                await txn.send_offsets(Forerunner())
            assert await consumer.committed(here) is None
        else:
            async with producer.transaction() as txn:
                await txn.send_offsets(Forerunner())
            assert await consumer.committed(here) == 1
        async with producer.transaction() as txn:
            await txn.send_offsets(consumer, {here: 0})
        assert await consumer.committed(here) == 0


def id_of(consumer: Consumer[Any, Any], tp: TopicPartition) -> TopicId | None:
    """Of the topic that the consumer has a partition of."""
    if tp not in consumer.assignment():
        return None
    return consumer.offsets_for_transaction({tp: 0})[1][tp].topic_id


def consumer_metadata(group: str, **others: Any) -> GroupMetadata:
    return GroupMetadata(group, 1, "m", None)._replace(**others)


async def test_who_may_not_give_offsets(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    topic = await a_topic(broker)
    group = broker.unique("nobody's")  # the consumer commits to a group of its own, when it likes
    async with (
        running(broker) as producer,
        consumer_of(broker, topic, enable_auto_commit=True) as commits_itself,
    ):
        await producer.begin_transaction()
        with pytest.raises(LocalProtocolError, match="enable_auto_commit=False"):
            await producer.send_offsets_to_transaction(None, commits_itself)
        with pytest.raises(ConfigError, match="say which"):
            await producer.send_offsets_to_transaction(None, group)
        with pytest.raises(ConfigError, match="group is a Consumer"):
            await producer.send_offsets_to_transaction({(topic, 0): 1}, 5)
        wrong: dict[str, Any] = {
            "name of a group has 40000 bytes": "g" * 40_000,
            "name of a group cannot be UTF-8": "\ud800",
            "a group has a name": "",
            "member_id is a str": consumer_metadata(group, member_id=5),
            "member_epoch is an int": consumer_metadata(group, member_epoch=1 << 31),
        }
        for says, who in wrong.items():
            with pytest.raises(ConfigError, match=says):
                await producer.send_offsets_to_transaction({(topic, 0): 1}, who)
        await producer.send_offsets_to_transaction({(topic, 0): 1}, group)
        await producer.send_offsets_to_transaction({(topic, 0): 1}, group)
        assert caplog.text.count("without a member id") == 1, "it is said once a group"
        await producer.commit_transaction()

    async def is_committed() -> bool:  # an answer to EndTxn comes before the markers are written
        return await broker.committed(group, topic) == {0: 1}

    await eventually(is_committed)


async def test_another_producer_takes_the_id_over(broker: Broker) -> None:
    topic = await a_topic(broker)
    async with running(broker) as first:
        await first.begin_transaction()
        await (await first.send(topic, b"never"))
        async with running(broker) as second:
            async with second.transaction() as txn:
                await txn.send(topic, b"0")
            with pytest.raises(ProducerFenced):
                await first.commit_transaction()
            with pytest.raises(ProducerFenced):
                await first.send(topic, b"never")
            with pytest.raises(ProducerFenced):
                await first.begin_transaction()
            async with second.transaction() as txn:
                await txn.send(topic, b"1")
    assert await committed_values(broker, topic, b"1") == [b"0", b"1"]


async def test_a_block_that_is_cancelled_is_aborted_and_the_next_one_waits_for_that(
    broker: Broker,
) -> None:
    topic = await a_topic(broker)
    async with running(broker) as producer:
        for n in range(12):  # another await each time
            task = asyncio.create_task(_one(producer, topic))
            for _ in range(n):
                await asyncio.sleep(0)
            task.cancel()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            async with producer.transaction() as txn:
                await txn.send(topic, b"%d" % n)
    assert await committed_values(broker, topic, b"11") == [b"%d" % n for n in range(12)]


async def _one(producer: Producer[Any, Any], topic: str) -> None:
    async with producer.transaction() as txn:
        for _ in range(3):
            await txn.send(topic, b"never")
            await producer.flush()
        await asyncio.sleep(60)


async def test_a_commit_that_is_cancelled_tells_its_outcome_later(broker: Broker) -> None:
    topic = await a_topic(broker)
    async with running(broker) as producer:
        await producer.begin_transaction()
        await producer.send(topic, b"0")
        task = asyncio.create_task(producer.commit_transaction())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        engine = producer._engine
        assert engine is not None
        await eventually(lambda: engine.core.transaction_state is State.IN_DOUBT)
        with pytest.raises(LocalProtocolError, match="commit"):
            await producer.begin_transaction()
        await producer.commit_transaction()
        async with producer.transaction() as txn:
            await txn.send(topic, b"1")
    assert await committed_values(broker, topic, b"1") == [b"0", b"1"]


async def test_calls_out_of_order(broker: Broker) -> None:
    topic = await a_topic(broker)
    async with running(broker) as producer:
        with pytest.raises(LocalProtocolError, match="begin one first"):
            await producer.send(topic, b"never")
        with pytest.raises(LocalProtocolError):
            await producer.commit_transaction()
        with pytest.raises(LocalProtocolError):
            await producer.abort_transaction()
        block = producer.transaction()
        async with block:
            with pytest.raises(LocalProtocolError, match="open already"):
                await producer.begin_transaction()
            with pytest.raises(LocalProtocolError, match="one transaction"):
                async with block:
                    pass
            await block.send(topic, b"0")
        with pytest.raises(LocalProtocolError, match="within its block"):
            await block.send(topic, b"never")
        async with producer.transaction():
            with pytest.raises(LocalProtocolError, match="within its block"):
                await block.send(topic, b"never")
        with pytest.raises(LocalProtocolError, match="within its block"):
            await block.send_offsets("g", {})
    assert await committed_values(broker, topic, b"0") == [b"0"]


async def test_a_transaction_that_is_open_when_the_producer_stops_is_aborted(
    broker: Broker,
) -> None:
    topic = await a_topic(broker)
    async with running(broker) as producer:
        await producer.begin_transaction()
        await (await producer.send(topic, b"never"))
    async with running(broker, "other") as producer, producer.transaction() as txn:
        await txn.send(topic, b"0")
    assert await committed_values(broker, topic, b"0") == [b"0"]
