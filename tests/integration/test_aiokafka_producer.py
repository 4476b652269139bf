"""``kip848_client.aiokafka.AIOKafkaProducer``: aiokafka's class to its users and its methods."""

from __future__ import annotations

import asyncio
import inspect
import re
from typing import Any

import aiokafka
import pytest
from aiokafka import errors
from aiokafka.producer.transaction_manager import TransactionState
from aiokafka.structs import RecordMetadata, TopicPartition

from kip848_client import Consumer
from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kip848_client.aiokafka.errors import TransactionAbortedError
from kip848_client.core.produce import State
from kip848_client.errors import Kip848Error
from tests.integration.cluster import Cluster, eventually
from tests.integration.reading import committed_values, limit_messages
from tests.integration.test_consumer_records import filled

pytestmark = pytest.mark.asyncio


def made(cluster: Cluster, **settings: Any) -> Any:
    return AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, **settings)


async def test_metadata_is_theirs(cluster: Cluster) -> None:
    topic = await filled(cluster, "sent", 1, 0)
    async with made(cluster) as producer:
        assert isinstance(producer, aiokafka.AIOKafkaProducer)
        partitions = await producer.partitions_for(topic)
        assert partitions.pop() == 0
        assert await producer.partitions_for(topic) == {0}
        told = await producer.send_and_wait(topic, b"a", key=b"k", timestamp_ms=7)
        assert type(told) is RecordMetadata
        assert type(told.topic_partition) is TopicPartition
        assert (told.topic, told.partition, told.offset, told.timestamp) == (topic, 0, 0, 7)
        future = await producer.send(topic, b"b", headers=[("h", b"1"), ("n", None)])
        seen: list[Any] = []
        future.add_done_callback(seen.append)  # ddtrace does so
        await producer.flush()
        assert (await future).offset == 1
        await eventually(lambda: seen == [future])
    async with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as read:
        read.assign([(topic, 0)])
        assert (await read.getone()).key == b"k"
        headers: Any = (await read.getone()).headers
        assert headers == (("h", b"1"), ("n", None))


async def test_what_looks_below_sees_what_is_there(cluster: Cluster) -> None:
    topic, tid = await filled(cluster, "looked", 2, 0), cluster.unique("tid")
    producer = made(cluster, transactional_id=tid)
    assert producer._sender._acks == -1
    before = producer._sender.sender_task
    assert before is None
    state = producer._txn_manager
    assert (state.producer_id, state.producer_epoch) == (-1, -1)
    assert state.state is TransactionState.UNINITIALIZED
    async with producer:
        assert not producer._sender.sender_task.done()
        assert state.state is TransactionState.READY
        mine = state.producer_id, state.producer_epoch
        assert mine[0] >= 0
        assert await producer.partitions_for(topic) == {0, 1}
        assert producer._metadata.leader_for_partition(TopicPartition(topic, 1)) is not None
        await producer.begin_transaction()
        assert state.state is TransactionState.IN_TRANSACTION
        await producer.send(topic, b"1")
        ending = asyncio.create_task(producer.commit_transaction())
        for _ in range(2):
            await asyncio.sleep(0)
        assert state.state is TransactionState.COMMITTING_TRANSACTION
        ending.cancel()  # the commit goes on
        await eventually(lambda: state.state is TransactionState.READY)
    assert producer._sender.sender_task.done()
    async with made(cluster, transactional_id=tid) as again:
        other = again._txn_manager
        assert other.producer_id == mine[0]
        assert other.producer_epoch > mine[1]
    async with made(cluster, acks=0) as silent:
        assert silent._sender._acks == 0
        assert silent._txn_manager is None


async def test_errors_of_records_are_theirs(cluster: Cluster) -> None:
    topic = await filled(cluster, "small", 1, 0)
    await limit_messages(cluster, topic, 500)
    async with made(cluster) as producer:
        futures = [await producer.send(topic, b"x" * 1_000, partition=0) for _ in range(2)]
        for future in futures:
            with pytest.raises(errors.MessageSizeTooLargeError) as refused:
                await future
            assert isinstance(refused.value.__cause__, Kip848Error)
        dropped = await producer.send(topic, b"y", partition=0)
        dropped.cancel()
        assert (await producer.send_and_wait(topic, b"z", partition=0)).offset >= 0


async def test_nobody_acknowledges(cluster: Cluster) -> None:
    topic = await filled(cluster, "silent", 1, 0)
    async with made(cluster, acks=0) as producer:
        assert await producer.send_and_wait(topic, b"a") is None


async def test_who_wraps_send_sees_each_call(cluster: Cluster) -> None:
    topic = await filled(cluster, "wrapped", 1, 0)
    before = aiokafka.AIOKafkaProducer.send
    topics: list[str] = []

    async def send(self: Any, topic: str, *arguments: Any, **named: Any) -> Any:
        topics.append(topic)
        return await before(self, topic, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aiokafka.AIOKafkaProducer, "send", send)
        async with made(cluster) as producer:
            await producer.send(topic, b"1")
            await producer.send_and_wait(topic, b"2")
    assert topics == [topic, topic]


async def test_keys_go_where_they_went(cluster: Cluster) -> None:
    topic = await filled(cluster, "keys", 7, 0)
    keys = [b"key-%d" % number for number in range(30)]

    async def where(producer: Any) -> list[int]:
        return [(await producer.send_and_wait(topic, b"v", key=each)).partition for each in keys]

    async with made(cluster) as ours, cluster.producer() as theirs:
        assert await where(ours) == await where(theirs)
    places: list[tuple[Any, ...]] = []

    def last(key: bytes | None, every: list[int], led: list[int]) -> int:
        places.append((key, every, led))
        return every[-1]

    async with made(cluster, partitioner=last, key_serializer=str.encode) as producer:
        assert (await producer.send_and_wait(topic, b"v", key="k")).partition == 6
        assert places == [(b"k", [*range(7)], [*range(7)])]
        with pytest.raises(AssertionError, match="Unrecognized"):
            await producer.send(topic, b"v", key="k", partition=7)


async def test_batches_of_the_application(cluster: Cluster) -> None:
    topic = await filled(cluster, "batches", 2, 1)
    async with made(cluster, max_batch_size=300, value_serializer=str.encode) as producer:
        batch = producer.create_batch()
        count = 0
        while batch.append(key=None, value="x" * 20, timestamp=5 + count, headers=[("n", b"")]):
            count += 1
        assert count == batch.record_count() > 3
        assert batch.size() <= 300
        told = await (await producer.send_batch(batch, topic, partition=1))
        assert (told.partition, told.offset) == (1, 1)
        with pytest.raises(ValueError, match="create_batch"):
            await producer.send_batch(producer.create_batch(), topic, partition=1)
    tp = TopicPartition(topic, 1)
    async with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as read:
        read.assign([tp])
        read.seek(tp, 1)
        found = [await read.getone() for _ in range(count)]
        assert [each.timestamp for each in found] == [*range(5, 5 + count)]
        assert {each.value for each in found} == {b"x" * 20}


async def test_wrong_records_raise_their_errors(cluster: Cluster) -> None:
    topic = await filled(cluster, "wrong", 1, 0)
    producer = made(cluster, max_request_size=1_000, request_timeout_ms=1_000)
    with pytest.raises(errors.IllegalOperation, match="not started"):
        await producer.send(topic, b"early")
    async with producer:
        with pytest.raises(errors.MessageSizeTooLargeError):
            await producer.send(topic, b"x" * 1_001)
        with pytest.raises(TypeError, match="bytes"):
            await producer.send(topic, "text")
        with pytest.raises(AssertionError, match="key or value"):
            await producer.send(topic)
        with pytest.raises(errors.IllegalOperation, match="transaction"):
            await producer.begin_transaction()
    with pytest.raises(errors.ProducerClosed):
        await producer.send(topic, b"late")
    await producer.stop()


async def test_no_broker_answers() -> None:
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1", api_version="auto")
    with pytest.raises(errors.KafkaConnectionError, match=r"127\.0\.0\.1:1"):
        await producer.start()
    await producer.stop()


test_no_broker_answers = pytest.mark.filterwarnings("ignore:The `api_version`")(
    test_no_broker_answers
)


PLAIN = (1, False, 1)


@pytest.mark.parametrize(
    ("given", "acks", "idempotent", "in_flight"),
    [
        ({}, *PLAIN),
        ({"acks": inspect.signature(aiokafka.AIOKafkaProducer).parameters["acks"].default}, *PLAIN),
        ({"acks": 0}, 0, False, 1),
        ({"acks": "all"}, -1, False, 1),
        ({"enable_idempotence": True}, -1, True, 5),
        ({"transactional_id": "t"}, -1, True, 5),
        ({"max_in_flight_requests_per_connection": 3}, 1, False, 3),
    ],
)
async def test_their_defaults_stay(
    given: dict[str, Any], acks: int, in_flight: int, *, idempotent: bool
) -> None:
    producer = AIOKafkaProducer(**given)
    config = producer._inner.config
    assert (config.acks, config.idempotent) == (acks, idempotent)
    assert config.max_in_flight_requests_per_connection == in_flight
    assert (config.linger_ms, config.request_timeout_ms) == (0, 40_000)
    assert (config.deliver_within_ms, config.max_block_ms) == (40_000, 40_000)
    assert config.client_id == producer.client._client_id
    await producer.stop()


async def test_wrong_settings_are_refused() -> None:
    for wrong in (
        {"acks": 2},
        {"compression_type": "rar"},
        {"enable_idempotence": True, "acks": 1},
    ):
        with pytest.raises(ValueError, match=r"must|acks|ACKS|compression"):
            AIOKafkaProducer(**wrong)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'linger'.*'linger_ms'"):
        AIOKafkaProducer(linger=3)


async def test_the_end_is_theirs(cluster: Cluster) -> None:
    topic = cluster.unique("end")
    await cluster.create_topic(topic, 1)
    producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=60_000)
    await producer.start()
    sent = await producer.send(topic, b"1")
    stopping = asyncio.create_task(producer.stop())
    await asyncio.sleep(0)
    await producer.flush()
    assert sent.done(), "it waits for what the stop sends"
    await stopping
    await producer.flush()
    assert (await sent).offset == 0


# -- transactions --------------------------------------------------------------------------------


async def test_transactions_are_theirs(cluster: Cluster) -> None:
    topic = await filled(cluster, "transactions", 1, 0)
    async with made(cluster, transactional_id=cluster.unique("tid")) as producer:
        with pytest.raises(errors.IllegalOperation):
            await producer.send(topic, b"outside")
        with pytest.raises(errors.IllegalOperation):
            await producer.commit_transaction()
        async with producer.transaction():
            assert producer._txn_manager.is_in_transaction()
            await producer.send(topic, b"1")
        with pytest.raises(TypeError, match="bytes"):
            await _two_of_which_one_is_wrong(producer, topic)
        await producer.begin_transaction()
        with pytest.raises(errors.IllegalOperation):
            await producer.begin_transaction()
        await producer.send(topic, b"3")
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_and_wait(topic, b"4")
    assert await committed_values(cluster, topic, b"4") == [b"1", b"4"]


async def _two_of_which_one_is_wrong(producer: Any, topic: str) -> None:
    async with producer.transaction():
        await producer.send(topic, b"2")
        await producer.send(topic, 2)


async def test_a_refused_record_cannot_be_committed(cluster: Cluster) -> None:
    topic = await filled(cluster, "refused", 1, 0)
    await limit_messages(cluster, topic, 500)
    async with made(cluster, transactional_id=cluster.unique("tid")) as producer:
        await producer.begin_transaction()
        future = await producer.send(topic, b"x" * 1_000)
        with pytest.raises(errors.MessageSizeTooLargeError):
            await future
        with pytest.raises(errors.KafkaError, match="MESSAGE_TOO_LARGE"):
            await producer.send(topic, b"y")
        with pytest.raises(TransactionAbortedError) as refused:
            await producer.commit_transaction()
        assert isinstance(refused.value.cause, errors.MessageSizeTooLargeError)
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send(topic, b"z")
    assert await committed_values(cluster, topic, b"z") == [b"z"]


async def test_a_successor_fences(cluster: Cluster) -> None:
    topic, tid = await filled(cluster, "fenced", 1, 0), cluster.unique("tid")
    async with made(cluster, transactional_id=tid) as first:
        await first.begin_transaction()
        await first.send_and_wait(topic, b"1")
        async with made(cluster, transactional_id=tid) as second:
            await first.send(topic, b"2")
            with pytest.raises(errors.ProducerFenced):
                await first.commit_transaction()
            assert first._txn_manager.is_fatal_error()
            async with second.transaction():
                await second.send(topic, b"3")
    assert await committed_values(cluster, topic, b"3") == [b"3"]


def reading(cluster: Cluster, topic: str, group: str, **settings: Any) -> Any:
    return AIOKafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        fetch_max_wait_ms=100,
        **settings,
    )


@pytest.mark.parametrize("by", ["name", "consumer", "metadata"])
async def test_offsets_go_with_the_transaction(
    cluster: Cluster, by: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group = await filled(cluster, "offsets", 1, 5), cluster.unique(f"offsets-{by}")
    tp = TopicPartition(topic, 0)
    async with (
        reading(cluster, topic, group) as consumer,
        made(cluster, transactional_id=cluster.unique(f"tid-{by}")) as producer,
    ):
        await consumer.getmany(timeout_ms=5_000, max_records=3)
        named = {"name": group, "consumer": consumer, "metadata": consumer.group_metadata()}[by]
        async with producer.transaction():
            await producer.send_offsets_to_transaction({tp: 3}, named)
        assert await consumer.committed(tp) == 3
        with pytest.raises(errors.IllegalOperation, match="middle"):
            await producer.send_offsets_to_transaction({tp: 3}, named)
        await producer.begin_transaction()
        for wrong in (None, {}, {tp: (3, 4, 5)}):
            with pytest.raises(ValueError, match=re.escape(str(wrong))):
                await producer.send_offsets_to_transaction(wrong, group)
        with pytest.raises(TypeError, match="TopicPartition"):
            await producer.send_offsets_to_transaction({(topic, 0): 3}, group)
        with pytest.raises(ValueError, match="None"):
            await producer.send_offsets_to_transaction({tp: 3}, None)
    assert "without a member id" not in caplog.text


async def test_a_group_that_nobody_here_reads_for_is_taken_by_its_name(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group = await filled(cluster, "nobody", 1, 5), cluster.unique("nobody")
    producer = made(cluster, transactional_id=cluster.unique("tid"))
    async with producer, producer.transaction():
        await producer.send_offsets_to_transaction({TopicPartition(topic, 0): 3}, group)

    async def is_stored() -> bool:  # the markers of a transaction come a little later
        return await cluster.committed(group, topic) == {0: 3}

    await eventually(is_stored)
    assert "without a member id" in caplog.text


async def test_who_lost_a_partition_commits_nothing_for_it(cluster: Cluster) -> None:
    topic, group = await filled(cluster, "zombie", 2, 5), cluster.unique("zombie")
    await cluster.create_topic(f"{topic}-out", 1)
    async with (
        reading(cluster, topic, group) as first,
        made(cluster, transactional_id=cluster.unique("tid")) as producer,
    ):
        await cluster.fast_group(group)
        polling = asyncio.create_task(_read(first, 11))  # one more than there are
        offsets = {TopicPartition(topic, number): 5 for number in range(2)}
        await eventually(lambda: {first.inner.position_now(tp) for tp in offsets} == {5})
        await producer.begin_transaction()
        await producer.send(f"{topic}-out", b"of a zombie")
        async with reading(cluster, topic, group) as second:
            await eventually(lambda: len(first.assignment()) == len(second.assignment()) == 1)
            with pytest.raises(errors.CommitFailedError, match="already rebalanced"):
                await producer.send_offsets_to_transaction(offsets, group)
            with pytest.raises(TransactionAbortedError):
                await producer.commit_transaction()
            await producer.abort_transaction()
            assert producer._inner.transaction_state is State.READY
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
    assert await cluster.committed(group, topic) == {}


async def _read(consumer: Any, count: int) -> list[Any]:
    return [await consumer.getone() for _ in range(count)]
