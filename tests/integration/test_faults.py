"""Every kind of fault, written as JSON, on the way of real clients through TCP.

A member of a group reads twenty records and commits. Whatever goes wrong meanwhile, it must have
them all in the end, once, with their commit; and it must really have gone wrong.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import CorruptRecordException

from kip848_client import Consumer
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import RecordUnreadable
from mock_coordinator import MockBroker, MockCluster
from mock_coordinator.core.faults import faults_from_json
from tests.integration.test_server_cli import address_of, running
from tests.support.plain_message import message
from tests.support.wire_connection import ConnectionLostError, WireConnection

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

pytestmark = pytest.mark.asyncio

RECORDS: Final = 20
PATIENCE_S: Final = 30
REQUEST_TIMEOUT_MS: Final = 1500
FAST: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
}

COMMIT, FETCH = {"api": "OffsetCommit", "group": "g"}, {"api": "Fetch"}

FAULTS: Final[dict[str, dict[str, Any]]] = {
    "error": {"match": COMMIT, "error": "COORDINATOR_LOAD_IN_PROGRESS"},
    "error, by topic": {"match": {**FETCH, "topic": "t"}, "error": "NOT_LEADER_OR_FOLLOWER"},
    "error, the 2nd and 3rd": {"match": FETCH, "nth": 2, "times": 2, "error": 6},
    "error, at one node": {"match": {**COMMIT, "node": 1}, "error": "REQUEST_TIMED_OUT"},
    "answer": {"match": FETCH, "answer": {"responses": []}},
    "delay a request": {"match": COMMIT, "delay_ms": 200, "of": "request"},
    "delay a response": {"match": FETCH, "delay_ms": 200, "of": "response"},
    "drop a request": {"match": COMMIT, "drop": "request"},
    "drop a response": {"match": COMMIT, "drop": "response"},
    "disconnect before": {"match": COMMIT, "disconnect": "request"},
    "disconnect instead": {"match": FETCH, "disconnect": "response"},
    "disconnect in a frame": {"match": FETCH, "disconnect": "response", "after_bytes": 20},
    "throttle": {"match": {"api": "Metadata"}, "throttle_ms": 200},
    "duplicate": {"match": COMMIT, "duplicate": True},
    "move the coordinator": {"match": COMMIT, "move_coordinator": "next"},
}


# -- clients ---------------------------------------------------------------------------------------


async def read_by_ours(bootstrap: str) -> list[bytes]:
    values: list[bytes] = []
    async with Consumer(
        "t",
        bootstrap_servers=bootstrap,
        group_id="g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
    ) as consumer:
        while len(values) < RECORDS:
            values += [bytes(record.value or b"") for record in await polled(consumer)]
        await consumer.commit()
    return values


async def polled(consumer: Any) -> list[Any]:
    batches = await consumer.getmany(timeout_ms=100)
    return [record for batch in batches.values() for record in batch]


async def read_by_aiokafka(bootstrap: str) -> list[bytes]:
    values: list[bytes] = []
    consumer = AIOKafkaConsumer(
        "t",
        bootstrap_servers=bootstrap,
        group_id="g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
        request_timeout_ms=REQUEST_TIMEOUT_MS,
    )
    await consumer.start()
    try:
        while len(values) < RECORDS:
            values += [record.value for record in await polled(consumer)]
        await consumer.commit()
    finally:
        await consumer.stop()
    return values


def _confluent(bootstrap: str, protocol: str) -> list[bytes]:
    from confluent_kafka import Consumer as ConfluentConsumer

    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "socket.timeout.ms": REQUEST_TIMEOUT_MS,
            "fetch.wait.max.ms": 100,
            "check.crcs": True,
        }
    )
    consumer.subscribe(["t"])
    values: list[bytes] = []
    give_up = time.monotonic() + PATIENCE_S
    try:
        while len(values) < RECORDS:
            assert time.monotonic() < give_up, f"{len(values)} records in time"
            polled = consumer.poll(0.1)
            if polled is not None and polled.error() is None:
                values.append(polled.value() or b"")
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return values


async def read_by_librdkafka(bootstrap: str) -> list[bytes]:
    return await anyio.to_thread.run_sync(_confluent, bootstrap, "consumer")


async def read_by_librdkafka_of_old(bootstrap: str) -> list[bytes]:
    return await anyio.to_thread.run_sync(_confluent, bootstrap, "classic")


READERS: Final = [
    read_by_ours,
    *(
        pytest.param(each, marks=pytest.mark.foreign)
        for each in (read_by_aiokafka, read_by_librdkafka, read_by_librdkafka_of_old)
    ),
]


def fill(broker: MockBroker) -> None:
    for number in range(RECORDS):
        broker.produce("t", b"%d" % number, partition=number % 2)


def committed(broker: MockBroker) -> dict[int, int]:
    group = broker.snapshot("g")
    found = {} if group is None else group.offsets.get("t", {})
    return {partition: offset.offset for partition, offset in found.items()}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("read", READERS)
async def test_a_member_gets_over_it(read: Callable[[str], Any], fault: str) -> None:
    row = FAULTS[fault]
    async with MockCluster({"t": 2}, brokers=2, config=FAST) as broker:
        fill(broker)
        broker.move_coordinator("g", 1)
        broker.faults.add(*faults_from_json(json.dumps([row])))
        with anyio.fail_after(PATIENCE_S):
            values = await read(broker.bootstrap)
        assert sorted(values, key=int) == [b"%d" % number for number in range(RECORDS)]
        assert committed(broker) == {0: RECORDS // 2, 1: RECORDS // 2}
        assert len(broker.faults.hits) == row.get("times", 1)


DAMAGED: Final = json.dumps(
    {"match": {**FETCH, "topic": "t", "partition": 1}, "corrupt_batch": True}
)


@pytest.mark.foreign
@pytest.mark.parametrize("read", [read_by_librdkafka, read_by_librdkafka_of_old])
async def test_librdkafka_reads_a_damaged_batch_again(read: Callable[[str], Any]) -> None:
    async with MockBroker({"t": 2}, config=FAST) as broker:
        fill(broker)
        broker.faults.add(*faults_from_json(DAMAGED))
        assert len(await read(broker.bootstrap)) == RECORDS
        assert len(broker.faults.hits) == 1


async def read_damaged(times: int | None) -> list[str]:
    """Read all records of a partition whose batches come damaged so many times, or until that is
    told; returns what was told."""
    async with MockBroker({"t": 2}, config=FAST) as broker:
        for number in range(RECORDS):  # records of other partitions would be handed out instead
            broker.produce("t", b"%d" % number, partition=1)
        (fault,) = faults_from_json(DAMAGED)
        broker.faults.add(replace(fault, times=times))
        values: list[bytes] = []
        told: list[str] = []
        async with Consumer(
            "t", bootstrap_servers=broker.bootstrap, group_id="g", auto_offset_reset="earliest"
        ) as consumer:
            with anyio.fail_after(PATIENCE_S):
                while len(values) < RECORDS:
                    try:
                        values += [bytes(each.value or b"") for each in await polled(consumer)]
                    except RecordUnreadable as err:
                        told.append(str(err))
                        broker.faults.clear()
                        await anyio.sleep(0.1)
        assert len(set(values)) == RECORDS
        return told


async def test_a_batch_that_was_damaged_on_its_way_is_fetched_once_more() -> None:
    assert await read_damaged(1) == []


async def test_a_damaged_batch_is_told_and_can_be_read_again() -> None:
    told = await read_damaged(None)
    assert len(set(told)) == 1, told
    assert "records of t-1 from offset 0 on: CORRUPT_MESSAGE" in told[0]


@pytest.mark.foreign
async def test_aiokafka_is_told_of_a_damaged_batch() -> None:
    async with MockBroker({"t": 2}, config=FAST) as broker:
        fill(broker)
        broker.faults.add(*faults_from_json(DAMAGED))
        async with AIOKafkaConsumer(
            "t", bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            values: list[Any] = []

            async def read_all() -> None:
                while len(values) < RECORDS:
                    values.extend(await polled(consumer))

            with anyio.fail_after(PATIENCE_S), pytest.raises(CorruptRecordException):
                await read_all()


async def test_a_produce_that_comes_twice_is_written_once() -> None:
    twice = '{"match": {"api": "Produce"}, "times": null, "duplicate": true}'
    async with MockBroker({"t": 1}) as broker:
        broker.faults.add(*faults_from_json(twice))
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True)
        await producer.start()
        for number in range(5):
            await producer.send_and_wait("t", b"%d" % number, partition=0)
        await producer.stop()
        assert len(broker.faults.hits) == 5
        assert [record.value for record in broker.records("t", 0)] == [b"0", b"1", b"2", b"3", b"4"]


async def test_faults_in_a_file_are_those_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "faults.json"
    rows = [
        {"match": {"api": "Metadata", "version": 12}, "nth": 2, "error": "NOT_CONTROLLER"},
        {"match": {"api": "ListGroups", "client": "unlucky"}, "disconnect": "request"},
    ]
    file.write_text(json.dumps(rows))

    def ask() -> None:
        with running("kip848_client", "--faults", str(file)) as process:
            address = address_of(process)
            for client in ("lucky", "unlucky"):
                with WireConnection(*address, client_id=client) as connection:
                    topics = [{"name": "t"}]
                    asked = message("Metadata", topics=topics)
                    codes = [connection.request(asked, 12).topics[0].error_code for _ in range(2)]
                    assert codes == (
                        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_CONTROLLER]
                        if client == "lucky"
                        else [0, 0]
                    )
                    if client == "lucky":
                        assert connection.request(message("ListGroups"), 5).error_code == 0
                    else:
                        with pytest.raises(ConnectionLostError):
                            connection.request(message("ListGroups"), 5)

    await anyio.to_thread.run_sync(ask)
