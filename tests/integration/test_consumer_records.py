"""Records, positions and offsets of one consumer."""

from __future__ import annotations

import asyncio

import pytest

from kip848_client import (
    CommitFailed,
    Consumer,
    ConsumerClosed,
    LocalProtocolError,
    NoOffsetForPartition,
    NotAssigned,
    OffsetAndMetadata,
    OffsetOutOfRange,
    RecordUnreadable,
    TopicPartition,
)
from tests.integration.cluster import Cluster, by_partition, eventually, polling

pytestmark = pytest.mark.asyncio


async def take(consumer: Consumer[bytes | None, bytes | None], count: int) -> list[bytes | None]:
    """The values of the next records, in the order of offsets within a partition."""
    values: list[bytes | None] = []
    async with asyncio.timeout(20):
        while len(values) < count:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                values += [record.value for record in records]
    return values


async def filled(cluster: Cluster, name: str, partitions: int, each: int) -> str:
    topic = cluster.unique(name)
    await cluster.create_topic(topic, partitions)
    values = {p: [b"%d-%d" % (p, n) for n in range(each)] for p in range(partitions)}
    await cluster.produce(topic, values)
    return topic


async def test_a_fresh_group_reads_everything_in_order(cluster: Cluster) -> None:
    topic = await filled(cluster, "fresh", 3, 100)
    group = cluster.unique("fresh")
    async with cluster.consumer(topic, group=group) as consumer, polling(consumer) as records:
        await eventually(lambda: len(records) == 300)
        assert by_partition(records) == {TopicPartition(topic, p): [*range(100)] for p in range(3)}
        record = records[0]
        assert record.value == b"%d-0" % record.partition
        assert (record.key, record.headers, record.serialized_key_size) == (None, (), -1)
        described = await cluster.describe(group)
        member = consumer.member
        assert member is not None
        await eventually(lambda: member_epoch(consumer) == described.group_epoch)
        assert described.members[0].member_id == member.member_id
        assert described.members[0].member_epoch == member_epoch(consumer)
        metadata = consumer.group_metadata()
        assert (metadata.group_id, metadata.member_id) == (group, member.member_id)
        assert metadata.member_epoch == described.group_epoch


def member_epoch(consumer: Consumer[bytes | None, bytes | None]) -> int:
    member = consumer.member
    assert member is not None
    return member.member_epoch


async def test_what_was_committed_is_not_read_again(cluster: Cluster) -> None:
    topic = await filled(cluster, "resume", 1, 10)
    group = cluster.unique("resume")
    tp = TopicPartition(topic, 0)
    async with cluster.consumer(topic, group=group, enable_auto_commit=False) as consumer:
        records = (await consumer.getmany(timeout_ms=10_000, max_records=4))[tp]
        assert [record.offset for record in records] == [0, 1, 2, 3]
        assert await consumer.commit() == {tp: OffsetAndMetadata(4, "")}
        await consumer.getone()
        assert await consumer.committed(tp) == 4
        assert await consumer.commit({tp: (3, "three")}) == {tp: OffsetAndMetadata(3, "three")}
        assert await consumer.commit({tp: 5}) == {tp: OffsetAndMetadata(5, "")}
    async with cluster.consumer(topic, group=group) as consumer:
        assert (await consumer.getone()).offset == 5
        assert await consumer.position(tp) == 6
    # the close committed what was handed out
    assert await cluster.committed(group, topic) == {0: 6}


async def test_a_record_whose_processing_raised_comes_again(cluster: Cluster) -> None:
    topic = await filled(cluster, "again", 1, 5)
    group = cluster.unique("again")

    async def process() -> None:
        async with cluster.consumer(topic, group=group) as consumer:
            async for record in consumer:
                assert 1 // (2 - record.offset) is not None

    with pytest.raises(ZeroDivisionError):
        await process()
    assert await cluster.committed(group, topic) == {0: 2}


async def test_the_interval_commits_only_what_is_done_with(cluster: Cluster) -> None:
    topic = await filled(cluster, "interval", 1, 5)
    group = cluster.unique("interval")
    async with cluster.consumer(topic, group=group, auto_commit_interval_ms=50) as consumer:
        await consumer.getone()
        await consumer.getone()

        async def committed_one() -> bool:
            return await cluster.committed(group, topic) == {0: 1}

        await eventually(committed_one)
        assert await consumer.position((topic, 0)) == 2


async def test_seek_pause_and_resume(cluster: Cluster) -> None:
    topic = await filled(cluster, "seek", 2, 20)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with cluster.consumer(topic, group=cluster.unique("seek")) as consumer:
        assert await consumer.wait_assigned(20_000) == {first, second}
        assert len(await take(consumer, 40)) == 40
        consumer.seek(first, 18)
        assert await take(consumer, 2) == [b"0-18", b"0-19"]
        consumer.pause(first)
        assert consumer.paused() == {first}
        await consumer.seek_to_beginning()
        assert await consumer.position(first) == 0
        assert await take(consumer, 20) == [b"1-%d" % n for n in range(20)]
        assert await consumer.getmany(timeout_ms=300) == {}
        consumer.resume(first)
        assert await take(consumer, 20) == [b"0-%d" % n for n in range(20)]
        await consumer.seek_to_end(second)
        assert await consumer.position(second) == 20
        await consumer.commit({first: 7})
        assert await consumer.seek_to_committed(first) == {first: 7}
        assert (await consumer.getone(first)).offset == 7
        assert consumer.highwater(first) == 20
        with pytest.raises(NotAssigned):
            consumer.seek((topic, 9), 0)
        with pytest.raises(ValueError, match="not negative"):
            consumer.seek(first, -1)


async def test_offsets_of_any_partition(cluster: Cluster) -> None:
    topic = await filled(cluster, "offsets", 2, 3)
    tps = [TopicPartition(topic, p) for p in range(2)]
    async with cluster.consumer(group=None) as consumer:
        assert await consumer.beginning_offsets(tps) == dict.fromkeys(tps, 0)
        assert await consumer.end_offsets(tps) == dict.fromkeys(tps, 3)
        found = await consumer.offsets_for_times({tps[0]: 0, tps[1]: 2**42})
        first = found[tps[0]]
        assert first is not None
        assert (first.offset, found[tps[1]]) == (0, None)
        assert topic in await consumer.topics()
        assert consumer.partitions_for_topic(topic) == frozenset({0, 1})
        with pytest.raises(LocalProtocolError, match="group_id"):
            await consumer.commit({tps[0]: 1})


async def test_manual_assignment_without_a_group(cluster: Cluster) -> None:
    topic = await filled(cluster, "manual", 3, 5)
    async with cluster.consumer(group=None) as consumer:
        consumer.assign([(topic, 0), (topic, 2)])
        assert consumer.assignment() == {(topic, 0), (topic, 2)}
        values = await take(consumer, 10)
        assert {value[:1] for value in values if value} == {b"0", b"2"}
        consumer.assign([(topic, 2), (topic, 1)])
        assert await take(consumer, 5) == [b"1-%d" % n for n in range(5)]
        assert consumer.member is None
        with pytest.raises(LocalProtocolError, match="unsubscribe"):
            consumer.subscribe(["other"])


async def test_manual_assignment_with_a_group_commits_without_membership(cluster: Cluster) -> None:
    topic = await filled(cluster, "simple", 1, 6)
    group = cluster.unique("simple")
    for start in (0, 3):
        async with cluster.consumer(group=group, enable_auto_commit=False) as consumer:
            consumer.assign([(topic, 0)])
            records = await consumer.getmany(timeout_ms=10_000, max_records=3)
            assert [record.offset for record in records[TopicPartition(topic, 0)]] == [
                *range(start, start + 3)
            ]
            await consumer.commit()
    assert await cluster.committed(group, topic) == {0: 6}


async def test_without_a_committed_offset_the_policy_decides(cluster: Cluster) -> None:
    topic = await filled(cluster, "policy", 1, 5)
    tp = TopicPartition(topic, 0)
    for policy, expected in (("latest", 5), ("earliest", 0), ("by_duration:PT1H", 0)):
        group = cluster.unique(f"policy-{policy[:6]}")
        async with cluster.consumer(topic, group=group, auto_offset_reset=policy) as consumer:
            await consumer.wait_assigned(20_000)
            assert await consumer.position(tp) == expected
    group = cluster.unique("policy-none")
    async with cluster.consumer(topic, group=group, auto_offset_reset="none") as consumer:
        for _ in range(2):  # it does not go away by itself
            with pytest.raises(NoOffsetForPartition):
                await consumer.getone()
        consumer.seek(tp, 4)
        assert (await consumer.getone()).offset == 4


async def test_an_offset_that_is_gone_is_reset(cluster: Cluster) -> None:
    topic = await filled(cluster, "range", 1, 5)
    tp = TopicPartition(topic, 0)
    async with cluster.consumer(topic, group=cluster.unique("range")) as consumer:
        await consumer.wait_assigned(20_000)
        consumer.seek(tp, 1000)
        assert (await consumer.getone()).offset == 0
    group = cluster.unique("range-none")
    async with cluster.consumer(topic, group=group, auto_offset_reset="none") as consumer:
        await consumer.wait_assigned(20_000)
        consumer.seek(tp, 1000)
        with pytest.raises(OffsetOutOfRange, match="begins at 0 and ends at 5") as caught:
            await consumer.getone()
        assert (caught.value.offset, caught.value.start, caught.value.end) == (1000, 0, 5)


async def test_batches_are_handed_out_as_lists_are(cluster: Cluster) -> None:
    topic, group = cluster.unique("batches"), cluster.unique("batches")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"%d" % n for n in range(10)]})
    tp = TopicPartition(topic, 0)
    async with cluster.consumer(topic, group=group, enable_auto_commit=False) as consumer:
        view = (await consumer.getbatches(timeout_ms=20_000, max_records=4))[tp]
        assert (view.tp, len(view), list(view.offsets)) == (tp, 4, [0, 1, 2, 3])
        assert list(view.values) == [b"0", b"1", b"2", b"3"]
        assert [each.value for each in view.records()] == [b"0", b"1", b"2", b"3"]
        assert await consumer.commit() == {tp: OffsetAndMetadata(4)}
        assert (await consumer.getone()).offset == 4
        consumer.pause(tp)
        assert await consumer.getbatches(timeout_ms=100) == {}
        consumer.resume(tp)
        rest = (await consumer.getbatches(tp, timeout_ms=20_000))[tp]
        assert (list(rest.offsets), rest.next_offset) == ([5, 6, 7, 8, 9], 10)
    assert await cluster.committed(group, topic) == {0: 4}


@pytest.mark.parametrize("codec", ["gzip", "lz4", "snappy", "zstd"])
async def test_compressed_batches(cluster: Cluster, codec: str) -> None:
    topic = cluster.unique(f"codec-{codec}")
    await cluster.create_topic(topic, 1)
    async with cluster.producer(compression_type=codec, linger_ms=20) as producer:
        for n in range(200):
            await producer.send(topic, b"value %d" % n, key=b"k", headers=[("h", b"1")])
        await producer.flush()
    async with cluster.consumer(group=None) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek((topic, 0), 150)  # in the middle of a batch
        assert await take(consumer, 50) == [b"value %d" % n for n in range(150, 200)]
        await consumer.seek_to_beginning()
        record = await consumer.getone()
        assert (record.key, record.headers) == (b"k", (("h", b"1"),))


async def test_only_committed_transactions_are_read(cluster: Cluster) -> None:
    topic = cluster.unique("txn")
    await cluster.create_topic(topic, 1)
    async with cluster.producer(transactional_id=cluster.unique("txn")) as producer:
        for name, keep in ((b"first", True), (b"aborted", False), (b"second", True)):
            await producer.begin_transaction()
            await producer.send_and_wait(topic, name, partition=0)
            await (producer.commit_transaction() if keep else producer.abort_transaction())
    async with cluster.consumer(group=None, isolation_level="read_committed") as consumer:
        consumer.assign([(topic, 0)])
        assert await take(consumer, 2) == [b"first", b"second"]
    async with cluster.consumer(group=None) as consumer:
        consumer.assign([(topic, 0)])
        assert await take(consumer, 3) == [b"first", b"aborted", b"second"]


async def test_a_deserializer_that_raises_can_be_skipped(cluster: Cluster) -> None:
    topic = cluster.unique("poison")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"1", b"oops", b"3"]})
    consumer = Consumer(
        topic,
        bootstrap_servers=cluster.bootstrap,
        group_id=cluster.unique("poison"),
        auto_offset_reset="earliest",
        value_deserializer=int,
    )
    async with consumer:
        assert (await consumer.getone()).value == 1
        for _ in range(2):
            with pytest.raises(RecordUnreadable, match=f"{topic}-0: .* offset 1 .*oops") as caught:
                await consumer.getone()
            error = caught.value
            assert isinstance(error.__cause__, ValueError)
            assert (error.topic, error.partition, error.offset) == (topic, 0, 1)
            assert await consumer.position((topic, 0)) == 1
        consumer.seek((topic, 0), 2)
        assert (await consumer.getone()).value == 3


async def test_partitions_can_be_assigned_by_a_timer(cluster: Cluster) -> None:
    """A call outside of any task: of a timer, of a signal, between two runs of the loop."""
    topic = await filled(cluster, "timer", 1, 1)
    async with cluster.consumer(group=None) as consumer:
        asyncio.get_running_loop().call_soon(consumer.assign, [(topic, 0)])
        assert await take(consumer, 1) == [b"0-0"]


async def test_after_the_end_nothing_works_and_iteration_stops(cluster: Cluster) -> None:
    topic = await filled(cluster, "closed", 1, 1)
    consumer = cluster.consumer(topic, group=cluster.unique("closed"))
    with pytest.raises(ConsumerClosed):
        await consumer.getone()
    await consumer.start()
    with pytest.raises(LocalProtocolError):
        await consumer.start()
    async with polling(consumer) as records:
        await eventually(lambda: len(records) == 1)
        await consumer.stop()  # ends the iteration in the other task
    with pytest.raises(ConsumerClosed):
        await consumer.getone()
    await consumer.stop()


async def test_a_commit_of_too_much_metadata_says_so(cluster: Cluster) -> None:
    topic = await filled(cluster, "metadata", 1, 1)
    async with cluster.consumer(topic, group=cluster.unique("metadata")) as consumer:
        await consumer.wait_assigned(20_000)
        with pytest.raises(CommitFailed, match="OFFSET_METADATA_TOO_LARGE") as caught:
            await consumer.commit({(topic, 0): (1, "x" * 10_000)})
        assert list(caught.value.offsets) == [(topic, 0)]
        with pytest.raises(NotAssigned):
            await consumer.commit({(topic, 5): 1})
