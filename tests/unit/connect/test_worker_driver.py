"""The driver of a worker: what is given up before it began to start is not started."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kip848_client.config import WorkerConfig
from kip848_client.connect import AssignedItem
from kip848_client.connect._observers import WorkerObservers
from kip848_client.connect._worker_driver import Requests, WorkerDriver
from kip848_client.connect.core import ItemsStarted, ItemsStopped, StartItems, StopItems
from kip848_client.connect.core._core import Output, WorkerCore
from kip848_client.connect.core._events import WorkerEvent
from kip848_client.core.member import Event
from kip848_client.runtime.client._event_streams import EventHub
from kip848_client.runtime.clock import LoopClock
from tests.support.late_tasks import LateTasks
from tests.unit.waiting import until

pytestmark = pytest.mark.asyncio

ITEMS = (AssignedItem("a"),)


class ScriptedCore:
    """Asks for what the test says."""

    deadline_ms = member_epoch = None

    def __init__(self) -> None:
        self.events: list[Event | WorkerEvent] = []
        self.next: tuple[Output, ...] = ()

    def step(self, _now_ms: int, event: Event | WorkerEvent) -> tuple[Output, ...]:
        self.events.append(event)
        commands, self.next = self.next, ()
        return commands


class Listener:
    def __init__(self) -> None:
        self.calls: list[str] = []

    async def on_assigned(self, _items: Any) -> None:
        self.calls.append("assigned")
        await asyncio.Event().wait()

    def on_revoked(self, _items: Any) -> None:
        self.calls.append("revoked")

    def on_lost(self, _items: Any) -> None:
        self.calls.append("lost")


@pytest.mark.parametrize("has_begun", [False, True])
@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_start_does_not_hold_up_that_everything_is_to_be_stopped(
    monkeypatch: pytest.MonkeyPatch, has_begun: bool, is_lost: bool
) -> None:
    late, core, listener = LateTasks(monkeypatch), ScriptedCore(), Listener()
    driver = WorkerDriver(
        cast("WorkerCore", core),
        cast("Requests", None),
        listener,
        {},
        clock := LoopClock(asyncio.get_running_loop()),
        WorkerObservers(WorkerConfig.of({"group_id": "g"}), clock, EventHub()),
        stop_ms=1_000,
        start_ms=60_000,
    )
    running = asyncio.create_task(driver.run())
    await driver.begun()
    late.hold("" if has_begun else "_start")
    core.next = (StartItems(1, ITEMS, ITEMS),)
    driver.post(cast("Event", "start"))
    await until(lambda: listener.calls if has_begun else late.count)
    core.next = (StopItems(2, ITEMS, lost=is_lost, last=True),)
    driver.post(cast("Event", "stop"))
    late.release()
    await until(lambda: {ItemsStarted(1), ItemsStopped(2)} <= {*core.events[2:]})
    gone = "lost" if is_lost else "revoked"
    assert listener.calls == (["assigned", gone] if has_begun else [])
    assert not driver.runs
    running.cancel()
