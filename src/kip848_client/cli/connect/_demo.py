"""Plays ``kip848 connect demo`` on the embedded coordinator."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TextIO

from kip848_client.cli._demo._demo import Demo, short_sessions
from kip848_client.cli._demo._demo import play as play_demo
from kip848_client.cli._demo._process import Process
from kip848_client.cli._demo._screen import Screen
from kip848_client.cli._output import put_prose
from kip848_client.cli.connect._display import Row, footer_line, table, verdict_lines
from kip848_client.cli.connect._script import CONNECTORS, PATIENCE_S, PAUSE_S, SCRIPT
from kip848_client.cli.connect.core._accounting import Accounting, ItemVerdict
from kip848_client.core.connect import ITSELF, item_name
from kip848_client.errors import Kip848Error

__all__ = ["play"]

_GROUP: Final = "kip848-connect-demo"
_QUIET_S: Final = 0.5
"""A group is stable when nothing has changed for this long."""
_SESSION_MS: Final = 1_500
_CONFIG: Final = short_sessions(_SESSION_MS, 300) | {
    "group.initial.rebalance.delay.ms": "0"  # workers join one after the other, as in the script
}
_ITEMS: Final = tuple(
    item_name(name, task) for name, count in CONNECTORS.items() for task in range(ITSELF, count)
)


class _Worker(Process[Row]):
    """A worker, whose items are in ``accounting``."""

    def __init__(self, name: str, changed: Callable[[], None], accounting: Accounting) -> None:
        super().__init__(name, "kip848_client.cli.connect", changed)
        self.until_s = 0.0
        """How long the newest assignment defers items; 0 if it defers none."""
        self._accounting = accounting

    @property
    def row(self) -> Row:
        """The worker as the screen shows it."""
        return Row(self.name, self.state, self.epoch, self._accounting.of(self.name))

    @property
    def is_stable(self) -> bool:
        """Whether it is in the group and runs its items."""
        return self.state == "STABLE" and bool(self._accounting.of(self.name))

    def ended(self, how: str) -> None:
        """Handle the end of the process and of all its items."""
        self._accounting.gone(self.name, time.monotonic())
        self.until_s = 0.0
        super().ended(how)

    def received(self, message: dict[str, Any]) -> None:
        """Handle items that were started or stopped."""
        self.until_s = message.get("until", self.until_s)
        for item in message.get("started", ()):
            self._accounting.started(self.name, item, message["at"])
        for item in message.get("stopped", ()):
            self._accounting.stopped(self.name, item, message["at"])


class _Demo(Demo[_Worker, ItemVerdict]):
    def __init__(self, bootstrap: str, screen: Screen[Row], delay_ms: int) -> None:
        super().__init__(screen)
        self._bootstrap = bootstrap
        self._delay_ms = delay_ms
        self._accounting = Accounting(_ITEMS)
        self._deferred: tuple[str, ...] = ()

    def new_process(self, name: str) -> _Worker:
        return _Worker(name, self.changed.set, self._accounting)

    async def start_process(self, process: _Worker) -> None:
        place = ("--bootstrap", self._bootstrap, "--group", _GROUP)
        times = ("--delay-ms", str(self._delay_ms), "--session-timeout-ms", str(_SESSION_MS))
        await process.start(*place, *times)

    def footer(self) -> str:
        """Also prints which items are deferred, when that has changed."""
        nowhere = self._accounting.nowhere
        until_s = max((each.until_s for each in self.processes.values()), default=0.0)
        left_s = until_s - time.monotonic()
        deferred = nowhere if left_s > 0 else ()
        if deferred and deferred != self._deferred:
            self.news(f"deferred until {self.at_s + left_s:.1f} s: {' '.join(deferred)}")
        self._deferred = deferred
        return footer_line(self.at_s, nowhere, left_s)

    async def script(self) -> ItemVerdict:
        for step in SCRIPT:
            if step.waits and self.processes:
                await self._stable()
                await asyncio.sleep(PAUSE_S)
            if self._error:
                raise Kip848Error(self._error)
            await self.perform(step)
        await self._stable()
        return self._accounting.verdict()

    async def _stable(self) -> None:
        """Return when every item runs and nothing changes, or when the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S + self._delay_ms / 1000):
                while not self._error and not await self._is_quiet():
                    await self.changed.wait()

    @property
    def _error(self) -> str:
        """The error of a worker that has failed; empty if none has."""
        failed = (f"{each.name}: {each.error}" for each in self.processes.values() if each.error)
        return next(failed, "")

    async def _is_quiet(self) -> bool:
        running = [each for each in self.processes.values() if each.is_running]
        before = [each.row for each in running]
        if self._accounting.nowhere or not all(each.is_stable for each in running):
            self.changed.clear()
            return False
        await asyncio.sleep(_QUIET_S)
        return before == [each.row for each in running]


async def _play(delay_ms: int, out: TextIO) -> int:
    from mock_coordinator import MockBroker

    async with MockBroker(config=_CONFIG) as broker:
        with Screen(out, table) as screen:
            screen.news(0.0, f"{len(CONNECTORS)} connectors, {len(_ITEMS)} items with their tasks")
            short = f"scheduled.rebalance.max.delay.ms is {delay_ms} here (Kafka Connect: 300000)"
            screen.news(0.0, short)
            verdict = await _Demo(broker.bootstrap, screen, delay_ms).run()
    put_prose("", *verdict_lines(verdict))
    return 0 if verdict.good else 1


def play(delay_ms: int) -> int:
    """Run the demo.

    Args:
        delay_ms: ``scheduled.rebalance.max.delay.ms`` of the group.

    Returns:
        The exit code: 0 if every item runs once at the end and none ever ran twice, else 1.
    """
    return play_demo("connect demo", _play(delay_ms, sys.stdout))
