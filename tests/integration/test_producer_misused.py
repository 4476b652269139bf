"""A producer in the hands of somebody who cancels, forgets, asks at the wrong time or too much."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from kip848_client import (
    ConfigError,
    DeliveryTimedOut,
    Kip848Error,
    LocalProtocolError,
    Producer,
)
from mock_coordinator import Fault, Match, MockBroker
from mock_coordinator.core.faults import Drop
from mock_coordinator.core.faults import Moment as Side
from tests.integration.cluster import Cluster, eventually
from tests.integration.reading import committed_values
from tests.support.cancelling import Moment, cancelled_at

pytestmark = pytest.mark.asyncio

moments = pytest.mark.parametrize("moment", list(Moment))


@asynccontextmanager
async def running(broker: MockBroker, **settings: Any) -> AsyncGenerator[Producer[Any, Any]]:
    producer: Producer[Any, Any] = Producer(bootstrap_servers=broker.bootstrap, **settings)
    async with producer:
        yield producer


def engine_of(producer: Producer[Any, Any]) -> Any:
    engine = producer._engine
    assert engine is not None
    return engine


def values(broker: MockBroker, topic: str = "t", partition: int = 0) -> list[bytes | None]:
    return [each.value for each in broker.records(topic, partition)]


# -- the end of a producer -----------------------------------------------------------------------


async def test_a_producer_whose_task_was_cancelled_says_so_to_everybody() -> None:
    serializing = asyncio.Event()

    async def slow(value: bytes) -> bytes:
        if value == b"slow":
            serializing.set()
            await asyncio.sleep(0.05)
        return value

    settings = {"linger_ms": 10_000, "value_serializer": slow}
    async with MockBroker({"t": 1}) as broker, running(broker, **settings) as producer:
        waiting = await producer.send("t", b"waits")
        under_way = asyncio.create_task(producer.send("t", b"slow"))
        await serializing.wait()
        task = engine_of(producer).runtime.task
        assert task is not None
        task.cancel()  # as those do who cancel all tasks that there are
        async with asyncio.timeout(10):
            for sent in (waiting, under_way, producer.send_and_wait("t", b"late")):
                with pytest.raises(Kip848Error, match="cancelled from outside"):
                    await sent


async def test_a_producer_that_is_forgotten_warns() -> None:
    async with MockBroker({"t": 1}) as broker:
        forgotten = [Producer(bootstrap_servers=broker.bootstrap)]
        await forgotten[0].start()
        engine = engine_of(forgotten[0])
        with pytest.warns(ResourceWarning, match="was never stopped"):
            forgotten.clear()
        await engine.stop(0).finish()
        stopped, new = Producer(bootstrap_servers=broker.bootstrap), Producer()
        await stopped.start()
        await stopped.stop()
        del stopped, new
        gc.collect()


async def test_the_nearer_of_two_deadlines_counts() -> None:
    async with MockBroker({"t": 1}) as broker:
        producer = Producer(bootstrap_servers=broker.bootstrap, linger_ms=0)
        await producer.start()
        await producer.send_and_wait("t", b"0")
        broker.faults.add(Fault(Drop(Side.REQUEST), Match(api="Produce"), times=None))
        future = await producer.send("t", b"1")
        first = asyncio.create_task(producer.stop(timeout_ms=60_000))
        await asyncio.sleep(0)
        async with asyncio.timeout(10):
            await producer.stop(timeout_ms=50)
            await first
        assert isinstance(future.exception(), DeliveryTimedOut)


async def test_a_start_that_is_cancelled_beside_a_stop_is_cancelled() -> None:
    async with MockBroker({"t": 1}) as broker:
        producer = Producer(bootstrap_servers=broker.bootstrap)
        start = asyncio.create_task(producer.start())
        await asyncio.sleep(0)
        stop = asyncio.create_task(producer.stop())
        await asyncio.sleep(0)
        start.cancel()
        await asyncio.wait([start, stop])
        assert start.cancelled()
        assert stop.exception() is None


async def test_a_thread_without_a_loop_is_told_where_to_call() -> None:
    async with MockBroker({"t": 1}) as broker, running(broker) as producer:
        errors: list[BaseException] = []

        def call() -> None:
            try:
                producer.send("t", b"0").close()
            except BaseException as err:  # noqa: BLE001 - looked at below
                errors.append(err)

        thread = threading.Thread(target=call)
        thread.start()
        await asyncio.to_thread(thread.join)
        (error,) = errors
        assert isinstance(error, LocalProtocolError)
        assert "another event loop (or thread)" in str(error)


async def test_what_was_sent_and_never_committed_is_said_when_it_stops(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with MockBroker({"t": 1}) as broker:
        async with running(broker, transactional_id="x") as producer:
            await producer.begin_transaction()
            await producer.send("t", b"0")
        (record,) = [each for each in caplog.records if each.name == "kip848_client"]
        assert record.levelno == logging.WARNING
        assert "stopped within a transaction" in record.getMessage()


# -- cancelled everywhere ------------------------------------------------------------------------


@moments
async def test_a_life_that_is_cancelled_leaves_nothing(moment: Moment) -> None:
    async with MockBroker({"t": 1}) as broker:
        number = 0
        for number in range(1, 100):
            producer = Producer(
                bootstrap_servers=broker.bootstrap, transactional_id="x", linger_ms=0
            )

            async def live(producer: Producer[bytes, bytes] = producer) -> None:
                async with producer, producer.transaction() as txn:
                    await txn.send("t", b"0")
                    await producer.flush()
                    await txn.send("t", b"1")

            task = await cancelled_at(number, moment, live)
            async with asyncio.timeout(10):
                await producer.stop()
            engine = engine_of(producer)
            assert engine.runtime.task is None or engine.runtime.task.done()
            assert not any(
                each.is_open for pool in engine.transport._pools for each in _links(pool)
            )
            if task is None:
                break
            assert task.cancelled()
        assert number > 5, "it was cancelled here and there"


def _links(pool: Any) -> list[Any]:
    return list(pool._links.values())


@moments
async def test_a_transaction_that_is_cancelled_is_there_or_not(moment: Moment) -> None:
    """Whatever became of it, the next one works; and a commit that was not heard of is told."""
    expected: list[bytes] = []
    async with MockBroker({"t": 1}) as broker:
        async with running(broker, transactional_id="x", linger_ms=0) as producer:
            number = 0
            for number in range(1, 100):

                async def one(name: bytes = b"%d" % number) -> None:
                    async with producer.transaction() as txn:
                        await txn.send("t", name + b"a")
                        await producer.flush()
                        await txn.send_offsets("g", {("t", 0): 1})
                        await txn.send("t", name + b"b")

                async with asyncio.timeout(20):
                    task = await cancelled_at(number, moment, one)
                    is_committed = task is None
                    try:
                        await producer.begin_transaction()
                    except LocalProtocolError:  # it is committed, or about to be
                        await producer.commit_transaction()
                        is_committed = True
                        await producer.begin_transaction()
                    await producer.send("t", b"%d" % number)
                    await producer.commit_transaction()
                if is_committed:
                    expected += [b"%da" % number, b"%db" % number]
                expected.append(b"%d" % number)
                if task is None:
                    break
        assert number > 3, "it was cancelled here and there"
        cluster = Cluster("mock", "4.4", broker.host, broker.port)
        assert await committed_values(cluster, "t", expected[-1]) == expected
        await cluster.close()


@moments
async def test_a_send_that_is_cancelled_has_sent_nothing_and_those_behind_it_are(
    moment: Moment,
) -> None:
    async def slow(value: bytes) -> bytes:
        await asyncio.sleep(0)
        return value

    settings = {"buffer_memory": 3_000, "max_batch_size": 1_000, "linger_ms": 0}
    async with MockBroker({"t": 1}) as broker:
        async with running(broker, value_serializer=slow, **settings) as producer:
            number = 0
            for number in range(1, 200):
                sent: list[bytes] = []

                async def several(name: bytes = b"%d" % number, sent: Any = sent) -> None:
                    for at in range(6):
                        value = b"%s-%d" % (name, at) + b"x" * 900
                        await producer.send("t", value)
                        sent.append(value)

                before = len(values(broker))
                async with asyncio.timeout(20):
                    task = await cancelled_at(number, moment, several)
                    await producer.send_and_wait("t", b"last")
                    await producer.flush()
                assert values(broker)[before:] == [*sent, b"last"]
                if task is None:
                    break
        assert number > 10, "it was cancelled here and there"


# -- memory --------------------------------------------------------------------------------------


async def test_a_large_record_is_not_overtaken_for_ever() -> None:
    is_over = False
    settings = {"buffer_memory": 200_000, "linger_ms": 0, "max_block_ms": 2_000}
    async with MockBroker({"t": 4}) as broker, running(broker, **settings) as producer:

        async def small(partition: int) -> None:
            while not is_over:
                await producer.send("t", b"x" * 5_000, partition=partition)

        tasks = [asyncio.create_task(small(number % 4)) for number in range(16)]
        await eventually(lambda: len(values(broker)) > 10)
        try:
            await producer.send_and_wait("t", b"x" * 150_000)
        finally:
            is_over = True
            await asyncio.gather(*tasks)


async def test_those_who_wait_for_room_do_not_wake_each_other_in_vain() -> None:
    count, steps = 1_000, 0
    settings = {"buffer_memory": 100_000, "linger_ms": 0}
    async with MockBroker({"t": 1}) as broker, running(broker, **settings) as producer:
        await producer.send_and_wait("t", b"0")
        core = engine_of(producer).core
        step = core.step

        def counted(*arguments: Any) -> Any:
            nonlocal steps
            steps += 1
            return step(*arguments)

        core.step = counted
        await asyncio.gather(*[producer.send("t", b"x" * 1_000) for _ in range(count)])
        assert steps < 3 * count
        await producer.flush()
        assert len(values(broker)) == count + 1


async def test_with_a_dead_broker_those_who_wait_for_room_come_to_an_end() -> None:
    settings = {
        "buffer_memory": 3_000,
        "max_batch_size": 1_000,
        "linger_ms": 0,
        "request_timeout_ms": 100,
        "delivery_timeout_ms": 100,
        "max_block_ms": 300,
    }
    async with MockBroker({"t": 1}) as broker, running(broker, **settings) as producer:
        await producer.send_and_wait("t", b"0")
        broker.faults.add(Fault(Drop(Side.REQUEST), Match(api="Produce"), times=None))
        tasks = [asyncio.create_task(producer.send("t", b"x" * 900)) for _ in range(30)]
        await asyncio.sleep(0.02)
        for task in tasks[5:15]:
            task.cancel()
        async with asyncio.timeout(20):
            results = await asyncio.gather(*tasks, return_exceptions=True)
            for result in results:
                if isinstance(result, asyncio.Future):
                    with pytest.raises(DeliveryTimedOut):
                        await result
                else:
                    assert isinstance(result, DeliveryTimedOut | asyncio.CancelledError)
        broker.faults.clear()
        async with asyncio.timeout(20):
            while True:  # the first may meet what is left of the old connection
                with suppress(DeliveryTimedOut):
                    await producer.send_and_wait("t", b"1")
                    break
        assert engine_of(producer).core.snapshot().held_bytes == 0


# -- transactions --------------------------------------------------------------------------------


async def test_a_record_that_waited_does_not_get_into_the_next_transaction() -> None:
    go_on = asyncio.Event()

    async def slow(value: bytes) -> bytes:
        if value == b"slow":
            await go_on.wait()
        return value

    # what is aborted has not been sent yet
    settings = {"transactional_id": "x", "value_serializer": slow, "linger_ms": 10_000}
    async with MockBroker({"t": 1}) as broker:
        async with running(broker, **settings) as producer:
            await producer.begin_transaction()
            straggler = asyncio.create_task(producer.send("t", b"slow"))
            await producer.send("t", b"never")
            await producer.abort_transaction()
            await producer.begin_transaction()
            go_on.set()
            with pytest.raises(LocalProtocolError, match="in which this was sent is over"):
                await straggler
            with pytest.raises(LocalProtocolError, match="open already"):
                await producer.begin_transaction()
            await producer.send("t", b"0")
            await producer.commit_transaction()
        assert values(broker) == [b"0"]


async def test_a_group_that_no_request_can_carry_harms_nobody_else() -> None:
    async with MockBroker({"t": 1}) as broker, running(broker, transactional_id="x") as producer:
        async with producer.transaction() as txn:
            await txn.send("t", b"0")
            with pytest.raises(ConfigError, match="40000 bytes"):
                await txn.send_offsets("g" * 40_000, {("t", 0): 1})
        async with producer.transaction() as txn:
            await txn.send("t", b"1")


# -- what is sent where --------------------------------------------------------------------------


async def test_partitions_that_were_added_can_be_written_to_at_once() -> None:
    async with MockBroker({"t": 1}) as broker, running(broker) as producer:
        await producer.send_and_wait("t", b"0")
        with pytest.raises(ConfigError, match="from 0 to 0: there is no 1"):
            await producer.send("t", b"1", partition=1)
        broker.add_partitions("t", 2)
        assert (await producer.send_and_wait("t", b"1", partition=1)).partition == 1


async def test_of_a_topic_that_came_back_smaller_the_old_partitions_are_refused() -> None:
    async with MockBroker({"t": 3}) as broker, running(broker) as producer:
        await producer.send_and_wait("t", b"0", partition=2)
        broker.delete_topic("t")
        broker.create_topic("t", 1)
        await producer.send_and_wait("t", b"0", partition=0)  # which shows that it is another one
        with pytest.raises(ConfigError, match="there is no 2"):
            await producer.send("t", b"1", partition=2)


async def test_numbers_that_are_none_are_refused_every_time() -> None:
    async with MockBroker({"t": 2}) as broker, running(broker) as producer:
        for known in (False, True):
            wrong: Any
            for wrong in (1.0, True, "1", [1], {}):
                with pytest.raises(ConfigError, match="the number of a partition is an int"):
                    await producer.send("t", b"0", partition=wrong)
            assert known == bool(values(broker, "t", 1))
            await producer.send_and_wait("t", b"0", partition=1)


async def test_what_is_derived_from_str_and_bytes_is_sent_as_such() -> None:
    class Text(str):
        """As those of numpy and many others."""

        __slots__ = ()

    class Bytes(bytes):
        """The same."""

    async with MockBroker({"t": 1}) as broker, running(broker) as producer:
        headers = [(Text("h"), Bytes(b"1")), ("i", None)]
        place = await producer.send_and_wait(Text("t"), Bytes(b"v"), Bytes(b"k"), headers=headers)
        assert place.offset == 0
        (record,) = broker.records("t", 0)
        assert (record.key, record.value) == (b"k", b"v")
        assert [tuple(each) for each in record.headers] == [("h", b"1"), ("i", None)]
