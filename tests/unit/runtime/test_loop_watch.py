"""The event loop is looked after by a timer of its own."""

from __future__ import annotations

import pytest

from kip848_client.runtime import _loop_watch
from kip848_client.runtime._loop_watch import LoopWatch
from tests.unit.consumer.fakes import FakeClock
from tests.unit.waiting import until

pytestmark = pytest.mark.asyncio


async def test_each_look_tells_how_late_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_loop_watch, "EVERY_MS", 1)
    clock, told = FakeClock(), list[int]()
    watch = LoopWatch(clock, told.append)
    watch.start()
    clock.ms += 1
    await until(lambda: told == [0])
    clock.ms += 7_001
    await until(lambda: 7_000 in told)
    watch.stop()
    count = len(told)
    assert watch._alarm is not None
    assert watch._alarm.cancelled()
    assert len(told) == count
