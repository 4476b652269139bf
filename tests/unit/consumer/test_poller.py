"""What asking for records does besides giving records."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import Any

import pytest

from kip848_client import TopicPartition
from kip848_client.consumer._errors import ErrorBox
from kip848_client.consumer._poller import Poller
from kip848_client.errors import ConsumerClosed, Kip848Error, NotAssigned
from kip848_client.offsets import HandOuts
from tests.unit.waiting import until

pytestmark = pytest.mark.asyncio

TP = TopicPartition("t", 0)


class FakeFetch:
    """Records from a list."""

    def __init__(self) -> None:
        self.records: list[int] = []
        self.endless = False
        self.only: Collection[tuple[str, int]] = ()
        self.hand_outs = HandOuts()
        self.hand_out = self.hand_outs.of(None)
        self.not_assigned: set[tuple[str, int]] = set()
        self._waiters: set[asyncio.Future[None]] = set()

    def take_one(
        self, only: Collection[tuple[str, int]] = (), came_back: bool = False
    ) -> int | None:
        self.only = only
        if came_back:
            self.hand_out.clear()
        if self.endless:
            return 1
        if not self.records:
            return None
        self.hand_out.stash()
        self.hand_out.tp, self.hand_out.before = TP, self.records[0]
        return self.records.pop(0)

    def take_many(
        self, only: Collection[tuple[str, int]] = (), records_max: int | None = None
    ) -> dict[TopicPartition, list[int]]:
        self.only = only
        taken, self.records = self.records[:records_max], self.records[len(self.records) :]
        if taken:
            self.hand_out.add(TP, taken[0])
        return {TP: taken} if taken else {}

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
        self.fetch = FakeFetch()
        fetch: Any = self.fetch
        self.errors = ErrorBox(self._on_error)
        self.poller: Poller[int] = Poller(fetch, self.errors, poll_interval_ms=poll_interval_ms)
        self.observer = FakeObserver()
        self.poller.observe(self.observer)

    def _on_error(self) -> None:
        self.poller.attention = True
        self.fetch.wake()


async def test_a_record_that_is_there_is_given_at_once() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(1, 2)
    assert await harness.poller.one() == 1
    assert harness.poller.take() == 2
    assert harness.observer.events == ["polled"]


async def test_polls_are_folded() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(*range(100))
    for expected in range(100):
        assert await harness.poller.one() == expected
    assert harness.observer.events == ["polled"]


async def test_a_poll_that_is_wanted_is_not_folded() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(1, 2, 3)
    await harness.poller.one()
    harness.observer.wants_poll = True
    harness.poller.attention = True
    assert harness.poller.take() is None  # the slow way, please
    await harness.poller.one()
    assert harness.observer.events == ["polled", "polled"]


async def test_waiting_is_announced_and_ended() -> None:
    harness = PollerHarness(poll_interval_ms=40)  # so announced after 10 ms
    task = asyncio.get_running_loop().create_task(harness.poller.one())
    await until(lambda: "waiting" in harness.observer.events)
    harness.fetch.arrive(5)
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
    harness.fetch.arrive(1, 2)
    assert await task == {TP: [1, 2]}
    assert harness.fetch.only == (TP,)


async def test_a_partition_that_is_not_assigned_is_not_waited_for() -> None:
    harness = PollerHarness()
    task = asyncio.get_running_loop().create_task(harness.poller.one((TP,)))
    await asyncio.sleep(0)
    harness.fetch.not_assigned.add(TP)  # taken away while the application waits for it
    harness.fetch.wake()
    with pytest.raises(NotAssigned):
        await task
    with pytest.raises(NotAssigned):
        await harness.poller.many((TP,), 5, None)


async def test_what_ended_the_membership_comes_before_what_is_not_assigned() -> None:
    harness = PollerHarness()
    harness.fetch.not_assigned.add(TP)
    harness.errors.raise_always(Kip848Error("fenced"))
    with pytest.raises(Kip848Error, match="fenced"):
        await harness.poller.one((TP,))


async def test_an_error_wakes_and_is_raised() -> None:
    harness = PollerHarness()
    task = asyncio.get_running_loop().create_task(harness.poller.one())
    await asyncio.sleep(0)
    harness.errors.raise_once(Kip848Error("refused"))
    with pytest.raises(Kip848Error, match="refused"):
        await task


async def test_an_error_stops_the_fast_way() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(1, 2, 3)
    await harness.poller.one()
    harness.errors.raise_once(Kip848Error("refused"))
    assert harness.poller.take() is None
    with pytest.raises(Kip848Error, match="refused"):
        await harness.poller.one()
    assert await harness.poller.one() == 2


async def test_records_always_there_let_others_run() -> None:
    harness = PollerHarness()
    ran: list[bool] = []

    async def other() -> None:
        ran.append(True)

    task = asyncio.get_running_loop().create_task(other())
    harness.fetch.endless = True
    count = 0
    while not ran:
        if harness.poller.take() is None:
            await harness.poller.one()
        count += 1
        assert count < 1_000_000
    await task


async def test_whoever_waits_for_the_application_hears_of_its_return() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(1, 2)
    await harness.poller.one()
    waiting = asyncio.get_running_loop().create_task(harness.poller.until_done([TP]))
    await asyncio.sleep(0)
    assert not waiting.done()
    assert harness.poller.take() is None  # so the next call goes the slow way
    assert await harness.poller.one() == 2
    assert waiting.done()  # it had its turn before the next record was handed out


async def test_nothing_open_is_nothing_to_wait_for() -> None:
    harness = PollerHarness()
    await harness.poller.until_done([TP])


async def test_closing_refuses_and_wakes() -> None:
    harness = PollerHarness()
    polling = asyncio.get_running_loop().create_task(harness.poller.one())
    await asyncio.sleep(0)
    harness.fetch.hand_outs.of(asyncio.current_task()).add(TP, 7)
    waiting = asyncio.get_running_loop().create_task(harness.poller.until_done([TP]))
    await asyncio.sleep(0)
    harness.poller.close()
    with pytest.raises(ConsumerClosed):
        await polling
    await waiting
    with pytest.raises(ConsumerClosed):
        await harness.poller.many((), 0, None)
    assert harness.poller.take() is None


async def test_cancelling_a_wait_leaves_nothing_behind() -> None:
    harness = PollerHarness(poll_interval_ms=40)
    task = asyncio.get_running_loop().create_task(harness.poller.one())
    await until(lambda: "waiting" in harness.observer.events)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert harness.observer.events == ["polled", "waiting", "ended"]


# -- who holds what ------------------------------------------------------------------------------


def start(harness: PollerHarness, holds: asyncio.Event) -> asyncio.Task[int]:
    """A task that gets one record, and asks for the next when it is told."""

    async def run() -> int:
        record = await harness.poller.one()
        await holds.wait()
        harness.poller.came_back(asyncio.current_task())
        return record

    return asyncio.get_running_loop().create_task(run())


async def test_each_task_speaks_for_what_it_has_itself() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(3, 4, 5)
    go_on = asyncio.Event()
    other = start(harness, go_on)
    await until(lambda: harness.fetch.hand_outs.is_busy([TP]))
    assert await harness.poller.one() == 4
    assert harness.fetch.hand_outs.open() == {TP: 3}
    harness.poller.came_back(asyncio.current_task())
    assert harness.fetch.hand_outs.open() == {TP: 3}  # 4 is done, and 3 is not
    assert await harness.poller.one() == 5
    go_on.set()
    assert await other == 3
    assert harness.fetch.hand_outs.open() == {TP: 5}


async def test_the_fast_way_knows_who_asks_too() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(3, 4, 5, 6)
    await harness.poller.one()

    async def take() -> int | None:
        return harness.poller.take()

    assert await asyncio.get_running_loop().create_task(take()) == 4
    assert harness.fetch.hand_outs.open() == {TP: 3}
    assert harness.poller.take() == 5  # so this task is done with 3
    assert harness.fetch.hand_outs.open() == {TP: 4}


async def test_several_calls_of_one_task_are_all_open_until_it_calls_again() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(3, 4)
    me = asyncio.current_task()
    both = await asyncio.gather(harness.poller.one(caller=me), harness.poller.one(caller=me))
    assert list(both) == [3, 4]
    assert harness.fetch.hand_outs.open() == {TP: 3}
    harness.poller.came_back(me)
    assert harness.fetch.hand_outs.open() == {}


async def test_what_an_ended_task_has_is_done_when_anybody_asks() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(3, 4)
    assert await asyncio.get_running_loop().create_task(harness.poller.one()) == 3
    assert harness.fetch.hand_outs.open() == {TP: 3}
    harness.poller.attention = True
    assert await harness.poller.one() == 4
    assert harness.fetch.hand_outs.open() == {TP: 4}


async def drained(harness: PollerHarness, within_s: float = 5) -> asyncio.Task[None]:
    deadline_s = asyncio.get_running_loop().time() + within_s
    harness.poller.stop(asyncio.current_task(), done=True)
    task = asyncio.get_running_loop().create_task(harness.poller.drain(lambda: deadline_s))
    await asyncio.sleep(0)
    return task


async def test_draining_waits_for_a_task_that_has_a_record() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(3, 4)
    go_on = asyncio.Event()
    other = start(harness, go_on)
    await until(lambda: harness.fetch.hand_outs.is_busy([TP]))
    draining = await drained(harness)
    assert not draining.done()
    with pytest.raises(ConsumerClosed):
        await harness.poller.one()
    go_on.set()
    await draining
    await other
    assert harness.fetch.hand_outs.open() == {}


async def test_draining_does_not_wait_for_who_stops_nor_for_who_waits_for_records() -> None:
    harness = PollerHarness()
    other = asyncio.get_running_loop().create_task(harness.poller.one())
    await asyncio.sleep(0)
    harness.fetch.arrive()
    harness.fetch.hand_outs.of(asyncio.current_task()).add(TP, 3)
    await (await drained(harness))
    assert harness.fetch.hand_outs.open() == {}
    with pytest.raises(ConsumerClosed):
        await other


async def test_what_is_not_done_in_time_stays_open() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(3)
    other = start(harness, asyncio.Event())
    await until(lambda: harness.fetch.hand_outs.is_busy([TP]))
    await (await drained(harness, within_s=0.01))
    assert harness.fetch.hand_outs.open() == {TP: 3}
    other.cancel()


@pytest.mark.parametrize(("how", "open_after"), [("returns", {}), ("raises", {TP: 3})])
async def test_how_a_task_ends_decides_what_became_of_its_record(
    how: str, open_after: dict[TopicPartition, int], caplog: pytest.LogCaptureFixture
) -> None:
    harness = PollerHarness()
    harness.fetch.arrive(3)
    go_on = asyncio.Event()

    async def work() -> None:
        await harness.poller.one()
        await go_on.wait()
        if how == "raises":
            raise ZeroDivisionError

    task = asyncio.get_running_loop().create_task(work())
    await until(lambda: harness.fetch.hand_outs.is_busy([TP]))
    draining = await drained(harness)
    go_on.set()
    await draining
    assert harness.fetch.hand_outs.open() == open_after
    assert ("a task that held records failed" in caplog.text) is (how == "raises")
    await asyncio.gather(task, return_exceptions=True)


async def test_a_task_that_is_cancelled_is_not_done_and_not_waited_for() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(3)
    task = start(harness, asyncio.Event())
    await until(lambda: harness.fetch.hand_outs.is_busy([TP]))
    task.cancel()
    await (await drained(harness))
    assert harness.fetch.hand_outs.open() == {TP: 3}


async def test_a_nearer_deadline_is_noticed() -> None:
    harness = PollerHarness()
    harness.fetch.arrive(3)
    task = start(harness, asyncio.Event())
    await until(lambda: harness.fetch.hand_outs.is_busy([TP]))
    deadline_s = [asyncio.get_running_loop().time() + 60]
    harness.poller.stop(None, done=True)
    draining = asyncio.get_running_loop().create_task(harness.poller.drain(lambda: deadline_s[0]))
    await asyncio.sleep(0)
    deadline_s[0] = 0
    harness.poller.hasten()
    await draining
    task.cancel()


async def test_a_second_task_that_stops_is_not_waited_for_either() -> None:
    """The task that holds a record may be the one whose ``async with`` ends."""
    harness = PollerHarness()
    harness.fetch.arrive(3)

    async def work() -> None:
        await harness.poller.one()
        harness.poller.stop(asyncio.current_task(), done=False)
        await asyncio.Event().wait()

    task = asyncio.get_running_loop().create_task(work())
    await until(lambda: harness.fetch.hand_outs.is_busy([TP]))
    await (await drained(harness))
    assert harness.fetch.hand_outs.open() == {TP: 3}
    task.cancel()
