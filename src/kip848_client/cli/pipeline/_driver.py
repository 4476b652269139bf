"""A pipeline of the demo, in a process of its own so that it can really be killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kip848_client.errors import Kip848Error

__all__ = ["Driver"]

_LEAVE_S: Final = 60


class Driver:
    """Runs ``kip848 pipeline run FILE --json`` and reads its output. It is killed together with
    this process."""

    def __init__(
        self,
        file: Path,
        on_line: Callable[[dict[str, Any]], None],
        folder: Path | None = None,
        temporary: Path | None = None,
    ) -> None:
        """``folder`` is where it runs; ``None``: here. ``temporary`` is for its temporary files and
        Spark's, which stay when it is killed; ``None``: where all programs have theirs."""
        self._file = file
        self._folder = folder
        self._temporary = temporary
        self._on_line = on_line
        self._process: asyncio.subprocess.Process | None = None
        self._listening: list[asyncio.Task[None]] = []
        self._errors: deque[str] = deque(maxlen=400)
        self.batches = 0
        """Ended since this process began."""

    async def start(self) -> None:
        """Begin, or begin again."""
        self.batches = 0
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "kip848_client.cli.pipeline", str(self._file)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._folder,
            env=self._environment(),
            start_new_session=True,  # so that Spark dies with it
        )
        self._listening = [
            asyncio.create_task(self._listen(self._process)),
            asyncio.create_task(self._listen_to_errors(self._process)),
        ]

    def _environment(self) -> dict[str, str] | None:
        if self._temporary is None:
            return None
        place = str(self._temporary)
        java = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -Djava.io.tmpdir={place}".strip()
        ours = {"TMPDIR": place, "SPARK_LOCAL_DIRS": place, "SPARK_SUBMIT_OPTS": java}
        return os.environ | ours

    async def check(self) -> None:
        """Raises ``Kip848Error`` when it has ended by itself, with all that it has said."""
        process = self._process
        if process is not None and process.returncode is not None:
            await self._heard()
            told = "\n".join(self._errors)
            raise Kip848Error(f"the pipeline ended with code {process.returncode}:\n{told}")

    async def kill(self) -> None:
        """As a machine does that loses its power: the program, Spark and all."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            await self._heard()

    async def stop(self) -> int:
        """Have it stop in order; its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _LEAVE_S)
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        await self._heard()
        return process.returncode or 0

    async def _heard(self) -> None:
        """Workers of Spark may have the pipe still: nothing more is worth waiting for."""
        _, pending = await asyncio.wait(self._listening, timeout=2)
        for task in pending:
            task.cancel()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue  # a line cut short by the kill
            self.batches = said.get("batches", self.batches)
            self._on_line(said)

    async def _listen_to_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self._errors.append(line.decode(errors="replace").rstrip())
