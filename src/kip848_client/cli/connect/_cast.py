"""The workers as the demo sees them: child processes, what they say, and how they end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kip848_client.cli._children import Child
from kip848_client.cli.connect._board import Row
from kip848_client.cli.connect.core._tally import Tally

__all__ = ["Player"]


class Player:
    """One worker. What it says goes into the ``tally``; ``stirred`` is called after that."""

    def __init__(self, name: str, tally: Tally, stirred: Callable[[], None]) -> None:
        self.name = name
        self.error = ""
        self.is_there = False
        """Whether it is meant to be in the group."""
        self.until_s = 0.0
        """To when the newest assignment keeps what it keeps; 0 when it keeps nothing."""
        self._tally = tally
        self._stirred = stirred
        self._child = Child("kip848_client.cli.connect", self._hear)
        self._state = "-"
        self._generation: int | None = None

    async def enter(self, bootstrap: str, group: str, delay_ms: int, session_ms: int) -> None:
        """Start the process."""
        self._state, self.is_there = "starting", True
        place = ("--bootstrap", bootstrap, "--group", group)
        times = ("--delay-ms", str(delay_ms), "--session-timeout-ms", str(session_ms))
        await self._child.start("--name", self.name, *place, *times)

    async def leave(self) -> None:
        """Let it stop what it runs and leave the group; kill it when it does not."""
        self.is_there = False
        if await self._child.end():
            self._ended("left")

    async def be_killed(self) -> None:
        """Kill it (SIGKILL): nobody is told."""
        self.is_there = False
        if await self._child.kill():
            self._ended("killed")

    @property
    def row(self) -> Row:
        """The worker as the board shows it."""
        return Row(self.name, self._state, self._generation, self._tally.of(self.name))

    @property
    def is_at_rest(self) -> bool:
        """Whether it is in the group, and runs what it is to run."""
        return self._state == "STABLE" and bool(self._tally.of(self.name))

    def _ended(self, how: str) -> None:
        self._tally.gone(self.name, time.monotonic())
        self._state, self._generation, self.until_s = how, None, 0.0
        self._stirred()

    def _hear(self, said: dict[str, Any]) -> None:
        if "error" in said:
            self.error, self._state = self.error or said["error"], "failed"
        elif "state" in said:
            self._state, self._generation = said["state"], said["generation"]
            self.until_s = said["until"]
        for item in said.get("started", ()):
            self._tally.started(self.name, item, said["at"])
        for item in said.get("stopped", ()):
            self._tally.stopped(self.name, item, said["at"])
        self._stirred()
