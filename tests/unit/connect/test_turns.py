"""What the driver of a worker tells its listener while other calls wait, and what the worker says
that it runs. The core says what each test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import pytest

from kip848_client.config import WorkerConfig
from kip848_client.connect import AssignedItem
from kip848_client.connect._observers import WorkerObservers
from kip848_client.connect._worker_driver import WorkerDriver
from kip848_client.connect.core import (
    ItemsStarted,
    ItemsStopped,
    Output,
    StartItems,
    StopItems,
    TellAssignors,
    WorkerEvent,
)
from kip848_client.core.connect import Items, NewWorkerAssignment
from kip848_client.core.member import Event, TimerFired
from kip848_client.runtime.client._event_streams import EventHub
from tests.support.planting import Plant, plant
from tests.unit.consumer.fakes import FakeClock
from tests.unit.waiting import some_rounds, until

pytestmark = pytest.mark.asyncio

A, B = AssignedItem("a"), AssignedItem("b")


class Core:
    """Answers every event with the next commands that it was given, if there are any."""

    deadline_ms: int | None = None
    member_epoch = 1
    closed = False

    def __init__(self) -> None:
        self.next: list[Output] = []
        self.heard: list[Event | WorkerEvent] = []

    def step(self, now_ms: int, event: Event | WorkerEvent) -> Sequence[Output]:
        del now_ms
        self.heard.append(event)
        commands, self.next = self.next, []
        return commands

    def remaining_delay_ms(self, now_ms: int) -> int:
        del now_ms
        return 0


class Listener:
    """Tells what it was told; a call waits while ``gate`` is closed."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[AssignedItem, ...]]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def on_assigned(self, items: tuple[AssignedItem, ...]) -> None:
        self.calls.append(("assigned", items))
        await self.gate.wait()

    async def on_revoked(self, items: tuple[AssignedItem, ...]) -> None:
        self.calls.append(("revoked", items))
        await self.gate.wait()

    async def on_lost(self, items: tuple[AssignedItem, ...]) -> None:
        self.calls.append(("lost", items))


class SlowAssignor:
    def __init__(self, name: str, gate: asyncio.Event, told: list[str]) -> None:
        self._name = name
        self._gate = gate
        self._told = told

    async def on_assignment(self, assignment: NewWorkerAssignment) -> None:
        del assignment
        self._told.append(self._name)
        await self._gate.wait()


class Driver:
    def __init__(self, assignors: int) -> None:
        self.core, self.listener = Core(), Listener()
        self.told: list[str] = []
        names = [f"slow {number}" for number in range(assignors)]
        self.driver = WorkerDriver(
            cast("Any", self.core),
            cast("Any", None),
            self.listener,
            cast(
                "Any",
                {name: SlowAssignor(name, self.listener.gate, self.told) for name in names},
            ),
            FakeClock(),
            WorkerObservers(WorkerConfig.of({"group_id": "c"}), FakeClock(), EventHub()),
            stop_ms=60_000,
            start_ms=60_000,
        )

    def perform(self, *commands: Output) -> None:
        self.core.next += commands
        self.driver.post(TimerFired())

    async def heard(self, event: WorkerEvent) -> None:
        await until(lambda: event in self.core.heard)


@asynccontextmanager
async def driver(assignors: int = 1) -> AsyncGenerator[Driver]:
    it = Driver(assignors)
    task = asyncio.get_running_loop().create_task(it.driver.run())
    await it.driver.begun()
    try:
        yield it
    finally:
        it.listener.gate.set()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_what_was_lost_or_revoked_is_not_assigned_any_more() -> None:
    async with driver() as it:
        it.perform(StartItems(1, (A, B), (A, B)))
        await it.heard(ItemsStarted(1))
        assert it.driver.runs == {A, B}
        it.perform(StopItems(2, (A,), lost=False, last=False))
        await it.heard(ItemsStopped(2))
        assert it.driver.runs == {B}
        it.perform(StopItems(3, (B,), lost=True, last=True))
        await it.heard(ItemsStopped(3))
        assert it.driver.runs == set()
        assert it.listener.calls == [("assigned", (A, B)), ("revoked", (A,)), ("lost", (B,))]


async def test_an_assignor_that_takes_its_time_holds_no_loss_up() -> None:
    """The session ends while it is told of an assignment; the next one is not told any more."""
    async with driver(assignors=2) as it:
        it.perform(StartItems(1, (A,), (A,)))
        await it.heard(ItemsStarted(1))
        it.listener.gate.clear()
        new = NewWorkerAssignment(1, Items(("a",)), 0, 0)
        it.perform(TellAssignors(new))
        await until(lambda: it.told)
        it.perform(StopItems(2, (A,), lost=True, last=True))
        await it.heard(ItemsStopped(2))
        assert it.listener.calls[-1] == ("lost", (A,))
        assert it.told == ["slow 0"]


async def test_a_revocation_does_not_cut_what_an_assignor_is_told() -> None:
    async with driver(assignors=2) as it:
        it.perform(StartItems(1, (A,), (A,)))
        await it.heard(ItemsStarted(1))
        it.listener.gate.clear()
        it.perform(TellAssignors(NewWorkerAssignment(1, Items(), 0, 0)))
        await until(lambda: it.told)
        it.perform(StopItems(2, (A,), lost=False, last=False))
        it.listener.gate.set()
        await it.heard(ItemsStopped(2))
        assert it.told == ["slow 0", "slow 1"]


async def test_a_start_that_waits_for_its_turn_does_not_begin_when_everything_is_lost() -> None:
    """Other workers may run the item by then."""
    async with driver() as it:
        it.listener.gate.clear()
        new = NewWorkerAssignment(1, Items(("a",)), 0, 0)
        it.perform(TellAssignors(new), StartItems(1, (A,), (A,)))
        await some_rounds()
        it.perform(StopItems(2, (A,), lost=True, last=True))
        it.listener.gate.set()
        await it.heard(ItemsStopped(2))
        await it.heard(ItemsStarted(1))
        assert it.listener.calls == []
        assert it.driver.runs == set()
        it.perform(StartItems(3, (A,), (A,)))
        await it.heard(ItemsStarted(3))
        assert it.listener.calls == [("assigned", (A,))]


async def test_a_start_that_runs_is_cut_off_and_the_next_does_not_begin() -> None:
    async with driver() as it:
        it.listener.gate.clear()
        it.perform(StartItems(1, (A,), (A,)), StartItems(2, (B,), (A, B)))
        await until(lambda: bool(it.listener.calls))
        it.perform(StopItems(3, (A, B), lost=True, last=True))
        await it.heard(ItemsStopped(3))
        assert it.listener.calls == [("assigned", (A,)), ("lost", (A,))]
        assert it.driver.runs == set()


@pytest.mark.parametrize(
    ("bug", "test"),
    [
        (
            Plant(WorkerDriver, "_stop", "self.runs.difference_update(started)", "pass"),
            test_what_was_lost_or_revoked_is_not_assigned_any_more,
        ),
        (
            Plant(
                WorkerDriver, "_start", "command.items and call > self._cut_calls", "command.items"
            ),
            test_a_start_that_waits_for_its_turn_does_not_begin_when_everything_is_lost,
        ),
        (
            Plant(
                WorkerDriver, "_start", "command.items and call > self._cut_calls", "command.items"
            ),
            test_a_start_that_runs_is_cut_off_and_the_next_does_not_begin,
        ),
    ],
)
async def test_a_bug_is_seen(
    monkeypatch: pytest.MonkeyPatch, bug: Plant, test: Callable[[], Awaitable[None]]
) -> None:
    plant(monkeypatch, bug)
    with pytest.raises((AssertionError, TimeoutError)):
        await test()
