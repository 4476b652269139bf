"""A pipeline of the demo, in a process of its own so that it can really be killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kip848_client.cli._demo._process import Child
from kip848_client.errors import Kip848Error

__all__ = ["Driver"]


class Driver(Child):
    """Runs ``kip848 pipeline run FILE --json`` and reads its output. It is killed together with
    this process, and together with Spark."""

    stops_within_s = 60.0

    def __init__(
        self,
        file: Path,
        on_line: Callable[[dict[str, Any]], None],
        folder: Path | None = None,
        temporary: Path | None = None,
    ) -> None:
        """
        Args:
            file: the settings of the pipeline.
            on_line: gets each JSON object that it prints.
            folder: where it runs; ``None``: in the current folder.
            temporary: where it and Spark put temporary files, which stay when it is killed;
                ``None``: in the usual place.
        """
        super().__init__("kip848_client.cli.pipeline", self._on_line)
        self._file = file
        self._folder = folder
        self._temporary = temporary
        self._show = on_line
        self._errors: deque[str] = deque(maxlen=400)
        self.batches = 0
        """Batches that ended since this process started."""

    def _on_line(self, message: dict[str, Any]) -> None:
        if "error" in message:
            return  # `check` reports that the process has ended
        self.batches = message.get("batches", self.batches)
        self._show(message)

    async def start(self, *arguments: str, **options: Any) -> None:
        """Start it, for the first time or again."""
        self.batches = 0
        await super().start(
            str(self._file),
            *arguments,
            stderr=asyncio.subprocess.PIPE,
            cwd=self._folder,
            env=self._environment(),
            start_new_session=True,  # so that Spark is killed with it
            **options,
        )
        assert self._process is not None
        self._readers.append(asyncio.create_task(self._read_errors(self._process)))

    def _environment(self) -> dict[str, str] | None:
        if self._temporary is None:
            return None
        place = str(self._temporary)
        java = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -Djava.io.tmpdir={place}".strip()
        ours = {"TMPDIR": place, "SPARK_LOCAL_DIRS": place, "SPARK_SUBMIT_OPTS": java}
        return os.environ | ours

    async def check(self) -> None:
        """Raise ``Kip848Error`` if it has ended by itself, with everything that it printed to
        standard error."""
        process = self._process
        if process is not None and process.returncode is not None:
            await self.read_all()
            errors = "\n".join(self._errors)
            raise Kip848Error(f"the pipeline ended with code {process.returncode}:\n{errors}")

    def _request_stop(self, process: asyncio.subprocess.Process) -> None:
        process.terminate()

    def _send_kill(self, process: asyncio.subprocess.Process) -> None:
        os.killpg(process.pid, signal.SIGKILL)

    async def _read_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self._errors.append(line.decode(errors="replace").rstrip())
