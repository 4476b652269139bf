"""The way of a record from ``send`` into a batch: what users pass, and what happens meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from enum import Enum, StrEnum
from typing import Any

import pytest
import pytest_asyncio

from kip848_client import (
    BrokerError,
    ConfigError,
    LocalProtocolError,
    ProducerFailed,
    RecordTooLarge,
    TopicPartition,
    Transaction,
)
from kip848_client.core.produce import ProducerCore
from kip848_client.core.wire.messages.transactions import EndTxnRequest
from tests.unit.producer.fake_network import Offline, offline
from tests.unit.waiting import some_rounds, until

pytestmark = pytest.mark.asyncio

T0 = TopicPartition("t", 0)


class Name(StrEnum):
    TOPIC = "t"
    TRACE = "trace"


class OldName(str, Enum):  # noqa: UP042 - as people had them before StrEnum
    TOPIC = "t"
    TRACE = "trace"


class Number:
    """As numpy's are."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


@pytest_asyncio.fixture
async def plain(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Offline]:
    async with offline(monkeypatch, partitions=3, linger_ms=0) as one:
        yield one


def ends(one: Offline) -> list[bool]:
    """Whether each transaction was committed."""
    asked = [each.request for each in one.broker.requests("EndTxn")]
    return [each.committed for each in asked if isinstance(each, EndTxnRequest)]


class TestWhatUsersPass:
    @pytest.mark.parametrize("names", [Name, OldName])
    async def test_names_of_enumerations(self, plain: Offline, names: Any) -> None:
        place = await plain.producer.send_and_wait(
            names.TOPIC, b"0", partition=0, headers=[(names.TRACE, b"1")]
        )
        assert type(place.topic) is str
        assert place.topic_partition == T0
        assert await plain.producer.partitions_for(names.TOPIC) == {0, 1, 2}

    async def test_headers_of_all_kinds(self, plain: Offline) -> None:
        kinds: list[Any] = [
            (("h", b"%d" % n) for n in range(2)),
            {"h": b"1"}.items(),
            [["h", bytearray(b"1")], ("h", memoryview(b"2")), ("", None)],
            (),
            {},
        ]
        for headers in kinds:
            await plain.producer.send_and_wait("t", b"0", headers=headers)

    @pytest.mark.parametrize(
        "headers", [[("h",)], [("h", "text")], [(b"h", b"1")], "ab", 5, [5], [("\ud800", b"")]]
    )
    async def test_headers_that_are_none(self, plain: Offline, headers: Any) -> None:
        with pytest.raises(ConfigError, match="headers are a list of"):
            await plain.producer.send("t", b"0", headers=headers)

    async def test_a_header_larger_than_a_request(self, plain: Offline) -> None:
        with pytest.raises(RecordTooLarge, match="max_request_size=1048576"):
            await plain.producer.send("t", b"0", headers=[("h", b"x" * 1_100_000)])

    @pytest.mark.parametrize("time_ms", [-1, 1.5, True, "now", 1 << 63])
    async def test_times_that_are_none(self, plain: Offline, time_ms: Any) -> None:
        with pytest.raises(ConfigError, match="timestamp_ms is an int of ms since 1970"):
            await plain.producer.send("t", b"0", timestamp_ms=time_ms)

    async def test_a_clock_before_1970(
        self, plain: Offline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(time, "time", lambda: -1.5)
        with pytest.raises(LocalProtocolError, match="before 1970"):
            await plain.producer.send("t", b"1")
        await plain.producer.send_and_wait("t", b"2", timestamp_ms=7)
        assert [each.value for each in plain.broker.records("t")] == [b"2"]

    async def test_times(self, plain: Offline) -> None:
        producer = plain.producer
        times: list[Any] = [0, Number(5)]
        for time_ms in times:
            await producer.send_and_wait("t", b"0", partition=0, timestamp_ms=time_ms)
        assert [each.timestamp_ms for each in plain.broker.records("t")] == [0, 5]
        with pytest.raises(BrokerError, match="INVALID_RECORD"):
            await producer.send_and_wait("t", b"0", timestamp_ms=(1 << 63) - 1)

    @pytest.mark.parametrize("partition", [[0], {}, "0", 3, -1, 1.5])
    async def test_partitions_that_are_none(self, plain: Offline, partition: Any) -> None:
        for _ in range(2):
            with pytest.raises(ConfigError, match=r"partition|there is no"):
                await plain.producer.send("t", b"0", partition=partition)
        assert (await plain.producer.send_and_wait("t", b"0", partition=0)).offset == 0

    async def test_who_made_what_is_not_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        settings: dict[str, Any] = {"value_serializer": lambda value: value}
        async with offline(monkeypatch, **settings) as one:
            with pytest.raises(ConfigError, match="value_serializer has returned 'text', not byt"):
                await one.producer.send("t", "text")
            with pytest.raises(ConfigError, match="a key_serializer makes bytes"):
                await one.producer.send("t", b"0", "text")

    @pytest.mark.parametrize("chosen", [None, 1, -1, "0", [0]])
    async def test_a_partitioner_that_chooses_what_is_not_there(
        self, monkeypatch: pytest.MonkeyPatch, chosen: Any
    ) -> None:
        async with offline(monkeypatch, partitioner=lambda *_: chosen) as one:
            with pytest.raises(ConfigError, match="the partitioner has returned"):
                await one.producer.send("t", b"0")


async def forgetful(block: Transaction[Any, Any], calls: list[Any]) -> None:
    """A mistake, and one that is made in a hurry."""
    async with block as txn:
        await txn.send("t", b"never")
        calls.append(txn.send("t", b"forgotten"))
        await txn.send("t", b"never")
        calls.append(asyncio.create_task(txn.send("t", b"late")))


class TestAtOnce:
    """``put``: without a future, where nothing has to be waited for."""

    async def test_it_is_as_good_as_send(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with offline(monkeypatch, partitions=3, linger_ms=60_000) as one:
            sending = one.producer.sending()
            assert not sending.put("t", b"0", b"k", None, 7), "its partitions are not known yet"
            first = await sending.send("t", b"0", b"k", None, 7, None)
            assert not sending.put("t", b"1", b"k", None, 8), "others have their turn first"
            second = await sending.send("t", b"1", b"k", None, 8, None)
            assert sending.put("t", b"2", b"k", None, 9)
            third = await sending.send("t", b"3", b"k", None, None, None)
            assert sending.put("t", None, b"k", None, None)
            await one.producer.flush()
            places = [each.result() for each in (first, second, third)]
            assert [each.offset for each in places] == [0, 1, 3]
            stored = one.broker.records("t", places[0].partition)
            assert [each.value for each in stored] == [b"0", b"1", b"2", b"3", None]
            assert [each.timestamp_ms for each in stored[:3]] == [7, 8, 9]

    async def test_what_takes_more_than_that_is_left_to_send(self, plain: Offline) -> None:
        await plain.producer.send_and_wait("t", b"0", key=b"k")
        sending = plain.producer.sending()
        assert not sending.put("t", b"1", b"k", None, None), "a batch has to be begun"
        await sending.send("t", b"1", b"k", None, None, None)
        assert not sending.put("t", b"x" * 20_000, b"k", None, None), "it is full"
        assert not sending.put("t", b"2", b"k", 0, None)
        assert not sending.put("t", bytearray(b"2"), b"k", None, None)
        assert not sending.put("t", b"2", "k", None, None)
        with pytest.raises(ConfigError, match="timestamp_ms"):
            sending.put("t", b"2", b"k", None, -5)

    @pytest.mark.parametrize("name", ["key_serializer", "value_serializer", "partitioner"])
    async def test_functions_of_the_user_are_called(
        self, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        settings: dict[str, Any] = {name: bytes.upper if "ser" in name else lambda *_: 0}
        async with offline(monkeypatch, linger_ms=60_000, **settings) as one:
            sending = one.producer.sending()
            await sending.send("t", b"0", b"k", None, None, None)
            assert not sending.put("t", b"1", b"k", None, None)

    async def test_where_nothing_is_sent_any_more_it_says_so(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with offline(monkeypatch, linger_ms=60_000) as one:
            sending = one.producer.sending()
            sent = [await sending.send("t", b"0", b"k", None, None, None) for _ in range(2)]
            task = one.engine.runtime.task
            assert task is not None
            task.cancel()
            await asyncio.wait([task])
            with pytest.raises(ProducerFailed, match="cancelled from outside"):
                sending.put("t", b"1", b"k", None, None)
            assert all(each.exception() for each in sent)


class TestMeanwhile:
    async def test_others_have_their_turn_while_somebody_sends_without_a_pause(
        self, plain: Offline
    ) -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        await plain.producer.send_and_wait("t", b"0", partition=0)
        task = asyncio.create_task(other())
        await some_rounds(1)
        before = turns
        futures = [await plain.producer.send("t", b"x" * 9_000, partition=0) for _ in range(10)]
        assert turns > before
        task.cancel()
        await asyncio.wait([task])
        await plain.producer.flush()
        assert all(each.done() for each in futures)

    async def test_a_record_that_waits_for_room_does_not_get_into_another_transaction(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings: dict[str, Any] = {
            "buffer_memory": 4_000,
            "max_batch_size": 4_000,
            "transactional_id": "x",
        }
        async with offline(monkeypatch, linger_ms=60_000, **settings) as one:
            may_answer = asyncio.Event()
            one.transport.before = lambda name: may_answer.wait() if name == "Produce" else None
            block = one.producer.transaction()
            await block.__aenter__()
            await block.send("t", b"x" * 3_000)
            late = asyncio.create_task(block.send("t", b"y" * 3_000))
            await until(lambda: one.engine.producing._hungry)
            leaving = asyncio.create_task(block.__aexit__(None, None, None))
            await some_rounds()
            may_answer.set()
            with pytest.raises(LocalProtocolError, match="1 of its records were not sent"):
                await leaving
            with pytest.raises(LocalProtocolError, match="within its block"):
                await late
            async with one.producer.transaction() as txn:
                await txn.send("t", b"0")
            assert ends(one).count(True) == 1, "the first block was aborted"
            assert one.broker.records("t")[-1].value == b"0"

    async def test_a_send_that_nobody_awaits_keeps_the_transaction_from_being_committed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with offline(monkeypatch, transactional_id="x", linger_ms=60_000) as one:
            calls: list[Any] = []
            with pytest.raises(LocalProtocolError, match=r"2 of its records.*await each txn.send"):
                await forgetful(one.producer.transaction(), calls)
            for call in calls:
                with pytest.raises(LocalProtocolError, match="within its block"):
                    await call
            async with one.producer.transaction() as txn:
                sent = [txn.send("t", b"%d" % n) for n in range(3)]
                await asyncio.gather(*sent)
            assert ends(one) == [True]
            assert {each.value for each in one.broker.records("t")} == {b"0", b"1", b"2"}


class TestNothingRunsAnyMore:
    """``send`` must not wait for what will never be told."""

    async def test_after_its_task_was_cancelled(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """As when ``asyncio.run`` ends and somebody has caught the cancellation."""
        async with offline(monkeypatch, linger_ms=60_000) as one:
            producer = one.producer
            open_batch = await producer.send("t", b"0")
            task = one.engine.runtime.task
            assert task is not None
            task.cancel()
            await asyncio.wait([task])
            assert isinstance(open_batch.exception(), ProducerFailed)
            async with asyncio.timeout(1):
                for value in (b"1", b"x" * 20_000):  # into the open batch, and a new one
                    with pytest.raises(ProducerFailed, match="cancelled from outside"):
                        await producer.send_and_wait("t", value)
                with pytest.raises(ProducerFailed):
                    await producer.flush()

    async def test_after_a_bug_of_ours(
        self, plain: Offline, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        producer = plain.producer
        await producer.send_and_wait("t", b"0")

        def step(*_: Any) -> Any:
            raise ZeroDivisionError("boom")

        monkeypatch.setattr(ProducerCore, "step", step)
        async with asyncio.timeout(1):
            with pytest.raises(ProducerFailed, match=r"a bug of its own.*boom"):
                await producer.send_and_wait("t", b"1")
            with pytest.raises(ProducerFailed):
                await producer.send_and_wait("t", b"2")
