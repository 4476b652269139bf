"""Processes of a demo: what they say, one JSON object a line, and how they end.

A child that is asked to stop does so cleanly. If its standard input ends without that, the parent
has died in some way, and the child exits at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

__all__ = ["Child", "farewell", "killed_with_parent", "say"]

_FAREWELL_S: Final = 5.0
_TOLD: Final = b"end\n"
_ORPHAN: Final = 3
"""Exit code of a child whose parent has died."""


def say(message: dict[str, Any]) -> None:
    """In the child: send a line to the parent. Does not return if the parent has died."""
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(_ORPHAN)


async def farewell() -> None:
    """In the child: wait for the request to stop. Does not return if the parent has died: the
    broker may have died as well, and a clean stop could wait minutes for it."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    if await reader.read() != _TOLD:
        os._exit(_ORPHAN)


def killed_with_parent() -> None:
    """In a child that leads its own process group: start a thread that kills the group when
    standard input ends."""

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait, name="parent", daemon=True).start()


class Child:
    """In the parent: a process that runs the module ``module``. ``hear`` gets what it says."""

    def __init__(self, module: str, hear: Callable[[dict[str, Any]], None]) -> None:
        self._module = module
        self._hear = hear
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None
        self._may_end = False

    async def start(self, *arguments: str) -> None:
        """Begin it. Its end is heard as an ``error`` if nobody asked for it."""
        self._may_end = False
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self._module,
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        self._listening = asyncio.get_running_loop().create_task(self._listen(self._process))

    async def end(self) -> bool:
        """Let it end by itself; kill it when it does not. False if none runs."""
        if self._process is None or self._process.stdin is None:
            return False
        self._may_end = True
        with suppress(OSError):  # it has ended by itself
            self._process.stdin.write(_TOLD)
            self._process.stdin.close()
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _FAREWELL_S)
        finally:  # also if the waiting task is cancelled
            if self._process.returncode is None:
                with suppress(ProcessLookupError):
                    self._process.kill()
            await self._ended()
        return True

    async def kill(self) -> bool:
        """Kill it (SIGKILL): it cannot say or close anything. False if none runs."""
        if self._process is None:
            return False
        self._may_end = True
        with suppress(ProcessLookupError):  # it has ended by itself
            self._process.kill()
        await self._process.wait()
        await self._ended()
        return True

    async def _ended(self) -> None:
        if self._listening is not None:
            await self._listening  # what it said before its end still counts
        self._process = None

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # a line cut short by the kill
            self._hear(said)
        if not self._may_end:
            self._hear({"error": "the process has ended by itself"})
