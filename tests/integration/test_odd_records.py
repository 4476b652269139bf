"""Records that no careful producer writes: brokers take them, and all our ways of reading hand out
what Java's consumer does."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from typing import Any

import aiokafka
import anyio.to_thread
import cramjam
import pytest

from kip848_client import (
    Admin,
    Consumer,
    ExactlyOnceProcessor,
    Producer,
    ProducerRecord,
    RecordUnreadable,
)
from kip848_client.admin import NewTopic
from kip848_client.aiokafka import AIOKafkaConsumer
from kip848_client.core.compression import pack
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.records._paths import PATHS
from tests.integration.cluster import Cluster
from tests.support.odd_records import (
    FIRST_MS,
    TAKEN,
    Read,
    field,
    raw_batch,
    raw_record,
    read_by_java,
    varint,
)
from tests.support.pytest_kafka import skip_without_kafka

pytestmark = pytest.mark.asyncio


@pytest.fixture(params=PATHS)
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the extension reads the records."""
    if not request.param:
        monkeypatch.delitem(PATHS, True, raising=False)
    return bool(request.param)


ANY_TIME = str((1 << 63) - 1)
COUNT = sum(odd.read * (1 + odd.compressible) for odd in TAKEN.values())


async def topic_for_any_time(cluster: Cluster, name: str) -> str:
    topic = cluster.unique(name)
    limits = {f"message.timestamp.{side}.max.ms": ANY_TIME for side in ("before", "after")}
    limits["retention.ms"] = "-1"  # else Kafka deletes records with old timestamps now and then
    async with Admin(bootstrap_servers=cluster.bootstrap) as admin:
        await admin.create_topics([NewTopic(topic, 1, 1, configs=tuple(limits.items()))])
    await cluster.await_assignable(topic, 1)
    return topic


async def answer_to(cluster: Cluster, topic: str, batch: bytes) -> int:
    """The error code of a Produce."""
    part = ProduceRequestPartitionProduceData(index=0, records=batch)
    data = ProduceRequestTopicProduceData(name=topic, partition_data=(part,))
    request = ProduceRequest(acks=-1, timeout_ms=9000, topic_data=(data,))
    answer = await cluster.ask(request, (9, 9))
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


async def odd_topic(cluster: Cluster, name: str) -> str:
    topic = await topic_for_any_time(cluster, name)
    for what, odd in TAKEN.items():
        for codec in (0, 1) if odd.compressible else (0,):
            batch = raw_batch(odd.payload, 3, codec=codec)
            assert await answer_to(cluster, topic, batch) == 0, what
    return topic


# -- ways of reading ------------------------------------------------------------------------------


def read(record: Any) -> Read:
    headers = tuple((name, content) for name, content in record.headers)
    times = record.timestamp, record.timestamp_type
    return Read(record.offset, *times, record.key, record.value, headers)


async def one_by_one(consumer: Any) -> list[Read]:
    return [read(await consumer.getone())]


async def in_a_loop(consumer: Any) -> list[Read]:
    found: list[Read] = []
    async for record in consumer:
        found.append(read(record))
        if len(found) == COUNT:
            break
    return found


async def in_lists(consumer: Any) -> list[Read]:
    taken = await consumer.getmany(timeout_ms=1000)
    return [read(each) for records in taken.values() for each in records]


async def in_views(consumer: Any) -> list[Read]:
    taken = await consumer.getbatches(timeout_ms=1000)
    return [read(each) for view in taken.values() for each in view.records()]


async def in_arrow(consumer: Any) -> list[Read]:
    found: list[Read] = []
    for view in (await consumer.getbatches(timeout_ms=1000)).values():
        batch = view.to_arrow()
        batch.validate(full=True)
        for row, at_ms in zip(
            batch.drop_columns("timestamp").to_pylist(), view.timestamps, strict=True
        ):
            headers = tuple((each["key"], each["value"]) for each in row["headers"] or ())
            fields = row["timestampType"], row["key"], row["value"]
            found.append(Read(row["offset"], at_ms, *fields, headers))
    return found


WAYS: dict[str, Callable[[Any], Awaitable[list[Read]]]] = {
    "one by one": one_by_one,
    "in a loop": in_a_loop,
    "in lists": in_lists,
    "in views": in_views,
    "in Arrow": in_arrow,
}


async def all_by(consumer: Any, way: Callable[[Any], Awaitable[list[Read]]]) -> list[Read]:
    found: list[Read] = []
    async with asyncio.timeout(30):
        while len(found) < COUNT:
            found += await way(consumer)
    return found


async def by_the_swap(cluster: Cluster, topic: str) -> list[Read]:
    swapped = AIOKafkaConsumer(
        bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest", group_id=None
    )
    await swapped.start()
    try:
        swapped.assign([aiokafka.TopicPartition(topic, 0)])
        return await all_by(swapped, in_lists)
    finally:
        await swapped.stop()


async def test_every_way_hands_out_what_java_does(cluster: Cluster, compiled: bool) -> None:
    topic = await odd_topic(cluster, f"odd-{compiled}".lower())
    found: dict[str, list[Read]] = {}
    for name, way in WAYS.items():
        settings: Any = {"bootstrap_servers": cluster.bootstrap, "auto_offset_reset": "earliest"}
        async with Consumer[Any, Any](**settings) as consumer:
            consumer.assign([(topic, 0)])
            found[name] = await all_by(consumer, way)
    found["the swap"] = await by_the_swap(cluster, topic)
    if cluster.kind != "mock":
        with skip_without_kafka():
            found["Java"] = await anyio.to_thread.run_sync(
                read_by_java, cluster.kind, cluster.bootstrap, topic
            )
    wanted = found["in lists"]
    assert len(wanted) == COUNT
    assert {"caf\ufffd", "a\ufffdb"} <= {name for each in wanted for name, _ in each.headers}
    assert {name: each for name, each in found.items() if each != wanted} == {}


def clients(cluster: Cluster, name: str) -> dict[str, Any]:
    """The consumer and the producer of a processor."""
    at: Any = {"bootstrap_servers": cluster.bootstrap}
    consumer: Consumer[Any, Any] = Consumer(
        group_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        **at,
    )
    return {"consumer": consumer, "producer": Producer(transactional_id=name, **at)}


async def test_a_processor_goes_on_behind_a_name_that_is_not_utf_8(cluster: Cluster) -> None:
    topic = await topic_for_any_time(cluster, "odd-in")
    out, dead = [await topic_for_any_time(cluster, name) for name in ("odd-out", "odd-dead")]
    rows = [
        raw_record(
            at, field(b"%d" % at), headers=[field(b"caf\xe9") + field(b"x")] if at == 1 else ()
        )
        for at in range(3)
    ]
    assert await answer_to(cluster, topic, raw_batch(b"".join(rows), 3)) == 0
    at: Any = {"bootstrap_servers": cluster.bootstrap}
    seen: list[tuple[str, ...]] = []
    processor: Any

    def function(record: Any) -> ProducerRecord:
        seen.append(tuple(name for name, _ in record.headers))
        if record.value == b"1":
            raise ValueError("a dead letter")
        if record.value == b"2":
            asyncio.get_running_loop().create_task(processor.stop())
        return ProducerRecord(out, value=record.value)

    processor = ExactlyOnceProcessor(
        topic,
        function,
        dead_letter_topic=dead,
        **clients(cluster, topic),
    )
    async with asyncio.timeout(30), processor:
        await processor.run()
    assert seen == [(), ("caf\ufffd",), ()]
    async with (
        asyncio.timeout(20),
        Consumer[Any, Any](auto_offset_reset="earliest", **at) as letters,
    ):
        letters.assign([(dead, 0)])
        letter = await letters.getone()
    assert letter.value == b"1"
    assert letter.headers[0] == ("caf\ufffd", b"x")


async def test_a_record_that_cannot_be_read_is_a_dead_letter_of_the_processor(
    cluster: Cluster, compiled: bool
) -> None:
    topic = await topic_for_any_time(cluster, f"letters-{compiled}".lower())
    out, dead = [await topic_for_any_time(cluster, f"{topic}-{end}") for end in ("out", "dead")]
    odd = raw_record(1 << 20, field(b"odd"), headers=[field(b"h") + field(b"x")])
    values = raw_record(0, field(b"0")) + odd + raw_record(2, field(b"2"))
    assert await answer_to(cluster, topic, raw_batch(values, 3)) == 0
    assert await answer_to(cluster, topic, raw_batch(raw_record(0, field(b"3")), 1)) == 0
    at: Any = {"bootstrap_servers": cluster.bootstrap}
    processor: Any

    def function(record: Any) -> ProducerRecord:
        if record.value == b"3":
            processor.request_stop()
        return ProducerRecord(out, value=record.value)

    processor = ExactlyOnceProcessor(
        topic,
        function,
        dead_letter_topic=dead,
        **clients(cluster, topic),
    )
    async with asyncio.timeout(30), processor:
        await processor.run()
    async with (
        asyncio.timeout(20),
        Consumer[Any, Any](
            auto_offset_reset="earliest", isolation_level="read_committed", **at
        ) as reader,
    ):
        reader.assign([(out, 0)])
        assert [(await reader.getone()).value for _ in range(3)] == [b"0", b"2", b"3"]
        reader.assign([(dead, 0)])
        letter = await reader.getone()
    assert (letter.key, letter.value, letter.timestamp) == (b"k", b"odd", FIRST_MS)
    headers = dict(letter.headers)
    assert headers["h"] == b"x"
    assert headers["kip848.errors.offset"] == b"1"
    assert headers["kip848.errors.exception.class.name"].endswith(b".RecordUnreadable")


async def test_an_offset_beyond_its_batch_can_be_sought_past(
    cluster: Cluster, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java's consumer hands it out, and leaves out what others have written behind it."""
    if not compiled:
        monkeypatch.delitem(PATHS, True, raising=False)
    topic = await topic_for_any_time(cluster, f"beyond-{compiled}".lower())
    values = b"".join(raw_record(delta, field(b"%d" % delta)) for delta in (0, 1 << 20, 2))
    assert await answer_to(cluster, topic, raw_batch(values, 3)) == 0
    assert await answer_to(cluster, topic, raw_batch(raw_record(0, field(b"next")), 1)) == 0
    found: list[Any] = []
    settings: Any = {"bootstrap_servers": cluster.bootstrap, "auto_offset_reset": "earliest"}
    async with asyncio.timeout(20), Consumer[Any, Any](**settings) as consumer:
        consumer.assign([(topic, 0)])
        while len(found) < 4:
            try:
                found.append((await consumer.getone()).value)
            except RecordUnreadable as err:
                found.append(err.value)
                consumer.seek((err.topic, err.partition), err.offset + 1)
    assert found == [b"0", b"1048576", b"2", b"next"]


@pytest.mark.parametrize(
    "odd",
    [
        raw_record(0, tail=b"xx"),
        raw_record(0, header_count=-1),
        raw_record(0, key=varint(1, 6) + b"k"),
        raw_record(0, since=varint(1, 11)),
        raw_record(0, headers=[varint(-1) + field(b"x")]),
        raw_record(0, varint(99)),
    ],
    ids=["padded", "headers -1", "long number", "long time", "no name", "long value"],
)
async def test_brokers_refuse_what_makes_no_sense(cluster: Cluster, odd: bytes) -> None:
    topic = await topic_for_any_time(cluster, f"refused-{len(odd)}-{odd[-1]}")
    for codec in (0, 1):
        code = await answer_to(cluster, topic, raw_batch(odd, 1, codec=codec))
        assert code == ErrorCode.INVALID_RECORD


ROWS = b"".join(raw_record(delta, field(b"%d" % delta)) for delta in range(3))
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
TAILS_TAKEN = {
    "gzip and garbage": (GZIP, gzip.compress(ROWS, mtime=0) + bytes(40)),
    "snappy and 3 bytes": (SNAPPY, pack(SNAPPY, ROWS) + b"abc"),
    "lz4 and garbage": (LZ4, pack(LZ4, ROWS) + b"garbage"),
    "lz4 and half a frame": (LZ4, pack(LZ4, ROWS) + pack(LZ4, ROWS)[:-9]),
    "lz4 that ends with an empty block": (LZ4, pack(LZ4, ROWS)[:-4] + b"\0\0\0\x80"),
    "zstd and half a header": (ZSTD, pack(ZSTD, ROWS) + b"\x28\xb5"),
    "zstd and half a frame to be skipped": (ZSTD, pack(ZSTD, ROWS) + b"\x50\x2a\x4d\x18\5\0\0\0h"),
}
TAILS_REFUSED = {
    "snappy and 4 bytes": (SNAPPY, pack(SNAPPY, ROWS) + bytes(4)),
    "snappy and half a header": (SNAPPY, pack(SNAPPY, ROWS) + b"\x82SNAPPY\0"),
    "lz4 of blocks that depend on each other": (LZ4, bytes(cramjam.lz4.compress(ROWS))),
    "lz4 behind a frame to be skipped": (LZ4, b"\x50\x2a\x4d\x18\0\0\0\0" + pack(LZ4, ROWS)),
    "zstd and garbage": (ZSTD, pack(ZSTD, ROWS) + b"abc"),
}


async def test_what_follows_compressed_records_is_left_out(
    cluster: Cluster, compiled: bool
) -> None:
    topic = await topic_for_any_time(cluster, f"tails-{compiled}".lower())
    for what, (codec, payload) in TAILS_TAKEN.items():
        batch = raw_batch(payload, 3, attributes=codec)
        assert await answer_to(cluster, topic, batch) == 0, what
    found: list[Any] = []
    settings: Any = {"bootstrap_servers": cluster.bootstrap, "auto_offset_reset": "earliest"}
    async with asyncio.timeout(20), Consumer[Any, Any](**settings) as consumer:
        consumer.assign([(topic, 0)])
        while len(found) < 3 * len(TAILS_TAKEN):
            found += [each.value for each in await in_lists(consumer)]
    assert found == [b"0", b"1", b"2"] * len(TAILS_TAKEN)


@pytest.mark.parametrize("what", TAILS_REFUSED)
async def test_brokers_refuse_what_cannot_be_unpacked(cluster: Cluster, what: str) -> None:
    codec, payload = TAILS_REFUSED[what]
    topic = await topic_for_any_time(cluster, f"tail-{codec}-{len(payload)}-{payload[-1]}")
    code = await answer_to(cluster, topic, raw_batch(payload, 3, attributes=codec))
    assert code == ErrorCode.UNKNOWN_SERVER_ERROR
