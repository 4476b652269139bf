"""The members as the demo sees them: child processes, what they say, and how they end."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from kip848_client.cli.demo._board import Row

__all__ = ["Player"]

_FAREWELL_S: Final = 5.0


class Player:
    """One member. ``on_records`` is called with a partition and offsets as they are handed out."""

    def __init__(self, name: str, on_records: Callable[[int, list[int]], None]) -> None:
        self.name = name
        self.member_id = ""
        self.error = ""
        self._on_records = on_records
        self._state = "starting"
        self._epoch: int | None = None
        self._partitions: tuple[int, ...] = ()
        self._consumed = 0
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._settled = asyncio.Event()  # in the group, or failed

    async def enter(self, bootstrap: str, topic: str, group: str, events: str | None) -> None:
        """Start the process. ``events`` is a file for what happens to its membership."""
        self._state = "starting"
        self._settled.clear()
        recorded = () if events is None else ("--events", events)
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "kip848_client.cli.demo",
            *("--name", self.name, "--bootstrap", bootstrap, "--topic", topic, "--group", group),
            *recorded,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._listening = asyncio.get_running_loop().create_task(self._listen(self._process))

    async def joined(self, within_s: float) -> None:
        """Return when it is in the group, or will not be: it has failed, or the time is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), within_s)

    async def leave(self) -> None:
        """Let it commit and leave the group; kill it when it does not."""
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), _FAREWELL_S)
        except TimeoutError:
            self._process.kill()
        await self._ended("left")

    async def crash(self) -> None:
        """Kill it (SIGKILL): it cannot commit, leave, or close its connections politely."""
        if self._process is None:
            return
        self._process.kill()
        await self._process.wait()
        await self._ended("killed")

    @property
    def row(self) -> Row:
        """The member as the board shows it."""
        return Row(self.name, self._state, self._epoch, self._partitions, self._consumed)

    async def _ended(self, how: str) -> None:
        if self._listening is not None:
            await self._listening  # what it said before its end still counts
        self._process = None
        self._state, self._epoch, self._partitions = how, None, ()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            try:
                self._hear(json.loads(line))
            except ValueError:
                continue  # a line cut short by the kill

    def _hear(self, said: dict[str, Any]) -> None:
        if "records" in said:
            for partition, offsets in said["records"].items():
                self._consumed += len(offsets)
                self._on_records(int(partition), offsets)
        elif "error" in said:
            self.error = said["error"]
            self._state = "failed"
            self._settled.set()
        else:
            self.member_id = said["member"]
            self._state, self._epoch = said["state"], said["epoch"]
            self._partitions = tuple(said["partitions"])
            if self._epoch is not None:
                self._settled.set()
