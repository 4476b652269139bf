"""The processor, on our broker and on real Kafka: every output is seen exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from kip848_client import (
    ConfigError,
    Kip848Error,
    LocalProtocolError,
    ProducerFenced,
    ProducerRecord,
    Record,
    RecordTooLarge,
    RecordUnreadable,
    TransactionAborted,
)
from kip848_client.core.wire import api_named
from tests.integration.cluster import Cluster, eventually
from tests.integration.processing import Job, copy_to
from tests.integration.reading import limit_messages, read

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(150)]

Rec = Record[Any, Any]


@pytest.mark.smoke
async def test_each_record_counts_once(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(300, partitions=3)
    async with job.running(copy_to(job.target), max_records=50):
        await eventually(lambda: _all_committed(job, 300))
    assert sorted(await job.seen()) == list(range(300))


async def _all_committed(job: Job, records: int) -> bool:
    return await job.committed() == records


def _sync(job: Job) -> Callable[[Rec], Any]:
    return lambda r: [ProducerRecord(job.target, r.value)] if int(r.value) % 2 else None


def _async(job: Job) -> Callable[[Rec], Any]:
    async def function(r: Rec) -> ProducerRecord | None:
        await asyncio.sleep(0)
        return ProducerRecord(job.target, r.value) if int(r.value) % 2 else None

    return function


def _generator(job: Job) -> Callable[[Rec], Any]:
    def function(r: Rec) -> Iterator[ProducerRecord]:
        if int(r.value) % 2:
            yield ProducerRecord(job.target, r.value)

    return function


def _async_generator(job: Job) -> Callable[[Rec], Any]:
    async def function(r: Rec) -> AsyncIterator[ProducerRecord]:
        await asyncio.sleep(0)
        if int(r.value) % 2:
            yield ProducerRecord(job.target, r.value)

    return function


@pytest.mark.parametrize(
    "make", [_sync, _async, _generator, _async_generator], ids=lambda each: each.__name__[1:]
)
async def test_what_a_function_may_be(
    cluster: Cluster, make: Callable[[Job], Callable[[Rec], Any]]
) -> None:
    job = await Job(cluster).prepare(20)
    async with job.running(make(job)):
        await eventually(lambda: _all_committed(job, 20))
    assert await job.seen() == list(range(1, 20, 2))


async def test_a_function_of_batches(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(90, partitions=3)
    sizes: list[int] = []

    async def function(batch: list[Rec]) -> list[ProducerRecord]:
        assert len({each.partition for each in batch}) == 1
        sizes.append(len(batch))
        return [ProducerRecord(job.target, each.value) for each in batch]

    async with job.running(function, batch=True, max_records=40):
        await eventually(lambda: _all_committed(job, 90))
    assert sorted(await job.seen()) == list(range(90))
    assert max(sizes) > 1


async def test_all_of_an_output_is_sent(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(1)

    def function(_: Rec) -> ProducerRecord:
        headers = [("h", b"1"), ("null", None)]
        return ProducerRecord(job.target, 7, "key", 0, 1_234_567_890_000, headers)

    producer = job.producer(
        key_serializer=lambda key: key and key.encode(),
        value_serializer=lambda value: value and b"%d" % value,
    )
    async with job.running(function, producer=producer):
        await eventually(lambda: _all_committed(job, 1))
    (found,) = await read(cluster, job.target, 1, "read_committed")
    assert (found.key, found.value, found.timestamp) == (b"key", b"7", 1_234_567_890_000)
    assert dict(found.headers) == {"h": b"1", "null": None}


# -- functions that fail -------------------------------------------------------------------------


async def test_what_the_function_raises_ends_it_and_nothing_is_committed(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(10)

    def function(r: Rec) -> ProducerRecord:
        if r.value == b"5":
            raise ZeroDivisionError("poison")
        return ProducerRecord(job.target, r.value)

    with pytest.raises(ZeroDivisionError, match="poison") as raised:
        async with job.processor(function, commit_interval_ms=59_000) as processor:
            await processor.run()
    assert raised.value.__notes__ == [f"while processing {job.source}-0 at offset 5"]
    assert await job.committed() == 0
    await job.finish(10)
    assert await job.seen() == list(range(10))


async def test_poison_becomes_a_dead_letter(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(10)

    def function(r: Rec) -> Iterator[ProducerRecord]:
        yield ProducerRecord(job.target, r.value)
        if r.value in (b"0", b"5", b"9"):
            raise ZeroDivisionError("poisön")

    async with job.running(function, dead_letter_topic=job.letters):
        await eventually(lambda: _all_committed(job, 10))
    assert await job.seen() == [1, 2, 3, 4, 6, 7, 8]
    assert await job.seen(job.letters) == [0, 5, 9]
    letters = await read(cluster, job.letters, 3, "read_committed")
    assert dict(letters[1].headers) == {
        "kip848.errors.topic": job.source.encode(),
        "kip848.errors.partition": b"0",
        "kip848.errors.offset": b"5",
        "kip848.errors.exception.class.name": b"builtins.ZeroDivisionError",
        "kip848.errors.exception.message": "poisön".encode(),
    }


async def test_a_batch_that_fails_becomes_dead_letters(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(10)

    def function(batch: list[Rec]) -> list[ProducerRecord]:
        if any(each.value == b"5" for each in batch):
            raise ZeroDivisionError
        return [ProducerRecord(job.target, each.value) for each in batch]

    async with job.running(function, batch=True, dead_letter_topic=job.letters, max_records=4):
        await eventually(lambda: _all_committed(job, 10))
    dead, alive = await job.seen(job.letters), await job.seen()
    assert 5 in dead
    assert sorted(dead + alive) == list(range(10))


@pytest.mark.parametrize("what", ["too large", "serializer", "no bytes", "partition"])
async def test_an_output_that_can_never_be_sent_makes_its_record_a_dead_letter(
    cluster: Cluster, what: str
) -> None:
    job = await Job(cluster).prepare(10)
    bad = {
        "too large": ProducerRecord(job.target, b"x" * 20_000),
        "serializer": ProducerRecord(job.target, b"refuse"),
        "no bytes": ProducerRecord(job.target, 5),
        "partition": ProducerRecord(job.target, b"x", partition=7),
    }[what]

    def serializer(value: Any) -> Any:
        if value == b"refuse":
            raise ZeroDivisionError
        return value

    def function(r: Rec) -> list[ProducerRecord]:
        good = ProducerRecord(job.target, r.value)
        return [good, bad] if r.value in (b"3", b"7") else [good]

    producer = job.producer(max_request_size=10_000, value_serializer=serializer)
    async with job.running(function, producer=producer, dead_letter_topic=job.letters):
        await eventually(lambda: _all_committed(job, 10))
    assert await job.seen() == [0, 1, 2, 4, 5, 6, 8, 9]
    assert await job.seen(job.letters) == [3, 7]


async def test_the_record_that_is_read_again_first_becomes_a_dead_letter(cluster: Cluster) -> None:
    # two partitions with the same offsets: what one has left in hand is not the other's
    job = await Job(cluster).prepare(20, partitions=2)
    bad = {0, 2, 1, 5, 19}

    def function(r: Rec) -> ProducerRecord:
        return ProducerRecord(job.target, 5 if int(r.value) in bad else r.value)

    async with job.running(function, dead_letter_topic=job.letters, max_records=6):
        await eventually(lambda: _all_committed(job, 20))
    assert sorted(await job.seen()) == [each for each in range(20) if each not in bad]
    assert sorted(await job.seen(job.letters)) == sorted(bad)


async def test_without_dead_letters_such_an_output_ends_it(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(3)
    producer = job.producer(max_request_size=10_000)
    with pytest.raises(RecordTooLarge):
        async with job.processor(
            lambda _: ProducerRecord(job.target, b"x" * 20_000), producer=producer
        ) as processor:
            await processor.run()
    assert await job.seen() == []


async def test_an_output_that_a_broker_refuses_ends_it(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(3)
    await limit_messages(cluster, job.target, 1_000)
    with pytest.raises(TransactionAborted, match="MESSAGE_TOO_LARGE"):
        async with job.processor(lambda _: ProducerRecord(job.target, b"x" * 2_000)) as processor:
            await processor.run()
    assert await job.seen() == []
    assert await job.committed() == 0


@pytest.mark.parametrize("result", [5, b"value", "value", {"a": 1}, [b"value"], ...], ids=repr)
async def test_a_function_that_returns_what_is_no_output(cluster: Cluster, result: object) -> None:
    job = await Job(cluster).prepare(1)
    with pytest.raises(ConfigError, match="the function returns None, a ProducerRecord"):
        async with job.processor(lambda _: result) as processor:
            await processor.run()
    assert await job.committed() == 0


async def test_a_cancellation_that_the_function_lets_out(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(1)

    async def function(_: Rec) -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task

    with pytest.raises(Kip848Error, match="let a CancelledError out"):
        async with job.processor(function) as processor:
            await processor.run()


async def test_a_record_that_the_consumer_cannot_read_ends_it(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(5)

    def deserializer(value: bytes) -> bytes:
        if value == b"3":
            raise ZeroDivisionError
        return value

    consumer = job.consumer(value_deserializer=deserializer)
    with pytest.raises(RecordUnreadable):
        async with job.processor(copy_to(job.target), consumer=consumer) as processor:
            await processor.run()
    assert await job.seen() == [0, 1, 2]
    await eventually(lambda: _all_committed(job, 3))


# -- rebalances and fences -----------------------------------------------------------------------


async def test_a_rebalance_in_the_middle_of_transactions(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(400, partitions=4)
    calls: dict[str, set[int]] = {"a": set(), "b": set()}

    def slow(name: str) -> Callable[[Rec], Any]:
        async def function(r: Rec) -> ProducerRecord:
            await asyncio.sleep(0.005)
            calls[name].add(r.partition)
            return ProducerRecord(job.target, r.value)

        return function

    async with job.running(slow("a"), "a", max_records=20):
        await eventually(lambda: len(calls["a"]) > 1)
        async with job.running(slow("b"), "b", max_records=20):
            await eventually(lambda: bool(calls["b"]))
            await asyncio.sleep(0.2)
        await eventually(lambda: _all_committed(job, 400))
    assert sorted(await job.seen()) == list(range(400))


async def test_another_producer_with_the_transactional_id(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(50)

    async def slow(r: Rec) -> ProducerRecord:
        await asyncio.sleep(0.02)
        return ProducerRecord(job.target, r.value)

    first = job.processor(slow, "same", max_records=5)
    await first.start()
    task = asyncio.create_task(first.run())
    await eventually(lambda: _some_committed(job))
    async with job.running(copy_to(job.target), "same"):
        with pytest.raises(ProducerFenced):
            await task
        await first.stop()
        await eventually(lambda: _all_committed(job, 50))
    assert await job.seen() == list(range(50))


async def _some_committed(job: Job) -> bool:
    return await job.committed() > 0


async def test_a_member_that_is_kicked_out_reads_again(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(60, partitions=2)
    consumer = job.consumer()
    kicks = 0

    async def function(r: Rec) -> ProducerRecord:
        nonlocal kicks
        if int(r.value) >= 20 * (kicks + 1) and kicks < 2:
            kicks += 1
            await _kick(cluster, job.group, consumer.group_metadata().member_id)
        await asyncio.sleep(0.002)
        return ProducerRecord(job.target, r.value)

    async with job.running(function, consumer=consumer, max_records=20):
        await eventually(lambda: _all_committed(job, 60))
    assert kicks == 2
    assert sorted(await job.seen()) == list(range(60))


async def _kick(cluster: Cluster, group: str, member_id: str) -> None:
    """Let the member leave without its knowing."""
    heartbeat = api_named("ConsumerGroupHeartbeat").request
    await cluster.ask(heartbeat(group_id=group, member_id=member_id, member_epoch=-1))


# -- the end -------------------------------------------------------------------------------------


async def test_stop_commits_what_is_whole(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(100)
    begun: list[bytes] = []
    seventh, go_on = asyncio.Event(), asyncio.Event()

    async def function(r: Rec) -> ProducerRecord:
        begun.append(r.value)
        if len(begun) == 7:
            seventh.set()
            await go_on.wait()
        return ProducerRecord(job.target, r.value)

    async with job.processor(function, commit_interval_ms=59_000) as processor:
        task = asyncio.create_task(processor.run())
        await seventh.wait()
        stopping = asyncio.create_task(processor.stop())
        await asyncio.sleep(0)
        go_on.set()
        await stopping
        await task
    assert len(begun) == 7
    await eventually(lambda: _all_committed(job, 7))
    assert await job.seen() == list(range(7))


async def test_a_function_that_takes_too_long_is_not_waited_for(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(10)
    hangs = asyncio.Event()

    async def function(r: Rec) -> ProducerRecord:
        if r.value == b"4":
            hangs.set()
            await asyncio.sleep(60)
        return ProducerRecord(job.target, r.value)

    processor = job.processor(function)
    async with processor:
        task = asyncio.create_task(processor.run())
        await hangs.wait()
        await processor.stop(timeout_ms=1_000)
        await task
    await job.finish(10)
    assert await job.seen() == list(range(10))


async def test_stop_by_the_function_itself_is_refused(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(1)

    async def function(_: Rec) -> None:
        await processor.stop()

    processor = job.processor(function)
    with pytest.raises(LocalProtocolError, match="in another task"):
        async with processor:
            await processor.run()


async def test_run_at_the_wrong_time(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(1)
    processor = job.processor(copy_to(job.target))
    with pytest.raises(LocalProtocolError, match="start"):
        await processor.run()
    async with processor:
        with pytest.raises(LocalProtocolError, match="was started before"):
            await processor.start()
        task = asyncio.create_task(processor.run())
        await eventually(lambda: _all_committed(job, 1))
        with pytest.raises(LocalProtocolError, match="once"):
            await processor.run()
        await processor.stop()
        await processor.stop()
        await task
    with pytest.raises(LocalProtocolError):
        await processor.run()


async def test_a_stop_that_comes_before_run(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(1)
    async with job.processor(copy_to(job.target)) as processor:
        await processor.stop()
        await processor.run()
    assert await job.committed() == 0


async def test_a_block_that_is_left_by_an_error_of_its_own(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(20)
    tasks: list[asyncio.Task[None]] = []
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - the block is what is tested
        async with job.processor(copy_to(job.target)) as processor:
            tasks.append(asyncio.create_task(processor.run()))
            await eventually(lambda: _some_committed(job))
            raise ZeroDivisionError
    await tasks[0]
    await job.finish(20)
    assert await job.seen() == list(range(20))


async def test_a_run_that_is_cancelled_at_any_await(cluster: Cluster) -> None:
    job = await Job(cluster).prepare(300)
    is_mock = cluster.kind == "mock"
    for turns in range(0, 60, 3 if is_mock else 15):
        called = asyncio.Event()

        async def function(r: Rec, called: asyncio.Event = called) -> ProducerRecord:
            called.set()
            await asyncio.sleep(0)
            return ProducerRecord(job.target, r.value)

        async with job.processor(function, max_records=3) as processor:
            task = asyncio.create_task(processor.run())
            waiting = asyncio.create_task(called.wait())
            await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
    await job.finish(300)
    assert await job.seen() == list(range(300))
