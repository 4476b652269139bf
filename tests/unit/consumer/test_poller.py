"""What asking for records does besides giving records."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from kip848_client import TopicPartition
from kip848_client.consumer._error_box import ErrorBox
from kip848_client.consumer._poller import Poller
from kip848_client.core.offsets import CommittableOffset, InFlight
from kip848_client.errors import ConsumerClosed, Kip848Error, NotAssigned, RecordUnreadable
from kip848_client.records import Decoding
from tests.unit.waiting import until

pytestmark = pytest.mark.asyncio

TP = TopicPartition("t", 0)


class One(NamedTuple):
    """A record, as far as a poller looks at it."""

    offset: int


class FakePath:
    """Records from a list."""

    def __init__(self) -> None:
        self.decoding = Decoding()
        self.records: list[int] = []
        self.endless = False
        self.only: Collection[tuple[str, int]] = ()
        self._in_flight = InFlight()
        self._held = self._in_flight.of(None)
        self.not_assigned: set[tuple[str, int]] = set()
        self.trouble: Exception | None = None
        self.current: Iterator[One] = iter(())
        self.newest: One | None = None
        self._waiters: set[asyncio.Future[None]] = set()

    @property
    def in_flight(self) -> InFlight:
        self._settle()
        return self._in_flight

    def serve(self, holder: object) -> None:
        self.stop_fast_way()
        self._held = self._in_flight.of(holder)

    def take_one(self, only: Collection[tuple[str, int]] = ()) -> One | None:
        self.stop_fast_way()
        self.only = only
        if self.endless:
            return One(1)
        if not self.records:
            return None
        record = One(self.records.pop(0))
        self._held.add(TP, at(record.offset))
        return record

    def take_many(
        self, only: Collection[tuple[str, int]] = (), records_max: int | None = None
    ) -> dict[TopicPartition, list[int]]:
        self.stop_fast_way()
        self.only = only
        taken, self.records = self.records[:records_max], self.records[len(self.records) :]
        if taken:
            self._held.add(TP, at(taken[0]))
        return {TP: taken} if taken else {}

    def take_batches(
        self, only: Collection[tuple[str, int]] = (), records_max: int | None = None
    ) -> dict[TopicPartition, list[int]]:
        return self.take_many(only, records_max)

    def begin_fast_way(self) -> None:
        def rest() -> Iterator[One]:
            while self.endless:
                yield One(1)
            while self.records:
                yield One(self.records.pop(0))

        self.current = rest()

    def stop_fast_way(self) -> None:
        self._settle()
        self.current = iter(())

    def fast_way_failed(self) -> None:
        self.stop_fast_way()

    def _settle(self) -> None:
        if self.newest is not None:
            self._held.clear()
            self._held.add(TP, at(self.newest.offset))
            self.newest = None

    def raise_pending_error(self, _only: Collection[tuple[str, int]] = ()) -> None:
        trouble, self.trouble = self.trouble, None
        if trouble is not None:
            raise trouble

    def require_assigned(self, partitions: Iterable[tuple[str, int]]) -> None:
        for tp in partitions:
            if tp in self.not_assigned:
                raise NotAssigned(str(tp))

    def waiter(self) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(future)
        future.add_done_callback(self._waiters.discard)
        return future

    def wake(self) -> None:
        for future in list(self._waiters):
            if not future.done():
                future.set_result(None)

    def arrive(self, *records: int) -> None:
        self.records += records
        self.wake()


class FakeObserver:
    def __init__(self) -> None:
        self.events: list[str] = []
        self.wants_poll = False

    def polled(self, *, waiting: bool) -> None:
        self.wants_poll = False
        self.events.append("waiting" if waiting else "polled")

    def poll_ended(self) -> None:
        self.events.append("ended")


class PollerHarness:
    def __init__(self, poll_interval_ms: int = 300_000) -> None:
        self.path = FakePath()
        path: Any = self.path
        self.errors = ErrorBox(self._on_error)
        self.poller: Poller[Any, Any] = Poller(path, self.errors, poll_interval_ms=poll_interval_ms)
        self.observer = FakeObserver()
        self.poller.observe(self.observer)

    def _on_error(self) -> None:
        self.poller.attention()
        self.path.wake()


def at(offset: int) -> CommittableOffset:
    return CommittableOffset(offset)


async def one(harness: PollerHarness) -> int:
    """The next record, for a task that iterates."""
    return (await harness.poller.next()).offset


def take(harness: PollerHarness) -> int | None:
    record = harness.poller.take()
    return None if record is None else record.offset


async def test_a_record_that_is_there_is_given_at_once() -> None:
    harness = PollerHarness()
    harness.path.arrive(1, 2)
    assert await one(harness) == 1
    assert take(harness) == 2
    assert harness.observer.events == ["polled"]


async def test_polls_are_folded() -> None:
    harness = PollerHarness()
    harness.path.arrive(*range(100))
    for expected in range(100):
        assert await one(harness) == expected
    assert harness.observer.events == ["polled"]


async def test_a_poll_that_is_wanted_is_not_folded() -> None:
    harness = PollerHarness()
    harness.path.arrive(1, 2, 3)
    await one(harness)
    harness.observer.wants_poll = True
    harness.poller.attention()
    assert take(harness) is None  # the slow way, please
    await one(harness)
    assert harness.observer.events == ["polled", "polled"]


async def test_waiting_is_announced_and_ended() -> None:
    harness = PollerHarness(poll_interval_ms=40)  # so announced after 10 ms
    task = asyncio.get_running_loop().create_task(one(harness))
    await until(lambda: "waiting" in harness.observer.events)
    harness.path.arrive(5)
    assert await task == 5
    assert harness.observer.events == ["polled", "waiting", "ended"]


async def test_a_short_wait_is_not_announced() -> None:
    harness = PollerHarness()
    assert await harness.poller.many((), 0.01, None) == {}
    assert harness.observer.events == ["polled"]


async def test_many_returns_what_comes_in_time() -> None:
    harness = PollerHarness()
    task = asyncio.get_running_loop().create_task(harness.poller.many((TP,), 5, None))
    await asyncio.sleep(0)
    harness.path.arrive(1, 2)
    taken: dict[TopicPartition, list[Any]] = await task
    assert taken == {TP: [1, 2]}
    assert harness.path.only == (TP,)


async def test_a_partition_that_is_not_assigned_is_not_waited_for() -> None:
    harness = PollerHarness()
    task = asyncio.get_running_loop().create_task(harness.poller.one((TP,)))
    await asyncio.sleep(0)
    harness.path.not_assigned.add(TP)  # taken away while the application waits for it
    harness.path.wake()
    with pytest.raises(NotAssigned):
        await task
    with pytest.raises(NotAssigned):
        await harness.poller.many((TP,), 5, None)


async def test_what_ended_the_membership_comes_before_what_is_not_assigned() -> None:
    harness = PollerHarness()
    harness.path.not_assigned.add(TP)
    harness.errors.raise_always(Kip848Error("fenced"))
    with pytest.raises(Kip848Error, match="fenced"):
        await harness.poller.one((TP,))


async def test_an_error_wakes_and_is_raised() -> None:
    harness = PollerHarness()
    task = asyncio.get_running_loop().create_task(one(harness))
    await asyncio.sleep(0)
    harness.errors.raise_once(Kip848Error("refused"))
    with pytest.raises(Kip848Error, match="refused"):
        await task


async def test_an_error_stops_the_fast_way() -> None:
    harness = PollerHarness()
    harness.path.arrive(1, 2, 3)
    await one(harness)
    harness.errors.raise_once(Kip848Error("refused"))
    assert take(harness) is None
    with pytest.raises(Kip848Error, match="refused"):
        await one(harness)
    assert await one(harness) == 2


async def test_records_always_there_let_others_run() -> None:
    harness = PollerHarness()
    ran: list[bool] = []

    async def other() -> None:
        ran.append(True)

    task = asyncio.get_running_loop().create_task(other())
    harness.path.endless = True
    count = 0
    while not ran:
        if take(harness) is None:
            await one(harness)
        count += 1
        assert count < 1_000_000
    await task


async def test_whoever_waits_for_the_application_hears_of_its_return() -> None:
    harness = PollerHarness()
    harness.path.arrive(1, 2)
    await one(harness)
    waiting = asyncio.get_running_loop().create_task(harness.poller.until_done([TP]))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert take(harness) is None  # so the next call goes the slow way
    assert await one(harness) == 2
    assert waiting.done()  # it had its turn before the next record was handed out


async def test_nothing_open_is_nothing_to_wait_for() -> None:
    harness = PollerHarness()
    await harness.poller.until_done([TP])


async def test_closing_refuses_and_wakes() -> None:
    harness = PollerHarness()
    polling = asyncio.get_running_loop().create_task(one(harness))
    await asyncio.sleep(0)
    harness.path.in_flight.of(asyncio.current_task()).add(TP, at(7))
    waiting = asyncio.get_running_loop().create_task(harness.poller.until_done([TP]))
    await asyncio.sleep(0)
    harness.poller.close()
    with pytest.raises(ConsumerClosed):
        await polling
    await waiting
    with pytest.raises(ConsumerClosed):
        await harness.poller.many((), 0, None)
    assert take(harness) is None


async def test_cancelling_a_wait_leaves_nothing_behind() -> None:
    harness = PollerHarness(poll_interval_ms=40)
    task = asyncio.get_running_loop().create_task(one(harness))
    await until(lambda: "waiting" in harness.observer.events)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert harness.observer.events == ["polled", "waiting", "ended"]


# -- who holds what ------------------------------------------------------------------------------


def start(harness: PollerHarness, holds: asyncio.Event) -> asyncio.Task[int]:
    """A task that gets one record, and asks for the next when it is told."""

    async def run() -> int:
        record = await one(harness)
        await holds.wait()
        harness.poller.mark_done(asyncio.current_task())
        return record

    return asyncio.get_running_loop().create_task(run())


async def test_each_task_speaks_for_what_it_has_itself() -> None:
    harness = PollerHarness()
    harness.path.arrive(3, 4, 5)
    go_on = asyncio.Event()
    other = start(harness, go_on)
    await until(lambda: harness.path.in_flight.is_busy([TP]))
    assert await one(harness) == 4
    assert harness.path.in_flight.open() == {TP: at(3)}
    harness.poller.mark_done(asyncio.current_task())
    assert harness.path.in_flight.open() == {TP: at(3)}  # 4 is done, and 3 is not
    assert await one(harness) == 5
    go_on.set()
    assert await other == 3
    assert harness.path.in_flight.open() == {TP: at(5)}


async def test_the_fast_way_is_for_the_task_that_was_served_last() -> None:
    harness = PollerHarness()
    harness.path.arrive(3, 4, 5, 6)
    await one(harness)

    async def other() -> tuple[int | None, int]:
        return take(harness), await one(harness)

    assert await asyncio.get_running_loop().create_task(other()) == (None, 4)
    assert harness.path.in_flight.open() == {TP: at(3)}
    assert take(harness) is None
    assert await one(harness) == 5  # so this task is done with 3
    assert harness.path.in_flight.open() == {TP: at(4)}
    assert take(harness) == 6  # and with 5; the other one has not come back
    assert harness.path.in_flight.open() == {TP: at(4)}


async def test_what_has_stopped_a_partition_is_raised_before_records() -> None:
    harness = PollerHarness()
    harness.path.arrive(3)
    harness.path.trouble = Kip848Error("damaged")
    with pytest.raises(Kip848Error, match="damaged"):
        await one(harness)
    assert await one(harness) == 3


async def test_a_record_that_cannot_be_read_is_left_to_the_slow_way() -> None:
    harness = PollerHarness()
    harness.path.arrive(3, 4)
    await one(harness)

    def broken() -> Iterator[One]:
        raise RecordUnreadable("bad", topic="t", partition=0, offset=4)
        yield One(4)

    harness.path.current = broken()
    assert take(harness) is None
    assert list(harness.path.current) == []
    assert await one(harness) == 4


async def test_several_calls_of_one_task_are_all_open_until_it_calls_again() -> None:
    harness = PollerHarness()
    harness.path.arrive(3, 4)
    me = asyncio.current_task()
    both = await asyncio.gather(harness.poller.one(caller=me), harness.poller.one(caller=me))
    assert [each.offset for each in both] == [3, 4]
    assert harness.path.in_flight.open() == {TP: at(3)}
    harness.poller.mark_done(me)
    assert harness.path.in_flight.open() == {}


async def test_what_an_ended_task_has_is_done_when_anybody_asks() -> None:
    harness = PollerHarness()
    harness.path.arrive(3, 4)
    assert await asyncio.get_running_loop().create_task(one(harness)) == 3
    assert harness.path.in_flight.open() == {TP: at(3)}
    harness.poller.attention()
    assert await one(harness) == 4
    assert harness.path.in_flight.open() == {TP: at(4)}


async def drained(harness: PollerHarness, within_s: float = 5) -> asyncio.Task[None]:
    deadline_s = asyncio.get_running_loop().time() + within_s
    harness.poller.stop(asyncio.current_task(), done=True)
    task = asyncio.get_running_loop().create_task(harness.poller.drain(lambda: deadline_s))
    await asyncio.sleep(0)
    return task


async def test_draining_waits_for_a_task_that_has_a_record() -> None:
    harness = PollerHarness()
    harness.path.arrive(3, 4)
    go_on = asyncio.Event()
    other = start(harness, go_on)
    await until(lambda: harness.path.in_flight.is_busy([TP]))
    draining = await drained(harness)
    assert not draining.done()
    with pytest.raises(ConsumerClosed):
        await one(harness)
    go_on.set()
    await draining
    await other
    assert harness.path.in_flight.open() == {}


async def test_draining_does_not_wait_for_who_stops_nor_for_who_waits_for_records() -> None:
    harness = PollerHarness()
    other = asyncio.get_running_loop().create_task(one(harness))
    await asyncio.sleep(0)
    harness.path.arrive()
    harness.path.in_flight.of(asyncio.current_task()).add(TP, at(3))
    await (await drained(harness))
    assert harness.path.in_flight.open() == {}
    with pytest.raises(ConsumerClosed):
        await other


async def test_what_is_not_done_in_time_stays_open() -> None:
    harness = PollerHarness()
    harness.path.arrive(3)
    other = start(harness, asyncio.Event())
    await until(lambda: harness.path.in_flight.is_busy([TP]))
    await (await drained(harness, within_s=0.01))
    assert harness.path.in_flight.open() == {TP: at(3)}
    other.cancel()


@pytest.mark.parametrize(("how", "open_after"), [("returns", {}), ("raises", {TP: at(3)})])
async def test_how_a_task_ends_decides_what_became_of_its_record(
    how: str, open_after: dict[TopicPartition, CommittableOffset], caplog: pytest.LogCaptureFixture
) -> None:
    harness = PollerHarness()
    harness.path.arrive(3)
    go_on = asyncio.Event()

    async def work() -> None:
        await one(harness)
        await go_on.wait()
        if how == "raises":
            raise ZeroDivisionError

    task = asyncio.get_running_loop().create_task(work())
    await until(lambda: harness.path.in_flight.is_busy([TP]))
    draining = await drained(harness)
    go_on.set()
    await draining
    assert harness.path.in_flight.open() == open_after
    assert ("a task that held records failed" in caplog.text) is (how == "raises")
    await asyncio.gather(task, return_exceptions=True)


async def test_a_task_that_is_cancelled_is_not_done_and_not_waited_for() -> None:
    harness = PollerHarness()
    harness.path.arrive(3)
    task = start(harness, asyncio.Event())
    await until(lambda: harness.path.in_flight.is_busy([TP]))
    task.cancel()
    await (await drained(harness))
    assert harness.path.in_flight.open() == {TP: at(3)}


async def test_a_nearer_deadline_is_noticed() -> None:
    harness = PollerHarness()
    harness.path.arrive(3)
    task = start(harness, asyncio.Event())
    await until(lambda: harness.path.in_flight.is_busy([TP]))
    deadline_s = [asyncio.get_running_loop().time() + 60]
    harness.poller.stop(None, done=True)
    draining = asyncio.get_running_loop().create_task(harness.poller.drain(lambda: deadline_s[0]))
    await asyncio.sleep(0)
    deadline_s[0] = 0
    harness.poller.recheck_deadline()
    await draining
    task.cancel()


async def test_a_second_task_that_stops_is_not_waited_for_either() -> None:
    """The task that holds a record may be the one whose ``async with`` ends."""
    harness = PollerHarness()
    harness.path.arrive(3)

    async def work() -> None:
        await one(harness)
        harness.poller.stop(asyncio.current_task(), done=False)
        await asyncio.Event().wait()

    task = asyncio.get_running_loop().create_task(work())
    await until(lambda: harness.path.in_flight.is_busy([TP]))
    await (await drained(harness))
    assert harness.path.in_flight.open() == {TP: at(3)}
    task.cancel()
