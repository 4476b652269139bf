"""Processes of a demo: they report one JSON object per line on standard output.

A child that is asked to stop leaves its group and exits. If its standard input ends without that
request, the parent has died, and the child exits at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from kip848_client.errors import Kip848Error

__all__ = ["Child", "Process", "killed_with_parent", "report", "run_child", "stop_requested"]

_STOPS_WITHIN_S: Final = 5.0
_READ_WITHIN_S: Final = 2.0
_STOP: Final = b"end\n"
_ORPHAN: Final = 3
"""Exit code of a child whose parent has died."""


def run_child(
    main: Callable[[argparse.Namespace], Coroutine[Any, Any, None]],
    parser: argparse.ArgumentParser,
    argv: list[str] | None,
) -> int:
    """In the child: run it to its end. An error is reported to the parent; the exit code is 1
    then."""
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    try:
        asyncio.run(main(parser.parse_args(argv)))
    except Kip848Error as err:
        report({"error": str(err)})
        return 1
    return 0


def report(message: dict[str, Any]) -> None:
    """In the child: send a message to the parent. Does not return if the parent has died."""
    try:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os._exit(_ORPHAN)


async def stop_requested() -> None:
    """In the child: wait for the request to stop. Does not return if the parent has died: the
    broker may have died as well, and a clean stop could wait minutes for it."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    if await reader.read() != _STOP:
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
    """In the parent: runs ``python -m MODULE`` in a process that can really be killed.

    ``on_message`` gets each message, and ``{"error": ...}`` when the process ends by itself.
    """

    stops_within_s: float = _STOPS_WITHIN_S
    """How long it may take to stop before it is killed."""

    def __init__(self, module: str, on_message: Callable[[dict[str, Any]], None]) -> None:
        self._module = module
        self._on_message = on_message
        self._process: asyncio.subprocess.Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._may_end = False

    async def start(self, *arguments: str, **options: Any) -> None:
        """Start it, for the first time or again. ``options`` are those of ``subprocess.Popen``."""
        self._may_end = False
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", self._module, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            **options,
        )
        self._readers = [asyncio.create_task(self._read(process))]

    async def stop(self) -> bool:
        """Ask it to stop, and kill it if it does not. False if it was not running."""
        process = self._process
        if process is None:
            return False
        self._may_end = True
        with suppress(OSError):  # it has ended by itself
            self._request_stop(process)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), self.stops_within_s)
        finally:  # also if the waiting task is cancelled
            await self._end(process, kills=process.returncode is None)
        return True

    async def kill(self) -> bool:
        """Kill it (SIGKILL): it can neither report nor close anything. False if it was not
        running."""
        process = self._process
        if process is None:
            return False
        self._may_end = True
        await self._end(process, kills=True)
        return True

    def _request_stop(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None
        process.stdin.write(_STOP)
        process.stdin.close()

    def _send_kill(self, process: asyncio.subprocess.Process) -> None:
        process.kill()

    async def _end(self, process: asyncio.subprocess.Process, *, kills: bool) -> None:
        if kills:
            with suppress(ProcessLookupError):  # it has ended by itself
                self._send_kill(process)
        await process.wait()
        await self.read_all()
        self._process = None

    async def read_all(self) -> None:
        """Read what it reported before its end. Its own children may keep the pipe open."""
        _, pending = await asyncio.wait(self._readers, timeout=_READ_WITHIN_S)
        for task in pending:
            task.cancel()

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue  # a line cut short by the kill
            self._on_message(message)
        if not self._may_end:
            self._on_message({"error": "the process has ended by itself"})


R = TypeVar("R")


class Process(ABC, Generic[R]):
    """In the parent: a member of the demo's group. Calls ``changed`` after each message."""

    def __init__(self, name: str, module: str, changed: Callable[[], None]) -> None:
        self.name: Final = name
        self.error = ""
        self.state = "starting"
        self.epoch: int | None = None
        """Its member epoch; ``None`` outside the group."""
        self.is_running = False
        """Whether it should be in the group now."""
        self._changed = changed
        self._child = Child(module, self._receive)

    @property
    @abstractmethod
    def row(self) -> R:
        """The process as the screen shows it."""

    @abstractmethod
    def received(self, message: dict[str, Any]) -> None:
        """Handle a message; state, epoch and errors are handled before."""

    @property
    def is_settled(self) -> bool:
        """Whether it is in the group, or will not be: it has ended or failed."""
        return self.epoch is not None or not self.is_running or self.state == "failed"

    async def start(self, *arguments: str) -> None:
        """Start it, for the first time or again."""
        self.state, self.is_running = "starting", True
        await self._child.start("--name", self.name, *arguments)

    async def stop(self) -> None:
        """Let it leave the group; kill it if it does not."""
        self.is_running = False
        if await self._child.stop():
            self.ended("left")

    async def kill(self) -> None:
        """Kill it: it can neither commit nor leave the group."""
        self.is_running = False
        if await self._child.kill():
            self.ended("killed")

    def ended(self, how: str) -> None:
        """Handle the end of the process."""
        self.state, self.epoch = how, None
        self._changed()

    def _receive(self, message: dict[str, Any]) -> None:
        if "error" in message:
            self.error, self.state = self.error or message["error"], "failed"
        elif "state" in message:
            self.state, self.epoch = message["state"], message["epoch"]
        self.received(message)
        self._changed()
