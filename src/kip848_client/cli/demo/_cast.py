"""The members as the demo sees them: child processes, what they say, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kip848_client.cli._children import Child
from kip848_client.cli.demo._board import Row

__all__ = ["Player"]


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
        self._child = Child("kip848_client.cli.demo", self._hear)
        self._settled = asyncio.Event()  # in the group, or failed

    async def enter(self, bootstrap: str, topic: str, group: str, events: str | None) -> None:
        """Start the process. ``events`` is a file for what happens to its membership."""
        self._state = "starting"
        self._settled.clear()
        recorded = () if events is None else ("--events", events)
        place = ("--bootstrap", bootstrap, "--topic", topic, "--group", group)
        await self._child.start("--name", self.name, *place, *recorded)

    async def joined(self, within_s: float) -> None:
        """Return when it is in the group, or will not be: it has failed, or the time is over."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), within_s)

    async def leave(self) -> None:
        """Let it commit and leave the group; kill it when it does not."""
        if await self._child.end():
            self._ended("left")

    async def crash(self) -> None:
        """Kill it (SIGKILL): it cannot commit, leave, or close its connections politely."""
        if await self._child.kill():
            self._ended("killed")

    @property
    def row(self) -> Row:
        """The member as the board shows it."""
        return Row(self.name, self._state, self._epoch, self._partitions, self._consumed)

    def _ended(self, how: str) -> None:
        self._state, self._epoch, self._partitions = how, None, ()

    def _hear(self, said: dict[str, Any]) -> None:
        if "records" in said:
            for partition, offsets in said["records"].items():
                self._consumed += len(offsets)
                self._on_records(int(partition), offsets)
        elif "error" in said:
            self.error = self.error or said["error"]
            self._state = "failed"
            self._settled.set()
        else:
            self.member_id = said["member"]
            self._state, self._epoch = said["state"], said["epoch"]
            self._partitions = tuple(said["partitions"])
            if self._epoch is not None:
                self._settled.set()
