"""Consumers are recorded, into a file and into a topic, and the tables tell what happened."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from kip848_client import Consumer, Producer
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import LocalProtocolError
from kip848_client.history.core import HistoryEvent, parse_line, tables_of
from kip848_client.history.recording import HistoryTopic, read_files, recording
from mock_coordinator import MockBroker
from mock_coordinator.core.faults import Fault, Match, Refuse

pytestmark = pytest.mark.asyncio

FAST = {
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
}


def _consumer(broker: MockBroker, client_id: str) -> Consumer[bytes | None, bytes | None]:
    return Consumer("orders", bootstrap_servers=broker.bootstrap, group_id="g", client_id=client_id)


async def _until(consumer: Consumer[bytes | None, bytes | None], partitions: int) -> None:
    """Until it has so many."""
    events = consumer.events()
    async with asyncio.timeout(20):
        while len(consumer.assignment()) != partitions:
            await anext(events)
    events.close()


async def test_what_happens_to_two_consumers_is_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    async with MockBroker({"orders": 2}, config=FAST, events=path) as broker:
        one, two = _consumer(broker, "one"), _consumer(broker, "two")
        async with recording(one, path) as first, one:
            await _until(one, 2)
            async with recording(two, path), two:
                await _until(two, 1)
                fence = Refuse(code=ErrorCode.UNKNOWN_MEMBER_ID)
                heartbeats = Match(api="ConsumerGroupHeartbeat", client_id="one")
                broker.faults.add(Fault(fence, heartbeats, times=1))
                await broker.wait_for(lambda: any(e.kind == "fenced" for e in _read(path)))
                await _until(one, 1)
            await _until(one, 2)
        assert first.lost == 0
    record = read_files([path])
    assert (record.bad, record.cut, record.missing) == (0, 0, 0)
    tables = tables_of(record.events)
    assert all(abs(each) <= 2 for each in tables.clock_offsets.values()), "they are rounded"
    assert {each.client_id for each in record.events if each.kind == "stopped"} == {"one", "two"}
    rows = {(row.topic, row.partition): row for row in tables.partition_downtime}
    assert set(rows) == {("orders", 0), ("orders", 1)}
    assert max(row.owners for row in rows.values()) == 2
    assert any(row.downtime_ms for row in rows.values()), "one member was fenced"
    assert {row.heartbeats > 3 and row.p99_ms is not None for row in tables.heartbeat_sla} == {True}
    assert len(tables.rebalance_duration) >= 2
    assert max(row.members for row in tables.rebalance_duration) == 2
    assert {row.outcome for row in tables.zombie_commits} <= {"refused"}


def _read(path: Path) -> list[HistoryEvent]:
    return read_files([path]).events


async def test_a_topic_takes_the_same_events() -> None:
    async with (
        MockBroker({"orders": 1, "history": 1}, config=FAST) as broker,
        Producer(bootstrap_servers=broker.bootstrap) as producer,
    ):
        consumer = _consumer(broker, "one")
        async with recording(consumer, HistoryTopic(producer, "history")), consumer:
            await _until(consumer, 1)
        events = [parse_line(each.value or b"") for each in broker.records("history")]
        assert {each.key for each in broker.records("history")} == {b"g"}
    assert [each.seq for each in events] == list(range(len(events)))
    assert {"started", "heartbeat", "epoch", "assigned", "revoked", "stopped"} <= {
        each.kind for each in events
    }


async def test_a_disk_that_refuses_costs_events_and_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with MockBroker({"orders": 1}, config=FAST) as broker:
        consumer = _consumer(broker, "one")
        with caplog.at_level(logging.WARNING):
            async with recording(consumer, "/dev/full") as seen, consumer:
                await _until(consumer, 1)
    assert seen.lost > 3
    told = [each.getMessage() for each in caplog.records if "events of group" in each.getMessage()]
    assert told == ["events of group g are lost: [Errno 28] No space left on device"]


async def test_a_consumer_without_a_group_has_nothing_to_record() -> None:
    consumer = Consumer(bootstrap_servers="localhost:9092")
    with pytest.raises(LocalProtocolError, match="without a group_id has no membership"):
        recording(consumer, "events.jsonl")
