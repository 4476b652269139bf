"""What others put below aiokafka's classes: they wrap or replace ``send`` of the client, or methods
of the coordinator and the sender, and what comes of that is what comes of it in aiokafka."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import errors
from aiokafka.producer.transaction_manager import TransactionState
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.protocol.produce import ProduceRequest, ProduceResponse_v0, ProduceResponse_v2
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from tests.integration.cluster import Cluster
from tests.integration.test_consumer_records import filled

pytestmark = pytest.mark.asyncio

HEARTBEAT, OFFSET_COMMIT, OFFSET_FETCH = 68, 8, 9
NOT_LEADER, TIMED_OUT = 6, 7


def consumer(cluster: Cluster, *topics: str, **settings: Any) -> Any:
    settings.setdefault("enable_auto_commit", False)
    return AIOKafkaConsumer(
        *topics,
        bootstrap_servers=cluster.bootstrap,
        group_id=cluster.unique("below"),
        auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
        **settings,
    )


def producer(cluster: Cluster, **settings: Any) -> Any:
    return AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, **settings)


async def one(consumer: Any) -> Any:
    async with asyncio.timeout(20):
        return await consumer.getone()


async def _all_is_seen(cluster: Cluster, topic: str, seen: list[tuple[Any, Any, Any]]) -> None:
    kept = consumer(cluster, topic)
    send = kept._client.send

    async def wrapped(node_id: Any, request: Any, group: Any = None) -> Any:
        answer = await send(node_id, request, group=group)
        seen.append((node_id, request, answer))
        return answer

    kept._client.send = wrapped
    async with kept:
        assert (await one(kept)).value == b"0-0"
        await kept.commit()
        coordinator = kept._coordinator.coordinator_id
        assert coordinator in {each.nodeId for each in kept._client.cluster.brokers()}
        assert not kept._subscription.subscription.assignment.commit_refresh_needed.is_set()


async def test_who_wraps_send_of_a_consumers_client_sees_its_requests(cluster: Cluster) -> None:
    topic = await filled(cluster, "seen", 1, 3)
    seen: list[tuple[Any, Any, Any]] = []
    await _all_is_seen(cluster, topic, seen)
    assert {HEARTBEAT, OFFSET_COMMIT, OFFSET_FETCH} <= {each.API_KEY for _, each, _ in seen}
    fetches = [each for each in seen if isinstance(each[1], FetchRequest)]
    assert fetches[0][1].topics[0][0] == topic
    assert all(answer.API_KEY == FetchRequest.API_KEY for _, _, answer in fetches)
    rows = [row for _, _, answer in fetches for name, rows in answer.topics for row in rows if name]
    told = next(row for row in rows if row[-1])
    assert told[:4] == (0, 0, 3, 3)  # number, no error, both ends
    assert isinstance(told[-1], bytes)
    assert all(isinstance(node_id, int) for node_id, _, _ in seen)


@asynccontextmanager
async def with_fetches(kept: Any, change: Any) -> AsyncGenerator[None]:
    """While this lasts, ``change`` gets each Fetch answer's rows, and may change them."""
    send = kept._client.send

    async def changed(node_id: Any, request: Any) -> Any:
        answer = await send(node_id, request)
        if answer.API_KEY == FetchRequest.API_KEY:
            for _, rows in answer.topics:
                rows[:] = [change(row) for row in rows]
        return answer

    kept._client.send = lambda node_id, request, group=None: (
        send(node_id, request, group=group) if group else changed(node_id, request)
    )
    yield
    del kept._client.send


async def test_a_fetch_that_others_have_damaged_is_damaged(cluster: Cluster) -> None:
    topic = await filled(cluster, "hurt", 1, 1)

    def damaged(row: Any) -> Any:
        records = bytearray(row[-1] or b"")
        if records:
            records[-1] ^= 0xFF
        return (*row[:-1], bytes(records))

    kept = consumer(cluster, topic)
    changing = with_fetches(kept, damaged)
    await changing.__aenter__()
    async with kept:
        with pytest.raises(errors.CorruptRecordException):
            await one(kept)
        await changing.__aexit__(None, None, None)
        found: list[Any] = []
        while not found:  # it is raised until the bytes came again, within a second
            with contextlib.suppress(errors.CorruptRecordException):
                found.append(await one(kept))
        assert found[0].value == b"0-0"


async def test_an_error_that_others_have_put_into_a_fetch_passes(cluster: Cluster) -> None:
    topic = await filled(cluster, "moved", 1, 3)
    refused: list[Any] = []

    def refuse(row: Any) -> Any:
        if len(refused) < 2:
            refused.append(row)
            return (row[0], NOT_LEADER, *row[2:-1], b"")
        return row

    kept = consumer(cluster, topic)
    async with with_fetches(kept, refuse), kept:
        assert [(await one(kept)).offset for _ in range(3)] == [0, 1, 2]
    assert len(refused) == 2


async def test_a_connection_that_others_break_is_made_again(cluster: Cluster) -> None:
    topic = await filled(cluster, "broken", 1, 1)
    broken: list[Any] = []
    kept = consumer(cluster, topic)
    send = kept._client.send

    async def breaking(node_id: Any, request: Any, group: Any = None) -> Any:
        if request.API_KEY == FetchRequest.API_KEY and len(broken) < 2:
            broken.append(request)
            raise errors.KafkaConnectionError("cut")
        return await send(node_id, request, group=group)

    kept._client.send = breaking
    async with kept:
        assert (await one(kept)).offset == 0
    assert len(broken) == 2


@pytest.mark.parametrize("many", [False, True])
async def test_who_asks_again_and_again_for_what_cannot_be_read_stops_nobody_else(
    cluster: Cluster, *, many: bool
) -> None:
    topic = await filled(cluster, "unread", 1, 1)

    def refuse(_value: bytes | None) -> Any:
        raise ValueError("unreadable")

    async with consumer(cluster, topic, value_deserializer=refuse) as kept:
        raised: list[ValueError] = []

        async def ask_again_and_again() -> None:
            while True:
                try:
                    await (kept.getmany(timeout_ms=100) if many else kept.getone())
                except ValueError as err:
                    raised.append(err)

        asking = asyncio.create_task(ask_again_and_again())
        await asyncio.sleep(1)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        assert len(raised) > 1


@pytest.mark.parametrize("method", ["_send_req", "_do_heartbeat", "_do_fetch_commit_offsets"])
async def test_what_a_replaced_method_of_the_coordinator_raises_is_told(
    cluster: Cluster, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await filled(cluster, "replaced", 1, 1)
    async with consumer(cluster) as kept:

        async def refusing(*_arguments: Any) -> Any:
            raise errors.GroupAuthorizationFailedError("not you")

        monkeypatch.setattr(kept._coordinator, method, refusing)
        kept.subscribe([topic])
        for _ in range(2):
            with pytest.raises(errors.GroupAuthorizationFailedError):
                await one(kept)
        monkeypatch.undo()


async def test_a_code_that_others_answer_for_the_coordinator_is_told(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = await filled(cluster, "coded", 1, 1)

    class Answer:
        error_code = -1

    async with consumer(cluster) as kept:

        async def answering(_request: Any) -> Any:
            return Answer()

        monkeypatch.setattr(kept._coordinator, "_send_req", answering)
        kept.subscribe([topic])
        with pytest.raises(errors.UnknownError):
            await one(kept)
        monkeypatch.undo()
        with pytest.raises(errors.KafkaError):
            await one(kept)


async def test_who_wraps_methods_of_the_coordinator_sees_what_they_are_for(
    cluster: Cluster,
) -> None:
    topic = await filled(cluster, "wrapped", 1, 2)
    tp = TopicPartition(topic, 0)
    kept = consumer(cluster, topic)
    seen: dict[str, list[Any]] = {}

    def wrap(name: str) -> None:
        method = getattr(kept._coordinator, name)

        async def wrapped(*arguments: Any) -> Any:
            found = await method(*arguments)
            seen.setdefault(name, []).append((*arguments, found))
            return found

        setattr(kept._coordinator, name, wrapped)

    for name in ("_do_heartbeat", "_do_commit_offsets", "_do_fetch_commit_offsets"):
        wrap(name)
    async with kept:
        await one(kept)
        await kept.commit()
        assert await kept.committed(tp) == 1
        # by themselves they do what their names say
        assert await kept._coordinator._do_heartbeat()
        await kept._coordinator._do_commit_offsets(None, {tp: OffsetAndMetadata(2, "")})
        assert (await kept._coordinator._do_fetch_commit_offsets([tp]))[tp].offset == 2
    assert (True,) in seen["_do_heartbeat"]
    assert (None, {tp: OffsetAndMetadata(1, "")}, None) in seen["_do_commit_offsets"]
    assert ([tp], {tp: OffsetAndMetadata(1, "")}) in seen["_do_fetch_commit_offsets"]


async def test_records_that_others_answer_for(cluster: Cluster) -> None:
    topic = await filled(cluster, "answered", 1, 0)
    async with producer(cluster) as kept:
        seen: list[Any] = []

        async def answering(_node_id: Any, request: Any) -> Any:
            seen.append(request)
            return ProduceResponse_v2(topics=[(topic, [(0, 0, 70, 999)])], throttle_time_ms=0)

        await kept.send_and_wait(topic, b"warm")
        send, kept.client.send = kept.client.send, answering
        told = await kept.send_and_wait(topic, b"a")
        assert (told.offset, told.timestamp, told.timestamp_type) == (70, 999, 1)
        kept.client.send = send
        assert [isinstance(each, ProduceRequest) for each in seen] == [True]
        assert seen[0].topics[0][0] == topic
        assert seen[0].required_acks == 1
        assert (await kept.send_and_wait(topic, b"b")).offset == 1


async def test_what_is_raised_instead_of_sending_passes_or_is_told(cluster: Cluster) -> None:
    topic = await filled(cluster, "raised", 1, 0)
    settings: dict[str, Any] = {
        "request_timeout_ms": 700,
        "retry_backoff_ms": 20,
        "retry_backoff_max_ms": 50,
    }
    async with producer(cluster, **settings) as kept:
        await kept.send_and_wait(topic, b"warm")
        send, seen = kept.client.send, list[Any]()

        async def once(node_id: Any, request: Any) -> Any:
            seen.append(request)
            if len(seen) == 1:
                raise errors.UnknownTopicOrPartitionError
            return await send(node_id, request)

        kept.client.send = once
        assert (await kept.send_and_wait(topic, b"a")).offset == 1

        async def silent(_node_id: Any, _request: Any) -> Any:
            raise errors.KafkaTimeoutError

        kept.client.send = silent
        with pytest.raises(errors.KafkaTimeoutError):
            await kept.send_and_wait(topic, b"b")

        async def late(_node_id: Any, _request: Any) -> Any:
            return ProduceResponse_v0([(topic, [(0, TIMED_OUT, -1)])])

        kept.client.send = late
        with pytest.raises(errors.RequestTimedOutError, match="REQUEST_TIMED_OUT"):
            await kept.send_and_wait(topic, b"c")
        kept.client.send = send
        assert (await kept.send_and_wait(topic, b"d")).offset == 2


async def test_who_has_sent_a_record_finds_its_leader(cluster: Cluster) -> None:
    topic = await filled(cluster, "led", 1, 0)
    async with producer(cluster) as kept:
        ask = kept.client._ask

        async def late(*asked: Any) -> bool:
            await asyncio.sleep(0.05)
            return bool(await ask(*asked))

        kept.client._ask = late
        await kept.send_and_wait(topic, b"a")
        assert kept.client.cluster.leader_for_partition(TopicPartition(topic, 0)) is not None


async def test_a_mistake_in_what_wraps_the_sender_ends_the_producer(cluster: Cluster) -> None:
    topic = await filled(cluster, "mistaken", 1, 0)
    async with producer(cluster) as kept:
        send, seen = kept._sender._send_produce_req, list[Any]()

        async def wrapped(node_id: int, batches: Any) -> None:
            seen.append((node_id, set(batches)))
            await send(node_id, batches)

        kept._sender._send_produce_req = wrapped
        await kept.send_and_wait(topic, b"a")
        leader = kept.client.cluster.leader_for_partition(TopicPartition(topic, 0))
        assert seen == [(leader, {TopicPartition(topic, 0)})]

        async def mistaken(_node_id: int, _batches: Any) -> None:
            raise KeyError(topic)

        kept._sender._send_produce_req = mistaken
        with pytest.raises(errors.KafkaError, match="Unexpected error during batch delivery"):
            await kept.send_and_wait(topic, b"b")
        kept._sender._send_produce_req = send
        with pytest.raises(errors.KafkaError, match="Unexpected error during batch delivery"):
            await kept.send_and_wait(topic, b"c")


async def test_a_batch_of_the_application_is_one_batch(cluster: Cluster) -> None:
    topic = await filled(cluster, "whole", 1, 0)
    async with producer(cluster) as kept:
        send, sizes = kept._sender._send_produce_req, list[int]()

        async def counting(node_id: int, batches: Any) -> None:
            sizes.append(int.from_bytes(batches[TopicPartition(topic, 0)][57:61]))
            await send(node_id, batches)

        kept._sender._send_produce_req = counting
        for _ in range(3):
            batch = kept.create_batch()
            for number in range(10):
                assert batch.append(key=None, value=b"%d" % number, timestamp=None) is not None
            await (await kept.send_batch(batch, topic, partition=0))
    assert sizes == [10, 10, 10]


async def test_a_record_of_a_batch_has_the_time_that_was_told(cluster: Cluster) -> None:
    topic = await filled(cluster, "timed", 1, 0)
    async with producer(cluster) as sender, consumer(cluster, topic) as kept:
        batch = sender.create_batch()
        told = [batch.append(key=None, value=b"a", timestamp=each) for each in (None, 7)]
        await asyncio.sleep(0.01)
        await (await sender.send_batch(batch, topic, partition=0))
        found = [await one(kept) for _ in told]
        assert [each.timestamp for each in found] == [each.timestamp for each in told]
        assert found[1].timestamp == 7


async def test_a_transaction_whose_beginning_is_cancelled_has_not_begun(cluster: Cluster) -> None:
    async with producer(cluster, transactional_id=cluster.unique("tid")) as kept:
        beginning = asyncio.create_task(kept.begin_transaction())
        await asyncio.sleep(0)
        beginning.cancel()
        await asyncio.gather(beginning, return_exceptions=True)
        assert kept._txn_manager.state is TransactionState.READY
        async with kept.transaction():
            assert kept._txn_manager.state is TransactionState.IN_TRANSACTION
