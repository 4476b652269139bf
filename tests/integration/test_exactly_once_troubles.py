"""The processor before brokers that are silent, slow, or not of its opinion."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from kip848_client import (
    Admin,
    BootstrapFailed,
    BrokerError,
    CommitInDoubt,
    ConfigError,
    Consumer,
    DeliveryTimedOut,
    Kip848Error,
    LocalProtocolError,
    Producer,
    ProducerRecord,
    Record,
    TransactionAborted,
)
from kip848_client.core.wire import api_named
from kip848_client.processor.core import ProcessorCore
from mock_coordinator import options
from mock_coordinator.core.profiles import profile_named
from tests.integration.cluster import Cluster, eventually
from tests.integration.conftest import running_mock
from tests.integration.intercepted import CLOSE, DROP, intercepted
from tests.integration.processing import Job, copy_to
from tests.support import real_kafka

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(60)]

Rec = Record[Any, Any]


def hasty(job: Job, name: str = "p") -> Producer[Any, Any]:
    """One that soon takes silence for no answer; but on a busy machine it has time to connect."""
    return job.producer(name, request_timeout_ms=500, max_block_ms=600)


async def _is_committed(job: Job, records: int) -> bool:
    return await job.committed() == records


@pytest.mark.parametrize(
    ("profile", "silence"),
    [
        pytest.param("4.0", DROP, id="silent-4.0", marks=pytest.mark.everything("it waits a lot")),
        pytest.param("4.4", DROP, id="silent-4.4"),
        pytest.param("4.0", CLOSE, id="closed-4.0"),
        pytest.param("4.4", CLOSE, id="closed-4.4"),
    ],
)
async def test_a_commit_in_doubt_is_asked_for_until_it_is_known(
    profile: str, silence: object
) -> None:
    async with intercepted(profile) as (door, cluster):
        job = await Job(cluster).prepare(30)
        refused = 0

        def sometimes(_: Any) -> object:
            nonlocal refused
            refused += 1
            return None if refused % 3 == 0 else silence

        door.answers["EndTxn"] = sometimes
        async with job.running(copy_to(job.target), producer=hasty(job), max_records=10):
            await eventually(lambda: _is_committed(job, 30))
        door.answers.clear()
        assert await job.seen() == list(range(30))
        assert refused > 4


async def test_a_stop_before_a_commit_is_answered_says_that_nobody_knows() -> None:
    async with intercepted() as (door, cluster):
        job = await Job(cluster).prepare(5)
        door.answers["EndTxn"] = lambda _: DROP
        processor = job.processor(copy_to(job.target), producer=hasty(job))
        async with processor:
            task = asyncio.create_task(processor.run())
            await eventually(lambda: door.asked["EndTxn"] > 0)
            await processor.stop(timeout_ms=500)
            with pytest.raises(CommitInDoubt):
                await task
        door.answers.clear()
        # the next one with the same id settles it
        async with job.running(copy_to(job.target)):
            await eventually(lambda: _is_committed(job, 5))
        assert await job.seen() == list(range(5))


@pytest.mark.parametrize("api", ["TxnOffsetCommit", "Produce", "EndTxn"])
async def test_answers_that_are_lost(api: str) -> None:
    async with intercepted() as (door, cluster):
        job = await Job(cluster).prepare(40, partitions=2)
        count = 0

        def third(_: Any) -> object:
            nonlocal count
            count += 1
            return CLOSE if count % 3 == 1 else None

        door.answers[api] = third
        async with job.running(copy_to(job.target), max_records=10):
            await eventually(lambda: _is_committed(job, 40))
        door.answers.clear()
        assert count > 1
        assert sorted(await job.seen()) == list(range(40))


async def test_a_partition_waits_for_a_commit_in_doubt() -> None:
    async with intercepted() as (door, cluster):
        job = await Job(cluster).prepare(20, partitions=2)
        silent = True
        door.answers["EndTxn"] = lambda _: DROP if silent else None
        producer = hasty(job, "a")
        begun: set[int] = set()

        def second(r: Rec) -> ProducerRecord:
            begun.add(r.partition)
            return ProducerRecord(job.target, r.value)

        async with job.running(copy_to(job.target), producer=producer, commit_interval_ms=10):
            await eventually(lambda: door.asked["EndTxn"] > 1)
            async with job.running(second, "b"):
                before = door.asked["ConsumerGroupHeartbeat"]
                await eventually(lambda: door.asked["ConsumerGroupHeartbeat"] > before + 8)
                assert not begun
                silent = False
                await eventually(lambda: _is_committed(job, 20))
        assert sorted(await job.seen()) == list(range(20))


async def test_a_group_that_does_not_know_the_member_when_offsets_come() -> None:
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(20)
        consumer = job.consumer()
        kicks = 0

        async def kick() -> None:
            heartbeat = api_named("ConsumerGroupHeartbeat").request
            member_id = consumer.group_metadata().member_id
            await cluster.ask(heartbeat(group_id=job.group, member_id=member_id, member_epoch=-1))

        async def function(r: Rec) -> ProducerRecord:
            nonlocal kicks
            if r.value in (b"7", b"15") and kicks < 2:
                kicks += 1
                await kick()  # the consumer hears of it later than the coordinator of offsets
            return ProducerRecord(job.target, r.value)

        async with job.running(function, consumer=consumer, max_records=8):
            await eventually(lambda: _is_committed(job, 20))
        assert kicks == 2
        assert await job.seen() == list(range(20))


async def test_a_producer_whose_brokers_are_away_for_a_while() -> None:
    async with intercepted() as (door, cluster):
        job = await Job(cluster).prepare(20)
        asked = 0

        def is_away(_: Any) -> object:
            nonlocal asked
            asked += 1
            return CLOSE if 3 <= asked < 20 else None

        for api in ("Produce", "TxnOffsetCommit", "EndTxn", "InitProducerId"):
            door.answers[api] = is_away
        producer = job.producer(
            request_timeout_ms=1_000,
            delivery_timeout_ms=1_000,
            max_block_ms=1_000,
            retry_backoff_max_ms=100,
        )
        async with job.running(copy_to(job.target), producer=producer, max_records=8):
            await eventually(lambda: _is_committed(job, 20))
        door.answers.clear()
        assert asked >= 20
        assert await job.seen() == list(range(20))


async def test_with_the_first_version_of_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_v2(name: str) -> Any:
        profile = profile_named(name)
        features = {**profile.finalized_features, "transaction.version": 1}
        return dataclasses.replace(profile, finalized_features=features)

    monkeypatch.setattr(options, "profile_named", without_v2)
    async with running_mock("4.4") as mock:
        cluster = Cluster("mock", "4.4", mock.host, mock.port)
        job = await Job(cluster).prepare(60, partitions=3)
        failed: set[bytes] = set()

        def function(r: Rec) -> ProducerRecord:
            if int(r.value) % 9 == 5 and r.value not in failed:
                failed.add(r.value)
                return ProducerRecord(job.target, b"x" * 2_000)  # aborted, and a dead letter then
            return ProducerRecord(job.target, r.value)

        producer = job.producer(max_request_size=1_000)
        async with job.running(
            function, producer=producer, dead_letter_topic=job.letters, max_records=7
        ):
            await eventually(lambda: _is_committed(job, 60))
        assert any(type(e.request).__name__ == "AddPartitionsToTxnRequest" for e in mock.requests())
        seen, dead = await job.seen(), await job.seen(job.letters)
        assert sorted(seen + dead) == list(range(60))
        assert dead
        await cluster.close()


# -- starting ------------------------------------------------------------------------------------


async def test_nothing_stays_open_when_one_of_them_cannot_start() -> None:
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(1)
        nowhere = "127.0.0.1:1"
        consumer: Consumer[Any, Any] = Consumer(
            bootstrap_servers=nowhere,
            group_id="g",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        processor = job.processor(copy_to(job.target), consumer=consumer)
        with pytest.raises(BootstrapFailed):
            await processor.start()
        await processor.stop()
        producer = Producer(bootstrap_servers=nowhere, transactional_id="x")
        with pytest.raises(BootstrapFailed):
            async with job.processor(copy_to(job.target), producer=producer):
                pass


async def test_a_client_that_is_started_already_is_refused_and_left_alone() -> None:
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(1)
        async with job.producer() as producer:
            processor = job.processor(copy_to(job.target), producer=producer)
            with pytest.raises(LocalProtocolError, match="once"):
                await processor.start()
            await processor.stop()
            async with producer.transaction() as txn:  # and goes on
                await txn.send(job.target, b"0")
        assert await job.seen() == [0]


async def test_a_processor_does_not_take_the_consumer_of_another_one() -> None:
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(20, partitions=2)
        consumer = job.consumer()
        other = job.processor(copy_to(job.target), "b", consumer=consumer)
        async with job.running(copy_to(job.target), "a", consumer=consumer):
            with pytest.raises(LocalProtocolError, match="once"):
                await other.start()
            await other.stop()
            await eventually(lambda: _is_committed(job, 20))
        assert sorted(await job.seen()) == list(range(20))


async def test_a_processor_does_not_take_the_clients_of_one_that_starts() -> None:
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(20, partitions=2)
        consumer, producer = job.consumer(), job.producer()
        first = job.processor(copy_to(job.target), consumer=consumer, producer=producer)
        others = (
            job.processor(copy_to(job.target), "b", consumer=consumer),
            job.processor(copy_to(job.target), "c", producer=producer),
        )
        starting = asyncio.create_task(first.start())
        await asyncio.sleep(0)
        for other in others:
            with pytest.raises(LocalProtocolError, match="of its own"):
                await other.start()
            await other.stop()
        await starting
        task = asyncio.create_task(first.run())
        await eventually(lambda: _is_committed(job, 20))
        await first.stop()
        await task
        assert sorted(await job.seen()) == list(range(20))


async def test_clients_of_two_clusters_are_refused() -> None:
    async with intercepted() as (_, here), intercepted() as (_, there):
        job = await Job(here).prepare(1)
        producer = Job(there).producer()
        consumer = job.consumer()
        processor = job.processor(copy_to(job.target), consumer=consumer, producer=producer)
        with pytest.raises(ConfigError, match="two clusters") as caught:
            await processor.start()
        assert str(consumer.cluster_id) in str(caught.value)
        assert str(producer.cluster_id) in str(caught.value)
        assert "closed" in repr(consumer)
        assert "closed" in repr(producer)


async def test_a_processor_that_was_stopped_does_not_start() -> None:
    """A signal may come at any time."""
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(1)
        processor = job.processor(copy_to(job.target))
        await processor.stop()
        with pytest.raises(LocalProtocolError, match="was stopped"):
            await processor.start()


async def test_another_event_loop_is_told_where_to_call() -> None:
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(1)
        async with job.processor(copy_to(job.target)) as processor:
            for call in (processor.run, processor.stop):
                with pytest.raises(LocalProtocolError, match="in another event loop"):
                    await asyncio.to_thread(asyncio.run, call())


async def test_an_error_that_is_no_exception_comes_out_of_run() -> None:
    class HereNowError(BaseException):
        """As of a test framework: nobody shall catch it."""

    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(3)

        def function(_: Any) -> Any:
            raise HereNowError

        async with job.processor(function, dead_letter_topic=job.letters) as processor:
            with pytest.raises(HereNowError):
                await processor.run()
        await job.finish(3)
        assert await job.seen() == [0, 1, 2]


async def test_a_function_that_cancels_its_own_task_ends_run() -> None:
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(3)

        def function(_: Any) -> Any:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

        async with job.processor(function) as processor:
            with pytest.raises(Kip848Error, match=r"cancelled from outside|CancelledError out"):
                await processor.run()
        await job.finish(3)
        assert await job.seen() == [0, 1, 2]


async def test_a_bug_of_ours_ends_run_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(1)

        def broken(*_: Any) -> Any:
            raise ZeroDivisionError

        async with job.processor(copy_to(job.target)) as processor:
            monkeypatch.setattr(ProcessorCore, "step", broken)
            with pytest.raises(Kip848Error, match="a bug of its own"):
                await processor.run()


async def test_a_topic_of_outputs_that_is_deleted_for_good_ends_run() -> None:
    """The same records were read again for ever, with a warning each time."""
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(3)

        async def function(r: Rec) -> ProducerRecord:
            if r.value == b"1":
                async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
                    await admin.delete_topics([job.target])
            return ProducerRecord(job.target, r.value)

        producer = job.producer(request_timeout_ms=1_000, delivery_timeout_ms=1_000)
        async with job.processor(function, producer=producer, max_records=1) as processor:
            with pytest.raises(TransactionAborted, match="UNKNOWN_TOPIC_OR_PARTITION") as raised:
                await processor.run()
        assert isinstance(raised.value.cause, DeliveryTimedOut)
        assert isinstance(raised.value.cause.cause, BrokerError)
        assert await job.committed() == 1


async def test_records_that_take_longer_than_a_transaction_may(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The same records again took the same time again, for ever."""
    interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    monkeypatch.setitem(real_kafka.FAST_CONFIGS, interval, "20")
    async with running_mock("4.4") as mock:
        cluster = Cluster("mock", "4.4", mock.host, mock.port)
        job = await Job(cluster).prepare(8)
        slow = {b"3", b"5"}

        async def function(r: Rec) -> ProducerRecord:
            if r.value in slow:
                await asyncio.sleep(0.5)
            return ProducerRecord(job.target, r.value)

        producer = job.producer(transaction_timeout_ms=200)
        async with job.running(function, producer=producer):
            await eventually(lambda: _is_committed(job, 8))
        assert await job.seen() == list(range(8))
        assert "longer than the producer's transaction_timeout_ms" in caplog.text
        await cluster.close()


@pytest.mark.parametrize("batch", [False, True])
async def test_a_producer_that_somebody_else_stops_ends_run(batch: bool) -> None:
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(1)
        producer = job.producer("p")

        async def function(given: Any) -> ProducerRecord:
            await producer.stop(timeout_ms=0)
            one = given[0] if isinstance(given, list) else given
            return ProducerRecord(job.target, value=one.value)

        async with job.processor(function, producer=producer, batch=batch) as processor:
            with pytest.raises(LocalProtocolError, match="the producer is closed"):
                await processor.run()


async def test_an_iterator_of_the_function_that_is_at_its_end_is_told() -> None:
    async with intercepted() as (_, cluster):
        job = await Job(cluster).prepare(1)

        def function(_: Rec) -> ProducerRecord:
            return next(iter(()))

        async with job.processor(function) as processor:
            with pytest.raises(RuntimeError, match=r"the function raised StopIteration") as failed:
                await processor.run()
        assert "while processing" in "".join(getattr(failed.value, "__notes__", ()))
