"""Events in, at once and in order; the timer; the tasks; the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from kip848_client.runtime._stepping import Stepping
from tests.unit.consumer.fakes import FakeClock
from tests.unit.waiting import some_rounds, until

pytestmark = pytest.mark.asyncio


class StepsHarness:
    """``steps`` has the events in their order; ``then`` is called within each step."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.then: Callable[[str], None] = lambda _event: None
        self.due_ms: int | None = None
        self.clock = FakeClock()
        self.stepping: Stepping[str] = Stepping(
            self._step, lambda: self.due_ms, lambda: "timer", self.clock
        )

    def _step(self, event: str) -> None:
        self.steps.append(event)
        if event == "timer":
            self.due_ms = None
        self.then(event)


@asynccontextmanager
async def running() -> AsyncGenerator[StepsHarness]:
    it = StepsHarness()
    task = asyncio.get_running_loop().create_task(it.stepping.run())
    await it.stepping.begun()
    try:
        yield it
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert not it.stepping.running


async def test_an_event_is_taken_at_once() -> None:
    async with running() as it:
        it.stepping.post("one")
        assert it.steps == ["one"]


async def test_an_event_for_soon_is_taken_in_the_next_turn_or_before_another_one() -> None:
    async with running() as it:
        it.stepping.post_soon("one")
        assert it.steps == []
        await until(lambda: it.steps == ["one"])
        it.stepping.post_soon("two")
        it.stepping.post("three")
        assert it.steps == ["one", "two", "three"]


async def test_an_event_within_a_step_waits_for_its_end() -> None:
    async with running() as it:

        def then(event: str) -> None:
            if event == "one":
                it.stepping.post("two")
                assert it.steps == ["one"]

        it.then = then
        it.stepping.post("one")
        assert it.steps == ["one", "two"]


async def test_events_before_the_run_wait_for_it() -> None:
    it = StepsHarness()
    it.stepping.post("early")
    assert it.steps == []
    task = asyncio.get_running_loop().create_task(it.stepping.run())
    await until(lambda: it.steps == ["early"])
    task.cancel()


async def test_a_timer_of_the_loop_is_heard_at_once_and_its_tasks_are_started() -> None:
    """anyio starts tasks from tasks only; but what a signal pauses must not be handed out."""
    async with running() as it:
        ran: list[bool] = []
        seen: list[list[str]] = []

        async def work() -> None:
            ran.append(True)

        def call() -> None:
            it.stepping.post("late")
            seen.append(list(it.steps))

        it.then = lambda _event: it.stepping.start(work)
        asyncio.get_running_loop().call_soon(call)
        await until(lambda: ran)
        assert seen == [["late"]]


async def test_what_a_timer_starts_is_not_overtaken_by_what_a_task_starts() -> None:
    """Requests to a broker go out in the order in which they were asked for."""
    async with running() as it:
        ran: list[str] = []

        async def work(name: str) -> None:
            ran.append(name)

        it.then = lambda event: it.stepping.start(work, event)
        loop = asyncio.get_running_loop()
        loop.call_soon(it.stepping.post, "timer's")
        late = loop.create_task(_post(it, "task's"))
        await until(lambda: len(ran) == 2)
        assert ran == ["timer's", "task's"]
        await late


async def _post(it: StepsHarness, event: str) -> None:
    it.stepping.post(event)


async def test_the_timer_comes_when_it_is_due_and_moves_with_it() -> None:
    async with running() as it:
        it.due_ms = it.clock.ms + 3_600_000
        it.stepping.post("far")
        await some_rounds()
        it.due_ms = it.clock.ms + 1
        it.stepping.post("near")
        await until(lambda: it.steps == ["far", "near", "timer"])
        it.due_ms = it.clock.ms
        it.stepping.post("now")
        await until(lambda: it.steps[-2:] == ["now", "timer"])
        it.due_ms = it.clock.ms + 1
        it.stepping.post("soon")
        it.due_ms = None
        it.stepping.post("never")
        assert it.stepping._alarm is None


async def test_who_waits_for_a_step_hears_of_it_and_of_the_end() -> None:
    async with running() as it:
        waiting = asyncio.ensure_future(it.stepping.stepped())
        await some_rounds()
        assert not waiting.done()
        it.stepping.post("one")
        await waiting
        again = asyncio.ensure_future(it.stepping.stepped())
        await some_rounds()
        it.stepping.wake_waiters()
        await again
        last = asyncio.ensure_future(it.stepping.stepped())
        await some_rounds()
    await last


async def test_a_bug_ends_the_run_and_no_event_is_taken_after_it() -> None:
    it = StepsHarness()
    task = asyncio.get_running_loop().create_task(it.stepping.run())
    await it.stepping.begun()

    def fail(_event: str) -> None:
        raise ZeroDivisionError("boom")

    it.then = fail
    it.stepping.post("one")
    it.stepping.post("two")
    with pytest.raises(ExceptionGroup) as caught:
        await task
    assert caught.group_contains(ZeroDivisionError)
    it.stepping.post("three")
    assert it.steps == ["one"]


async def test_a_step_that_is_interrupted_ends_the_run_too() -> None:
    it = StepsHarness()
    task = asyncio.get_running_loop().create_task(it.stepping.run())
    await it.stepping.begun()

    def interrupt(_event: str) -> None:
        raise KeyboardInterrupt

    it.then = interrupt
    with pytest.raises(KeyboardInterrupt):
        it.stepping.post("one")
    it.stepping.post("two")
    with pytest.raises(ExceptionGroup) as caught:
        await asyncio.wait_for(task, 5)
    assert caught.group_contains(RuntimeError, match="interrupted")
    assert it.steps == ["one"]
