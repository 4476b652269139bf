"""``kip848_client.aiokafka.AIOKafkaConsumer``: aiokafka's class to its users and its methods."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiokafka
import pytest
from aiokafka import errors
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.structs import ConsumerRecord, OffsetAndMetadata, TopicPartition

from kip848_client.aiokafka import AIOKafkaConsumer, _adapters, _settings
from kip848_client.aiokafka.errors import UnsupportedAssignorError
from tests.integration.aiokafka_consumers import Listener, made, take
from tests.integration.cluster import Cluster, eventually
from tests.integration.test_consumer_records import filled

pytestmark = pytest.mark.asyncio


async def test_records_are_theirs(cluster: Cluster) -> None:
    topic, group = await filled(cluster, "theirs", 2, 10), cluster.unique("theirs")
    async with made(cluster, topic, group=group) as consumer:
        assert issubclass(type(consumer), aiokafka.AIOKafkaConsumer)
        assert consumer.assignment() == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
        assert all(type(tp) is TopicPartition for tp in consumer.assignment())
        assert consumer.subscription() == {topic}
        first: Any = await consumer.getone()
        assert type(first) is ConsumerRecord
        assert first.value == b"%d-0" % first.partition
        setattr(first, "consumer", consumer)  # noqa: B010 - as FastStream does
        many = await consumer.getmany(timeout_ms=5_000, max_records=5)
        assert all(type(tp) is TopicPartition for tp in many)
        assert all(type(each) is ConsumerRecord for found in many.values() for each in found)
        count = 1 + sum(map(len, many.values()))
        async for record in consumer:
            assert type(record) is ConsumerRecord
            count += 1
            if count == 20:
                break
        assert consumer._coordinator.member_id == consumer.member.member_id
        assert consumer._coordinator.generation == consumer.member.member_epoch
    assert consumer._closed
    assert await cluster.committed(group, topic) == {0: 10, 1: 10}


async def test_the_start_waits_for_partitions_that_others_give_up(cluster: Cluster) -> None:
    topic, group = await filled(cluster, "given", 2, 0), cluster.unique("given")
    await cluster.fast_group(group)
    async with made(cluster, topic, group=group) as first:
        polling = asyncio.create_task(take(first, 1))
        async with made(cluster, topic, group=group) as second:
            assert len(second.assignment()) == 1
            assert set(await second.seek_to_committed()) == second.assignment()
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that finds nothing to read does not wait long for it."""
    monkeypatch.setattr(_adapters, "_PATIENCE_S", 0.3)
    monkeypatch.setattr(_adapters, "_INTERVALS", 0.0)


@pytest.mark.usefixtures("impatient")
async def test_the_start_does_not_wait_for_ever_for_nothing(cluster: Cluster) -> None:
    topic, group = await filled(cluster, "waits", 1, 1), cluster.unique("waits")
    async with made(cluster, topic, group=group) as first:
        assert first.assignment() == {TopicPartition(topic, 0)}
        async with asyncio.timeout(20), made(cluster, topic, group=group) as second:
            assert second.assignment() == set()
            with pytest.raises(AssertionError, match="No partitions"):
                await second.seek_to_end()
            assert second.member is not None


@asynccontextmanager
async def counting(*names: str) -> AsyncGenerator[dict[str, int]]:
    """Their methods are wrapped, as instrumentation wraps them."""
    calls = dict.fromkeys(names, 0)

    def wrapped(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*arguments: Any, **named: Any) -> Any:
            calls[name] += 1
            return await method(*arguments, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            before = getattr(aiokafka.AIOKafkaConsumer, name)
            patch.setattr(aiokafka.AIOKafkaConsumer, name, wrapped(name, before))
        yield calls


async def test_who_wraps_their_methods_sees_each_call(cluster: Cluster) -> None:
    topic = await filled(cluster, "wrapped", 1, 5)
    names = ("getone", "getmany", "commit", "__anext__")
    consumer = made(cluster, topic, group=cluster.unique("wrapped"))
    async with counting(*names) as calls, consumer:
        await consumer.getone()
        async for record in consumer:
            if record.offset == 3:
                break
        await consumer.getmany(timeout_ms=5_000)
        await consumer.commit()
    assert calls == {"getone": 4, "getmany": 1, "commit": 1, "__anext__": 3}


async def test_commits_are_theirs(cluster: Cluster) -> None:
    topic, group = await filled(cluster, "commits", 1, 5), cluster.unique("commits")
    tp = TopicPartition(topic, 0)
    async with made(cluster, topic, group=group, enable_auto_commit=False) as consumer:
        assert await consumer.committed(tp) is None
        await take(consumer, 3)
        await consumer.commit()
        assert await consumer.committed(tp) == 3
        await consumer.commit({tp: 2})
        assert await consumer.committed(tp) == 2
        await consumer.commit({tp: OffsetAndMetadata(1, "one")})
        assert await consumer.seek_to_committed(tp) == {tp: 1}
        assert await consumer.position(tp) == 1
        with pytest.raises(errors.IllegalStateError, match="not assigned"):
            await consumer.commit({TopicPartition("never-ours", 0): 1})
        with pytest.raises(ValueError, match=r"\{\}"):
            await consumer.commit({})
        consumer.unsubscribe()
        with pytest.raises(errors.IllegalStateError, match="Not subscribed"):
            await consumer.commit()
        consumer.subscribe([topic])
        with pytest.raises(errors.IllegalStateError, match="No partitions assigned"):
            await consumer.commit({tp: 1})
    async with made(cluster, topic, group=None) as alone:
        with pytest.raises(errors.IllegalOperation):
            await alone.commit()
        with pytest.raises(errors.IllegalOperation):
            await alone.committed(tp)


async def test_a_partition_that_went_away_cannot_be_committed(cluster: Cluster) -> None:
    topic, group = await filled(cluster, "lost", 2, 5), cluster.unique("lost")
    async with made(cluster, topic, group=group, enable_auto_commit=False) as first:
        await cluster.fast_group(group)
        offsets = {TopicPartition(topic, n): 5 for n in range(2)}
        polling = asyncio.create_task(take(first, 11))  # one more than there are
        await eventually(lambda: {first._inner.position_now(tp) for tp in offsets} == {5})
        async with made(cluster, topic, group=group, enable_auto_commit=False) as second:
            await eventually(lambda: len(first.assignment()) == len(second.assignment()) == 1)
            with pytest.raises(errors.CommitFailedError, match="already rebalanced") as failed:
                await first.commit(offsets)
            refused: Any = failed.value
            assert set(refused.offsets) == second.assignment()
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)


async def test_positions_are_theirs(cluster: Cluster) -> None:
    topic = await filled(cluster, "places", 1, 10)
    tp, other = TopicPartition(topic, 0), TopicPartition(topic, 7)
    async with made(cluster, topic, group=cluster.unique("places")) as consumer:
        consumer.seek(tp, 4)
        record = await consumer.getone(tp)
        assert (record.offset, await consumer.position(tp)) == (4, 5)
        assert consumer.highwater(tp) == consumer.last_stable_offset(tp) == 10
        assert consumer.last_poll_timestamp(tp) > 0
        assert await consumer.seek_to_end(tp)
        assert await consumer.position(tp) == 10
        assert await consumer.seek_to_beginning()
        assert await consumer.position(tp) == 0
        assert await consumer.beginning_offsets([tp]) == {tp: 0}
        assert await consumer.end_offsets([tp]) == {tp: 10}
        found = await consumer.offsets_for_times({tp: 0})
        assert (type(found[tp]).__module__, found[tp].offset) == ("aiokafka.structs", 0)
        assert topic in await consumer.topics()
        assert consumer.partitions_for_topic(topic) == {0}
        consumer.pause(tp)
        assert consumer.paused() == {tp}
        assert await consumer.getmany(timeout_ms=50) == {}
        consumer.resume(tp)
        assert consumer.paused() == set()
        for call in (
            consumer.position,
            consumer.seek_to_end,
            consumer.seek_to_committed,
            consumer.getone,
        ):
            with pytest.raises(errors.IllegalStateError):
                await call(other)
        with pytest.raises(errors.IllegalStateError):
            consumer.seek(other, 1)
        with pytest.raises(ValueError, match="positive integer"):
            consumer.seek(tp, -1)
        with pytest.raises(TypeError):
            await consumer.seek_to_end((topic, 0))


async def test_the_end_is_theirs(cluster: Cluster) -> None:
    topic = await filled(cluster, "end", 1, 1)
    consumer = made(cluster, topic, group=cluster.unique("end"))
    with pytest.raises(errors.IllegalStateError, match="not started"):
        await consumer.getone()
    await consumer.start()
    with pytest.raises(AssertionError, match="twice"):
        await consumer.start()
    await take(consumer, 1)
    waiting = [
        asyncio.create_task(consumer.getone()),
        asyncio.create_task(consumer.getmany(timeout_ms=60_000)),
        asyncio.create_task(consumer.__anext__()),
    ]
    await asyncio.sleep(0.05)
    async with asyncio.timeout(10):
        await consumer.stop()
        await asyncio.wait(waiting)
    assert isinstance(waiting[0].exception(), errors.ConsumerStoppedError)
    assert waiting[1].result() == {}
    assert isinstance(waiting[2].exception(), StopAsyncIteration)
    for call in (consumer.getone, consumer.getmany):
        with pytest.raises(errors.ConsumerStoppedError):
            await call()
    await consumer.stop()
    consumer.unsubscribe()  # kstreams and eventiq do so after the stop


@pytest.mark.parametrize("way", ["topics", "pattern", "by hand", "without a group"])
async def test_nothing_is_assigned_right_after_unsubscribe(cluster: Cluster, way: str) -> None:
    topic = await filled(cluster, "left", 2, 1)
    group = None if way == "without a group" else cluster.unique("left")
    consumer = made(cluster, group=group)
    tps = {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    subscribe: Callable[[], Any] = {
        "topics": lambda: consumer.subscribe([topic]),
        "pattern": lambda: consumer.subscribe(pattern=topic),
        "by hand": lambda: consumer.assign([*tps]),
        "without a group": lambda: consumer.subscribe([topic]),
    }[way]
    subscribe()
    await consumer.start()
    await take(consumer, 2)
    assert consumer.assignment() == tps
    for _ in range(2):
        consumer.unsubscribe()
        assert consumer.assignment() == set()
        with pytest.raises(errors.IllegalStateError):
            await consumer.seek_to_beginning(*tps)
        subscribe()
        if way == "topics":
            assert consumer.assignment() == set(), "the group has assigned nothing yet"
        await eventually(lambda: _has(consumer, tps))
    await consumer.stop()


async def _has(consumer: AIOKafkaConsumer, tps: set[TopicPartition]) -> bool:
    return bool(consumer.assignment() == tps)


async def test_who_calls_stop_is_done_whatever_task_awaits_it(cluster: Cluster) -> None:
    """``gather`` and, in Python 3.11, ``wait_for`` make a task of it."""
    topic, group = await filled(cluster, "gathered", 1, 2), cluster.unique("gathered")
    consumer = made(cluster, topic, group=group)
    await consumer.start()
    await take(consumer, 1)
    async with asyncio.timeout(10):
        await asyncio.gather(consumer.stop(), consumer.stop())
    assert await cluster.committed(group, topic) == {0: 1}


async def test_what_ends_the_membership_is_raised_by_the_start(cluster: Cluster) -> None:
    topic, group = await filled(cluster, "refused", 1, 0), cluster.unique("refused")
    consumer = made(cluster, topic, group=group, group_remote_assignor="nonsense")
    async with asyncio.timeout(20):
        with pytest.raises(UnsupportedAssignorError, match="nonsense"):
            await consumer.start()
    assert consumer._closed
    await consumer.stop()


async def test_no_broker_answers() -> None:
    consumer = AIOKafkaConsumer("t", bootstrap_servers="127.0.0.1:1", group_id="g")
    with pytest.raises(errors.KafkaConnectionError, match=r"127\.0\.0\.1:1"):
        await consumer.start()
    assert consumer._closed


async def test_without_a_group_all_partitions_are_read(cluster: Cluster) -> None:
    topic = await filled(cluster, "whole", 2, 3)
    async with made(cluster, topic, group=None, metadata_max_age_ms=300) as consumer:
        assert consumer.assignment() == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
        assert len(await take(consumer, 6)) == 6
        await cluster.grow_topic(topic, 3)
        await eventually(lambda: len(consumer.assignment()) == 3)
        await cluster.produce(topic, {2: [b"new"]})
        assert [each.value for each in await take(consumer, 1)] == [b"new"]
        with pytest.raises(errors.IllegalStateError):
            consumer.assign([TopicPartition(topic, 0)])
        consumer.unsubscribe()
        assert consumer.assignment() == set()
        consumer.assign([TopicPartition(topic, 2)])
        assert consumer.assignment() == {TopicPartition(topic, 2)}
        with pytest.raises(errors.IllegalStateError):
            consumer.subscribe([topic])


@pytest.mark.parametrize("grouped", [True, False], ids=["group", "alone"])
async def test_a_pattern_is_matched_at_the_beginning(cluster: Cluster, *, grouped: bool) -> None:
    topic = await filled(cluster, "Pattern-one", 1, 2)
    consumer = made(cluster, group=cluster.unique("pattern") if grouped else None)
    consumer.subscribe(pattern=re.compile(topic.lower()[:-2], re.IGNORECASE))
    async with consumer:
        found = await take(consumer, 2)
        assert {each.topic for each in found} == {topic}
        assert topic in consumer.subscription()


@pytest.mark.parametrize("grouped", [True, False], ids=["group", "alone"])
async def test_a_pattern_is_pythons(cluster: Cluster, *, grouped: bool) -> None:
    """RE2 has no look-arounds."""
    read = await filled(cluster, "look-here", 1, 2)
    skipped = await filled(cluster, "look-away", 1, 2)
    ours = skipped.removeprefix("look-away")
    consumer = made(cluster, group=cluster.unique("look") if grouped else None)
    consumer.subscribe(pattern=f"look-(?!away).*{ours}")
    async with consumer:
        found = await take(consumer, 2)
        assert {each.topic for each in found} == {read}
        assert consumer.subscription() == {read}


@pytest.mark.usefixtures("impatient")
async def test_a_pattern_finds_new_topics_and_forgets_old_ones(cluster: Cluster) -> None:
    listener = Listener()
    consumer = made(cluster, group=cluster.unique("found"), metadata_max_age_ms=100)
    consumer.subscribe(pattern=cluster.unique("found-(one|two)"), listener=listener)
    async with consumer:
        assert consumer.subscription() == set()
        with pytest.raises(errors.IllegalStateError):
            consumer.assign([TopicPartition("t", 0)])
        taking = asyncio.create_task(take(consumer, 2))
        one = await filled(cluster, "found-one", 1, 1)
        two = await filled(cluster, "found-two", 1, 1)
        assert {each.topic for each in await taking} == {one, two}
        assert consumer.subscription() == {one, two}
        await cluster.delete_topic(one)
        await eventually(lambda: consumer.subscription() == {two})
        await cluster.delete_topic(two)
        await eventually(lambda: consumer.subscription() == set())
        consumer.unsubscribe()
        consumer.assign([TopicPartition("t", 0)])
    came = [called for name, called in listener.calls if name == "assigned"]
    assert set[Any]().union(*came) == {(one, 0), (two, 0)}
    assert [called for name, called in listener.calls if name == "revoked"] == [set(), *came]


@pytest.mark.parametrize("grouped", [True, False], ids=["group", "alone"])
@pytest.mark.parametrize("excluded", [True, False])
async def test_a_pattern_and_internal_topics(
    cluster: Cluster, *, grouped: bool, excluded: bool
) -> None:
    topic, group = await filled(cluster, "internal", 1, 1), cluster.unique("internal")
    async with made(cluster, topic, group=group):
        pass  # or a broker has no internal topic yet
    consumer = made(
        cluster,
        group=cluster.unique("internal") if grouped else None,
        exclude_internal_topics=excluded,
    )
    consumer.subscribe(pattern=f"__consumer_offsets|{topic}")
    async with consumer:
        assert consumer.subscription() - {topic} == (set() if excluded else {"__consumer_offsets"})


async def test_what_cannot_be_subscribed_to(cluster: Cluster) -> None:
    consumer = made(cluster, group="g")
    with pytest.raises(ValueError, match="pattern"):
        consumer.subscribe(pattern="(")
    consumer.assign([TopicPartition("t", 0)])
    with pytest.raises(errors.IllegalStateError):
        consumer.subscribe(pattern="t")
    consumer.unsubscribe()
    with pytest.raises(TypeError):
        consumer.subscribe(["t"], pattern="t")
    with pytest.raises(TypeError):
        consumer.subscribe("t")
    with pytest.raises(TypeError, match="listener"):
        consumer.subscribe(["t"], listener=object())
    await consumer.stop()


@pytest.mark.parametrize("grouped", [True, False], ids=["group", "alone"])
async def test_partitions_that_are_still_to_come_are_waited_for(
    cluster: Cluster, *, grouped: bool
) -> None:
    one, two = await filled(cluster, "first", 1, 3), await filled(cluster, "second", 1, 3)
    tp = TopicPartition(two, 0)
    async with made(cluster, one, group=cluster.unique("come") if grouped else None) as consumer:
        await consumer.getone()
        consumer.subscribe([two])
        assert await consumer.getmany(tp, timeout_ms=0) == {}
        async with asyncio.timeout(20):
            assert (await consumer.getone(tp)).value == b"0-0"
            never = cluster.unique("never")
            consumer.subscribe([one, two, never])
            assert await consumer.getmany(tp, timeout_ms=10_000)
            waiting = asyncio.create_task(consumer.getone(TopicPartition(never, 0)))
        with pytest.raises(errors.IllegalStateError):
            await consumer.getone(TopicPartition("another", 0))
        await asyncio.sleep(0)
        await consumer.stop()
        with pytest.raises(errors.ConsumerStoppedError):
            await waiting


async def test_what_is_buffered_can_be_seen(cluster: Cluster) -> None:
    topic, other = await filled(cluster, "buffered", 1, 3), await filled(cluster, "other", 1, 1)
    tp = TopicPartition(topic, 0)
    async with made(cluster, topic, group=cluster.unique("buffered")) as consumer:
        first = await consumer.getone()
        buffered = consumer._fetcher._records[tp]
        assert buffered.size_bytes > 0
        assert buffered.has_more()
        consumer.subscribe([other])
        assert tp not in consumer._fetcher._records
        consumer.subscribe([topic])
        consumer.seek(tp, first.offset) if tp in consumer.assignment() else None
        async with asyncio.timeout(20):
            while (await consumer.getone(tp)).offset < 2:
                assert tp in consumer._fetcher._records
        assert tp not in consumer._fetcher._records


async def test_the_coordinator_shows_what_was_asked_for() -> None:
    given = {
        "session_timeout_ms": 12_345,
        "heartbeat_interval_ms": 3_456,
        "retry_backoff_ms": 567,
        "auto_commit_interval_ms": 6_789,
        "exclude_internal_topics": False,
        "enable_auto_commit": False,
    }
    consumer = lone("t", **given)
    assert {name: getattr(consumer._coordinator, f"_{name}") for name in given} == given
    await consumer.stop()


async def test_the_client_is_alive(cluster: Cluster) -> None:
    topic = await filled(cluster, "alive", 1, 1)
    consumer = made(cluster, topic, group=cluster.unique("alive"))
    client = consumer._client
    client.some_attribute = 1  # ddtrace keeps the cluster's id there
    assert client._bootstrap_servers == cluster.bootstrap
    assert client.get_random_node() is None
    assert await client.force_metadata_update() is False
    async with asyncio.timeout(20), consumer:
        node = client.get_random_node()
        answer = await client.send(node, MetadataRequest([topic]))
        assert answer.cluster_id
        assert await client.force_metadata_update()
        assert client.cluster.partitions_for_topic(topic) == {0}
        assert await client.add_topic(topic)
        with pytest.raises(errors.NodeNotReadyError):
            await client.send(4711, MetadataRequest([topic]))
    assert await client.force_metadata_update() is False
    with pytest.raises(errors.KafkaError):
        await client.fetch_all_metadata()


async def test_what_a_deserializer_raises_comes_out_as_it_is(cluster: Cluster) -> None:
    topic = await filled(cluster, "deserialized", 1, 2)

    def read(value: bytes) -> str:
        if value == b"0-0":
            raise KeyError("unknown")
        return value.decode()

    group = cluster.unique("deserialized")
    async with made(cluster, topic, group=group, value_deserializer=read) as consumer:
        for _ in range(2):
            with pytest.raises(KeyError, match="unknown"):
                await take(consumer, 1)
        consumer.seek(TopicPartition(topic, 0), 1)
        assert [each.value for each in await take(consumer, 1)] == ["0-1"]


async def test_no_offset_and_no_policy(cluster: Cluster) -> None:
    topic = await filled(cluster, "policy", 1, 2)
    group = cluster.unique("policy")
    async with made(cluster, topic, group=group, auto_offset_reset="none") as consumer:
        with pytest.raises(errors.NoOffsetForPartitionError):
            await take(consumer, 1)
        consumer.seek(TopicPartition(topic, 0), 99)
        with pytest.raises(errors.OffsetOutOfRangeError):
            await take(consumer, 1)


def lone(*topics: str, **settings: Any) -> Any:
    return AIOKafkaConsumer(*topics, bootstrap_servers="127.0.0.1:1", group_id="g", **settings)


@pytest.mark.parametrize("name", ["key_deserializer", "value_deserializer"])
async def test_a_deserializer_that_aiokafka_would_not_await(name: str) -> None:
    with pytest.raises(ValueError, match="deserializers are not awaited"):
        lone("t", **{name: asyncio.sleep})


async def test_settings_of_the_classic_protocol(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_settings, "_told", set())
    caplog.set_level(logging.INFO, "kip848_client")
    wish = {
        "session_timeout_ms": 10_000,
        "heartbeat_interval_ms": 1_234,
        "exclude_internal_topics": False,
    }
    for _ in range(2):
        await lone("t", **wish).stop()
    assert [each.levelname for each in caplog.records] == ["INFO", "WARNING"]
    silent, warning = (each.getMessage() for each in caplog.records)
    assert "exclude_internal_topics" not in silent + warning
    assert "session_timeout_ms" in silent
    assert "group.consumer.heartbeat.interval.ms" in warning
    assert "session_timeout_ms" not in warning


async def test_strict_refuses_what_has_no_meaning() -> None:
    with pytest.raises(ValueError, match=r"group\.consumer\.heartbeat\.interval\.ms"):
        lone("t", strict=True, heartbeat_interval_ms=1_234)
    # frameworks pass every setting: aiokafka's default is no wish
    await lone("t", strict=True, session_timeout_ms=10_000, loop=None).stop()


async def test_wrong_settings_are_refused() -> None:
    with pytest.raises(TypeError, match=r"'group_remote_asignor'.*'group_remote_assignor'"):
        lone("t", group_remote_asignor="range")
    with pytest.raises(ValueError, match="max_poll_records"):
        lone("t", max_poll_records=0)


async def test_a_short_time_for_rebalances_throws_nobody_out() -> None:
    consumer = lone("t", rebalance_timeout_ms=1_000, max_poll_interval_ms=60_000)
    assert consumer._inner.config.poll_interval_ms == 60_000
    await consumer.stop()
