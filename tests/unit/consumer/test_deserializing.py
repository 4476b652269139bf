"""Deserializers that are awaited: nothing is lost or told twice, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kip848_client import TopicPartition
from kip848_client.consumer._deserializing import AT_ONCE_MAX
from kip848_client.consumer._error_box import ErrorBox
from kip848_client.consumer._poller import Poller
from kip848_client.core.fetch import Paused, Resumed, Sought
from kip848_client.errors import ConsumerClosed, LocalProtocolError, NotAssigned, RecordUnreadable
from kip848_client.records import Record
from tests.unit.consumer.fetched import A, B, PathHarness
from tests.unit.waiting import some_rounds, until

pytestmark = pytest.mark.asyncio


class Harness(PathHarness):
    """A poller on a real record path. The deserializer waits until it is ``open``, notes what it
    was called with, and raises what ``raises`` has for a value."""

    def __init__(self, deserializer: Callable[[Any], Awaitable[Any]] | None = None) -> None:
        super().__init__(deserializer or self.deserialize)
        self.open = asyncio.Event()
        self.open.set()
        self.calls: list[bytes] = []
        self.cancelled: list[bytes] = []
        self.raises: dict[bytes, BaseException] = {}
        self.poller: Poller[Any, Any] = Poller(
            self.path, ErrorBox(lambda: None), poll_interval_ms=300_000
        )

    async def deserialize(self, value: bytes) -> str:
        self.calls.append(value)
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled.append(value)
            raise
        if value in self.raises:
            raise self.raises[value]
        return value.decode()

    async def one(self, *only: TopicPartition) -> Any:
        return (await asyncio.wait_for(self.poller.one(only), 5)).value

    async def many(self, timeout_s: float = 0, limit: int | None = None) -> dict[Any, list[Any]]:
        found = await asyncio.wait_for(self.poller.many((), timeout_s, limit), 5)
        return {tp: [each.value for each in records] for tp, records in found.items()}

    def asking(self, *only: TopicPartition) -> asyncio.Task[Record[Any, Any]]:
        return asyncio.create_task(self.poller.one(only))


async def test_records_come_in_order_one_by_one() -> None:
    it = Harness()
    it.grow(A, b"0", b"1", b"2")
    it.begin(A)
    assert [await it.one() for _ in range(3)] == ["0", "1", "2"]
    assert it.calls == [b"0", b"1", b"2"]


async def test_iteration_awaits_each() -> None:
    it = Harness()
    it.grow(A, b"0", b"1")
    it.begin(A)
    taken: list[str] = []
    while len(taken) < 2:
        assert it.poller.take() is None
        taken.append((await it.poller.next()).value)
    assert taken == ["0", "1"]
    assert it.core.position(A) == 2


async def test_a_record_is_made_when_it_is_asked_for() -> None:
    it = Harness()
    it.grow(A, b"0", b"1")
    it.begin(A)
    assert await it.one() == "0"
    assert it.calls == [b"0"]


async def test_many_of_all_partitions() -> None:
    it = Harness()
    it.grow(A, b"a0", b"a1", b"a2")
    it.grow(B, b"b0", b"b1", b"b2")
    it.begin(A, B)
    assert await it.many(limit=4) == {A: ["a0", "a1", "a2"], B: ["b0"]}
    assert it.calls == [b"a0", b"a1", b"a2", b"b0"]
    assert await it.many(limit=4) == {B: ["b1", "b2"]}


async def test_without_a_limit_there_is_one() -> None:
    it = Harness()
    it.grow(A, *[b"x"] * (AT_ONCE_MAX + 1))
    it.begin(A)
    assert len((await it.many())[A]) == AT_ONCE_MAX
    assert len((await it.many())[A]) == 1


async def test_a_call_that_waits_for_records() -> None:
    it = Harness()
    it.grow(A, b"-")
    it.begin(A)
    assert await it.one() == "-"
    one = it.asking()
    await some_rounds()
    it.grow(A, b"0")
    it.serve()
    assert (await asyncio.wait_for(one, 5)).value == "0"
    many = asyncio.create_task(it.many(5.0))
    await some_rounds()
    it.grow(A, b"1")
    it.serve()
    assert await many == {A: ["1"]}


# -- ends ----------------------------------------------------------------------------------------


async def test_a_cancelled_call_loses_nothing() -> None:
    it = Harness()
    it.grow(A, b"0", b"1")
    it.begin(A)
    it.open.clear()
    asking = it.asking()
    await until(lambda: it.calls)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert it.cancelled == [b"0"]
    assert it.core.position(A) == 0
    assert not it.path.in_flight.open()
    it.open.set()
    assert [await it.one(), await it.one()] == ["0", "1"]
    assert it.calls == [b"0", b"0", b"1"]


async def test_what_was_made_before_a_call_was_cancelled_is_not_made_again() -> None:
    gate = asyncio.Event()
    calls: list[bytes] = []

    async def wait_at_1(value: bytes) -> str:
        calls.append(value)
        if value == b"1":
            await gate.wait()
        return value.decode()

    it = Harness(wait_at_1)
    it.grow(A, b"0", b"1", b"2")
    it.begin(A)
    asking = asyncio.create_task(it.many(limit=3))
    await until(lambda: b"1" in calls)
    asking.cancel()
    await asyncio.wait([asking])
    gate.set()
    assert await it.many() == {A: ["0"]}
    assert await it.many() == {A: ["1", "2"]}
    assert calls == [b"0", b"1", b"1", b"2"]


async def test_a_stopped_consumer_waits_for_no_deserializer() -> None:
    it = Harness()
    it.grow(A, b"0")
    it.begin(A)
    it.open.clear()
    one, many = it.asking(), asyncio.create_task(it.many(5.0))
    await until(lambda: it.calls)
    it.poller.stop(None, done=True)
    with pytest.raises(ConsumerClosed):
        await asyncio.wait_for(one, 5)
    assert await many == {}
    assert it.cancelled == [b"0"]
    assert it.core.position(A) == 0


async def test_a_deserializer_may_stop_the_consumer() -> None:
    async def stop(value: bytes) -> str:
        it.poller.stop(asyncio.current_task(), done=True)
        await asyncio.sleep(0)
        return value.decode()

    it = Harness(stop)
    it.grow(A, b"0")
    it.begin(A)
    with pytest.raises(ConsumerClosed):
        await it.one()


# -- errors --------------------------------------------------------------------------------------


async def test_one_that_raises_stops_its_partition() -> None:
    it = Harness()
    it.grow(A, b"0", b"bad", b"2")
    it.grow(B, b"b")
    it.begin(A, B)
    it.raises[b"bad"] = KeyError("no schema")
    assert await it.one(A) == "0"
    for _ in range(2):
        with pytest.raises(RecordUnreadable, match=r"t-0: .* offset 1 .*no schema.*seek") as told:
            await it.one(A)
        assert (told.value.topic, told.value.partition, told.value.offset) == ("t", 0, 1)
        assert isinstance(told.value.__cause__, KeyError)
        assert it.core.position(A) == 1
    assert await it.one() == "b"
    it.post(Sought(A, 2))
    it.serve(waited=True)
    assert await it.one(A) == "2"


async def test_one_that_is_mended_is_not_skipped() -> None:
    it = Harness()
    it.grow(A, b"bad", b"1")
    it.begin(A)
    it.raises[b"bad"] = TimeoutError("the registry does not answer")
    with pytest.raises(RecordUnreadable, match="does not answer"):
        await it.many()
    it.raises.clear()
    assert await it.many() == {A: ["bad", "1"]}


async def test_what_comes_before_it_is_handed_out() -> None:
    it = Harness()
    it.grow(A, b"0", b"bad", b"2")
    it.begin(A)
    it.raises[b"bad"] = ValueError("bad")
    assert await it.many() == {A: ["0"]}
    with pytest.raises(RecordUnreadable):
        await it.many()


async def test_a_cancellation_of_what_it_awaits_is_an_error_of_the_record() -> None:
    """Nobody has cancelled the task: it would end without a word."""
    it = Harness()
    it.grow(A, b"0")
    it.begin(A)
    it.raises[b"0"] = asyncio.CancelledError("a shared request was cancelled")
    with pytest.raises(RecordUnreadable, match="CancelledError: a shared request") as told:
        await it.poller.one()
    assert isinstance(told.value.__cause__, asyncio.CancelledError)
    assert it.core.position(A) == 0


async def test_ctrl_c_is_none() -> None:
    it = Harness()
    it.grow(A, b"0")
    it.begin(A)

    class CtrlC(BaseException):
        pass

    it.raises[b"0"] = CtrlC()
    with pytest.raises(CtrlC):
        await it.poller.one()
    it.raises.clear()
    assert await it.one() == "0"


async def test_one_that_asks_for_records_is_told_so() -> None:
    """It would wait for itself."""
    asks = [True]

    async def curious(value: bytes) -> bytes:
        if asks:
            asks.pop()
            await it.poller.one()
        return value

    it = Harness(curious)
    it.grow(A, b"0")
    it.begin(A)
    with pytest.raises(RecordUnreadable) as told:
        await it.one()
    assert isinstance(told.value.__cause__, LocalProtocolError)
    assert await it.one() == b"0"


# -- what changes while one runs -----------------------------------------------------------------


async def test_a_partition_that_goes_meanwhile_is_not_handed_out() -> None:
    it = Harness()
    it.grow(A, b"a")
    it.grow(B, b"b")
    it.begin(A, B)
    it.open.clear()
    asking = it.asking()
    await until(lambda: it.calls == [b"a"])
    it.release(A)
    it.open.set()
    assert (await asyncio.wait_for(asking, 5)).value == "b"
    assert it.calls == [b"a", b"b"]


async def test_one_that_was_named_and_goes_is_told() -> None:
    it = Harness()
    it.grow(A, b"a")
    it.begin(A)
    it.open.clear()
    asking = it.asking(A)
    await until(lambda: it.calls)
    it.release(A)
    it.open.set()
    with pytest.raises(NotAssigned):
        await asyncio.wait_for(asking, 5)


async def test_a_partition_that_comes_back_begins_where_it_was() -> None:
    it = Harness()
    it.grow(A, b"0", b"1")
    it.begin(A)
    it.open.clear()
    asking = it.asking()
    await until(lambda: it.calls)
    it.release(A)
    it.begin(A)
    it.serve(waited=True)
    it.open.set()
    assert (await asyncio.wait_for(asking, 5)).value == "0"
    assert await it.one() == "1"


async def test_a_pause_holds_what_was_made_back() -> None:
    it = Harness()
    it.grow(A, b"0", b"1")
    it.begin(A)
    it.open.clear()
    asking = it.asking()
    await until(lambda: it.calls)
    it.post(Paused((A,)))
    it.open.set()
    await some_rounds()
    assert not asking.done()
    it.post(Resumed((A,)))
    assert (await asyncio.wait_for(asking, 5)).value == "0"
    assert it.calls == [b"0"]


async def test_a_seek_meanwhile_wins() -> None:
    it = Harness()
    it.grow(A, b"0", b"1", b"2")
    it.begin(A)
    it.open.clear()
    asking = it.asking()
    await until(lambda: it.calls)
    it.post(Sought(A, 2))
    it.serve(waited=True)
    it.open.set()
    assert (await asyncio.wait_for(asking, 5)).value == "2"


async def test_several_tasks_get_each_record_once_and_in_order() -> None:
    it = Harness()
    it.grow(A, *[b"%d" % n for n in range(12)])
    it.begin(A)
    taken: list[str] = []

    async def work() -> None:
        for _ in range(4):
            record = await it.one()
            taken.append(record)

    await asyncio.gather(work(), work(), work())
    assert taken == [str(n) for n in range(12)]
    assert it.calls == [b"%d" % n for n in range(12)]


async def test_a_slow_one_holds_its_partition_up_and_no_other() -> None:
    slow = asyncio.Event()

    async def deserialize(value: bytes) -> str:
        if value == b"a":
            await slow.wait()
        return value.decode()

    it = Harness(deserialize)
    it.grow(A, b"a")
    it.grow(B, b"b")
    it.begin(A, B)
    held = it.asking(A)
    await some_rounds()
    assert await it.one(B) == "b"
    slow.set()
    assert (await held).value == "a"


async def test_views_are_bytes_and_give_records_that_are_awaited() -> None:
    it = Harness()
    it.grow(A, b"0", b"bad", b"2")
    it.begin(A)
    assert await it.one() == "0"
    it.raises[b"bad"] = ValueError("bad")
    (view,) = (await it.poller.batches((), 0, None)).values()
    assert view.values == [b"bad", b"2"]
    with pytest.raises(LocalProtocolError, match="records_async"):
        view.records()
    with pytest.raises(RecordUnreadable, match="offset 1"):
        _ = [each async for each in view.records_async()]
    it.raises.clear()
    assert [(each.offset, each.value) async for each in view.records_async()] == [
        (1, "bad"),
        (2, "2"),
    ]
