"""Queries without Spark: sources that are called as Spark calls them, on the bundled broker."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import pytest

from kip848_client import Consumer, Producer
from kip848_client.core.fetch import _topics
from kip848_client.core.types import TopicPartition
from kip848_client.core.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsRequestDeleteRecordsPartition,
    DeleteRecordsRequestDeleteRecordsTopic,
)
from kip848_client.errors import ConfigError, Kip848Error, RequestTimedOut, TransportError
from kip848_client.spark.source import _cluster
from kip848_client.spark.source._reading import read_ranges
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import DataLost
from kip848_client.spark.source.core._ranges import OffsetRange
from kip848_client.spark.source.core._slots import TaskRanges
from mock_coordinator.threaded import BrokerThread
from tests.support.wire_connection import WireConnection
from tests.unit.spark.source._by_hand import Begin, Query, committed, options_of, produce, rows_of

pytestmark = pytest.mark.mock_broker(topics={"a": 3})


def _values(query: Query) -> list[bytes]:
    return [row[2] for row in query.sink]


@pytest.mark.parametrize("ownership", ["exclusive", "shared"])
def test_all_records_are_read_once_and_the_group_is_told(
    mock_broker: BrokerThread, begin: Begin, ownership: str
) -> None:
    produce(mock_broker, 31)
    query = begin(kafka_group_id="g", ownership=ownership)
    query.run(limit=7)
    assert len(query.log) == 6
    produce(mock_broker, 5, first=31)
    query.run()
    assert sorted(_values(query)) == sorted(f"v{n}".encode() for n in range(36))
    assert committed(mock_broker) == {0: 12, 1: 12, 2: 12}
    assert query.runner.ends() == {"a": {"0": 12, "1": 12, "2": 12}}


@pytest.mark.parametrize("ownership", ["exclusive", "shared"])
def test_a_batch_that_a_crash_interrupted_is_repeated_as_it_was(
    mock_broker: BrokerThread, begin: Begin, ownership: str
) -> None:
    produce(mock_broker, 30)
    query = begin(kafka_group_id="g", ownership=ownership)
    query.plan(limit=9)
    query.read()
    query.plan(limit=9)
    produce(mock_broker, 30, first=30)
    query.restart()
    query.run()
    assert sorted(_values(query)) == sorted(f"v{n}".encode() for n in range(60))
    assert committed(mock_broker) == {0: 20, 1: 20, 2: 20}


@pytest.mark.parametrize("ownership", ["exclusive", "shared"])
def test_a_query_that_stops_in_order_four_times_reads_each_record_once(
    mock_broker: BrokerThread, begin: Begin, ownership: str
) -> None:
    """Its last batch is in Spark's log of commits, and the group does not know it yet."""
    query = begin(kafka_group_id="g", ownership=ownership)
    for turn in range(4):
        produce(mock_broker, 30, first=30 * turn)
        assert query.plan()
        query.read()
        query.restart()
    for _ in range(4):
        query.run()
        query.restart()
    assert sorted(_values(query)) == sorted(f"v{n}".encode() for n in range(120))


def test_a_batch_that_its_group_knows_and_sparks_log_has_lost_is_repeated_whole(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    """A machine that loses its power: a sink that overwrites by batch id needs all of it."""
    produce(mock_broker, 30)
    query = begin(kafka_group_id="g", ownership="shared")
    query.run(limit=12)
    assert sum(committed(mock_broker).values()) == 30
    query.planned = last = query.log.pop()
    before = list(query.sink)
    query.restart()
    again = query.sink[len(before) :]
    assert again == before[-last.size :]
    query.run()
    assert query.sink == before + again
    assert sum(committed(mock_broker).values()) == 30


def test_a_new_checkpoint_does_not_begin_where_another_query_left_its_group(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    produce(mock_broker, 12)
    begin(kafka_group_id="g", ownership="exclusive").run()
    produce(mock_broker, 3, first=12)
    options = options_of(mock_broker.bootstrap, kafka_group_id="g", startingOffsets=None)
    again = Query(options)
    with pytest.raises(ConfigError, match=r"has the offsets of another query.*Set startingOffsets"):
        again.run()
    again.runner.close()
    said = begin(kafka_group_id="g", startingOffsets='{"a": {"0": 4, "1": 4, "2": 4}}')
    said.run()
    assert _values(said) == [b"v12", b"v13", b"v14"]


def test_available_now_ends_with_what_was_there(mock_broker: BrokerThread, begin: Begin) -> None:
    produce(mock_broker, 10)
    query = begin()
    query.runner.stop_at_what_is_there()
    produce(mock_broker, 10, first=10)
    query.run(limit=4)
    assert len(query.sink) == 10


def test_a_partition_that_comes_later_is_read_whole(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    query = begin(startingOffsets="latest")
    query.run()
    mock_broker.add_partitions("a", 4)
    mock_broker.produce("a", b"new", partition=3)
    query.run()
    assert query.sink == [(3, 0, b"new")]


@pytest.mark.parametrize("ownership", ["exclusive", "shared"])
def test_a_topic_that_was_created_again_is_told(
    mock_broker: BrokerThread, begin: Begin, ownership: str
) -> None:
    produce(mock_broker, 6)
    query = begin(kafka_group_id="g", ownership=ownership)
    query.run()
    mock_broker.delete_topic("a")
    mock_broker.create_topic("a", 3)
    produce(mock_broker, 30)
    with pytest.raises(DataLost, match="created again"):
        query.plan()


@pytest.mark.mock_broker(topics={"a": 3, "b": 1})
@pytest.mark.parametrize("ownership", ["exclusive", "shared"])
def test_a_topic_that_is_deleted_is_told(
    mock_broker: BrokerThread, begin: Begin, ownership: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cluster, "_GONE_S", 0.3)
    said = {"kafka_group_id": "g", "ownership": ownership, "subscribe": "a,b"}
    produce(mock_broker, 6)
    query = begin(**said)
    query.run()
    produce(mock_broker, 6, first=6)
    mock_broker.delete_topic("b")
    with pytest.raises(DataLost, match=r"topic b was deleted .* Set failOnDataLoss=false"):
        query.plan()
    query.options = options_of(mock_broker.bootstrap, **said, failOnDataLoss="false")
    query.restart()
    query.run()
    assert sorted(_values(query)) == sorted(f"v{n}".encode() for n in range(12))
    assert committed(mock_broker) == {0: 4, 1: 4, 2: 4}


@pytest.mark.parametrize("ownership", ["exclusive", "shared"])
def test_a_query_goes_on_after_a_topic_that_is_deleted_and_comes_back(
    mock_broker: BrokerThread, begin: Begin, ownership: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cluster, "_GONE_S", 0.3)
    query = begin(kafka_group_id="g", ownership=ownership, failOnDataLoss="false")
    produce(mock_broker, 6)
    query.run()
    mock_broker.delete_topic("a")
    assert not query.plan()
    mock_broker.create_topic("a", 3)
    produce(mock_broker, 9, first=6)
    deadline = time.monotonic() + 20
    while len(query.sink) < 15 and time.monotonic() < deadline:
        query.run()
    assert sorted(_values(query)) == sorted(f"v{n}".encode() for n in range(15))


def test_a_topic_that_is_deleted_while_its_task_reads_it_is_told(
    mock_broker: BrokerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_topics, "GONE_AFTER_MS", 300)
    produce(mock_broker, 6)
    tp = TopicPartition("a", 0)
    for fails in ("true", "false"):
        options = options_of(mock_broker.bootstrap, failOnDataLoss=fails)
        read = read_ranges(TaskRanges((OffsetRange(tp, 0, 9),), options))
        assert next(read).num_rows == 2
        mock_broker.delete_topic("a")
        if fails == "true":
            with pytest.raises(DataLost, match="topic a was deleted while it was read"):
                next(read)
        else:
            assert list(read) == []
        mock_broker.create_topic("a", 3)
        produce(mock_broker, 6)


def test_a_batch_that_is_repeated_goes_without_a_topic_that_was_deleted(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    produce(mock_broker, 6)
    query = begin()
    assert query.plan()
    mock_broker.delete_topic("a")
    query.options = options_of(mock_broker.bootstrap, failOnDataLoss="false")
    query.restart()
    assert query.sink == []
    query.options = options_of(mock_broker.bootstrap)
    query.restart()
    with pytest.raises(ConfigError, match="topic a does not exist"):
        query.plan()


def test_records_that_are_gone_when_a_task_wants_them_are_told(mock_broker: BrokerThread) -> None:
    produce(mock_broker, 3)
    batch = Manifest(1, {TopicPartition("a", 0): (5, 9)})
    with pytest.raises(DataLost, match=r"a-0 should be read from 5 to 9, but has only 0 to 1"):
        rows_of(options_of(mock_broker.bootstrap), batch.ranges, tasks=1)
    assert rows_of(options_of(mock_broker.bootstrap, failOnDataLoss="false"), batch.ranges) == []


def test_records_that_are_gone_at_the_begin_of_a_range_do_not_take_the_rest_with_them(
    mock_broker: BrokerThread,
) -> None:
    for _ in range(6):
        mock_broker.produce("a", b"x", partition=0)
    part = DeleteRecordsRequestDeleteRecordsPartition(partition_index=0, offset=3)
    topic = DeleteRecordsRequestDeleteRecordsTopic(name="a", partitions=(part,))
    host, port = mock_broker.bootstrap.split(":")
    with WireConnection(host, int(port)) as connection:
        connection.request(DeleteRecordsRequest(topics=(topic,), timeout_ms=10_000), 2)
    batch = Manifest(1, {TopicPartition("a", 0): (1, 5)})
    options = options_of(mock_broker.bootstrap, failOnDataLoss="false")
    assert [offset for _, offset, _ in rows_of(options, batch.ranges, tasks=1)] == [3, 4]


def test_markers_of_transactions_do_not_hold_a_task_up(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    async def write() -> None:
        settings: dict[str, Any] = {"bootstrap_servers": mock_broker.bootstrap}
        async with Producer(transactional_id="t", **settings) as producer:
            for number in range(4):
                with suppress(ZeroDivisionError):
                    async with producer.transaction() as txn:
                        await (await txn.send("a", b"%d" % number, partition=0))
                        if number % 2:
                            raise ZeroDivisionError  # aborts

    asyncio.run(write())
    query = begin(kafka_isolation_level="read_committed")
    query.run(limit=1)
    assert _values(query) == [b"0", b"2"]
    assert query.log[-1].ends[TopicPartition("a", 0)] == 8

    async def leave_open() -> None:
        settings: dict[str, Any] = {"bootstrap_servers": mock_broker.bootstrap}
        async with Producer(transactional_id="t", **settings) as producer:
            with suppress(ZeroDivisionError):
                async with producer.transaction() as txn:
                    await (await txn.send("a", b"open", partition=0))
                    assert not await asyncio.to_thread(query.plan)
                    raise ZeroDivisionError

    asyncio.run(leave_open())


def test_a_plain_consumer_joins_and_leaves_and_each_record_has_one_reader(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    query = begin(kafka_group_id="g", ownership="shared")
    plain: list[bytes] = []

    async def take(count: int) -> None:
        async with Consumer("a", bootstrap_servers=mock_broker.bootstrap, group_id="g") as consumer:
            while len(plain) < count:
                produce(mock_broker, 3, first=len(plain) + len(query.sink) + 1_000)
                # Spark goes on meanwhile: in another thread, as its calls wait
                await asyncio.to_thread(query.run)
                for records in (await consumer.getmany(timeout_ms=50)).values():
                    plain.extend(record.value or b"" for record in records)

    produce(mock_broker, 9)
    query.run()
    asyncio.run(take(5))
    query.run()
    produced = [each.value for each in mock_broker.records("a")]
    for _ in range(100):
        if len(query.sink) + len(plain) >= len(produced):
            break
        query.run()
    assert sorted(_values(query) + plain) == sorted(value or b"" for value in produced)


def test_after_a_crash_another_member_goes_on_and_the_batch_is_repeated_without_its_part(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    produce(mock_broker, 30)
    query = begin(kafka_group_id="g", ownership="shared")
    query.plan(limit=9)
    query.read()
    query.plan(limit=9)  # 3 to 6 of each partition, and then it dies
    query.runner.close()
    others: list[tuple[int, int]] = []

    async def take_over(ends: dict[int, int]) -> None:
        async with Consumer(
            "a", bootstrap_servers=mock_broker.bootstrap, group_id="g", enable_auto_commit=False
        ) as consumer:
            while len(others) < sum(end - 3 for end in ends.values()):
                for tp, records in (await consumer.getmany(timeout_ms=50)).items():
                    others.extend(
                        (tp.partition, each.offset)
                        for each in records
                        if each.offset < ends.get(tp.partition, 0)
                    )
            await consumer.commit({TopicPartition("a", each): at for each, at in ends.items()})

    asyncio.run(take_over({0: 5, 1: 10}))
    query.restart()
    assert [row[:2] for row in query.sink[9:]] == [(0, 5), (2, 3), (2, 4), (2, 5)]
    query.run()
    rows = [row[:2] for row in query.sink]
    assert sorted(rows + others) == [(tp, at) for tp in range(3) for at in range(10)]
    assert committed(mock_broker) == {0: 10, 1: 10, 2: 10}


def test_a_partition_that_is_asked_back_waits_for_its_batch(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership="shared")
    query.plan()

    async def join() -> set[int]:
        async with Consumer("a", bootstrap_servers=mock_broker.bootstrap, group_id="g") as consumer:
            with pytest.raises(TimeoutError):
                await consumer.wait_assigned(timeout_ms=1_000)
            await asyncio.to_thread(query.read)
            await asyncio.to_thread(query.run)
            return {tp.partition for tp in await consumer.wait_assigned(timeout_ms=20_000)}

    assert asyncio.run(join())
    assert committed(mock_broker) == {0: 3, 1: 3, 2: 3}


def test_a_query_without_membership_leaves_a_group_with_members_alone(
    mock_broker: BrokerThread, begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    """Somebody else works under that name: its offsets stay, and the query goes on."""
    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership="exclusive")

    async def run_beside_a_member() -> None:
        async with Consumer(
            "a", bootstrap_servers=mock_broker.bootstrap, group_id="g", enable_auto_commit=False
        ) as consumer:
            await consumer.wait_assigned(timeout_ms=20_000)
            await asyncio.to_thread(query.run)

    asyncio.run(run_beside_a_member())
    assert len(query.sink) == 9
    assert committed(mock_broker) == {}
    assert "committing the progress of Spark to group g failed" in caplog.text
    assert "Set ownership=shared to make it a member" in caplog.text
    produce(mock_broker, 3, first=9)
    query.run()
    assert committed(mock_broker) == {0: 4, 1: 4, 2: 4}


def test_a_second_driver_with_the_same_instance_id_is_told(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    produce(mock_broker, 9)
    first = begin(kafka_group_id="g", ownership="shared", kafka_group_instance_id="one")
    assert first.plan()
    second = begin(kafka_group_id="g", ownership="shared", kafka_group_instance_id="one")
    with pytest.raises(Kip848Error, match="instance"):
        second.plan()
    first.read()
    first.run()
    assert len(first.sink) == 9
    assert committed(mock_broker) == {0: 3, 1: 3, 2: 3}


def test_a_restart_with_an_instance_id_keeps_its_partitions(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    """Others get none while it is away, although it has left: no default for a query that ends."""

    def target() -> dict[int, int]:
        found = mock_broker.snapshot("g")
        assert found is not None
        return {each.epoch: sum(map(len, each.target.values())) for each in found.members.values()}

    produce(mock_broker, 9)
    query = begin(kafka_group_id="g", ownership="shared", kafka_group_instance_id="one")
    query.run()
    [epoch] = target()
    query.runner.close()
    assert target() == {-2: 3}
    query.restart()
    query.run()
    assert target() == {epoch: 3}, "the group has not noticed"


def test_a_topic_that_is_not_there_is_named(begin: Begin) -> None:
    query = begin(subscribe="missing")
    with pytest.raises(Exception, match="missing"):
        query.plan()


def test_a_partition_that_is_not_there_is_named(mock_broker: BrokerThread, begin: Begin) -> None:
    del mock_broker
    query = begin(startingOffsets='{"a": {"0": 0, "1": 0, "2": 0, "3": 0}}')
    with pytest.raises(ConfigError, match="a-3, which is not read"):
        query.plan()
    query = begin(startingOffsets='{"a": {"0": 0, "1": 0, "2": 7}}')
    with pytest.raises(ConfigError, match="offset 7 is outside of a-2, which has 0 to 0"):
        query.plan()


def test_offsets_that_do_not_exist_are_the_nearest_ones_where_data_may_be_lost(
    mock_broker: BrokerThread, begin: Begin, caplog: pytest.LogCaptureFixture
) -> None:
    produce(mock_broker, 6)
    query = begin(startingOffsets='{"a": {"0": 10000, "1": 1, "2": 0}}', failOnDataLoss="false")
    query.run()
    assert [(partition, offset) for partition, offset, _ in query.sink] == [(1, 1), (2, 0), (2, 1)]
    assert "offset 10000 is outside of a-0, which has 0 to 2; using the nearest" in caplog.text
    produce(mock_broker, 3)
    query.run()
    assert [(partition, offset) for partition, offset, _ in query.sink][3:] == [
        (0, 2),
        (1, 2),
        (2, 2),
    ]


def test_brokers_that_cannot_be_reached_end_the_query() -> None:
    query = Query(options_of("127.0.0.1:1", kafkaConsumer_pollTimeoutMs="3000"))
    with pytest.raises((TransportError, RequestTimedOut)):
        query.plan()
    query.runner.close()
