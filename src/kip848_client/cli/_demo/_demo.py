"""Runs a demo: steps in order, one redrawn screen, and an orderly end of all processes."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Generic, TypeVar

from kip848_client.cli._demo._process import Process
from kip848_client.cli._demo._screen import Screen
from kip848_client.cli._output import put_error
from kip848_client.cli._running import run_to_end
from kip848_client.errors import ConfigError, Kip848Error

__all__ = ["Action", "Demo", "Step", "play", "short_sessions"]

_FRAME_S: Final = 0.2


class Action(Enum):
    """The effect of a step on a process."""

    START = auto()
    STOP = auto()
    KILL = auto()


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a script: do this to that process, and print the text after its name."""

    process: str
    action: Action
    text: str
    at_s: float = 0.0
    """The earliest time, in seconds since the start of the demo."""
    waits: bool = True
    """Whether the group must be stable first, in a demo that waits for that."""


P = TypeVar("P", bound=Process[Any])
V = TypeVar("V")


class Demo(ABC, Generic[P, V]):
    """One run of a demo, with a verdict. Subclasses have the script and create the processes."""

    def __init__(self, screen: Screen[Any]) -> None:
        self.screen: Final = screen
        self.processes: Final[dict[str, P]] = {}
        self.changed: Final = asyncio.Event()
        """Set when a process has reported something."""
        self._start_s = time.monotonic()

    @property
    def at_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._start_s

    def news(self, text: str) -> None:
        """Print an event, with the current time of the demo."""
        self.screen.news(self.at_s, text)

    @abstractmethod
    async def script(self) -> V:
        """Perform all steps; the outcome, while the processes still run."""

    @abstractmethod
    def footer(self) -> str:
        """The line below the table, right now."""

    @abstractmethod
    def new_process(self, name: str) -> P:
        """A process that has not been started."""

    @abstractmethod
    async def start_process(self, process: P) -> None:
        """Start it, for the first time or again."""

    async def run(self) -> V:
        """Perform the script, then stop all processes; the outcome."""
        self._start_s = time.monotonic()
        drawing = asyncio.create_task(self._draw())
        try:
            return await self.script()
        finally:
            drawing.cancel()
            await asyncio.gather(*(each.stop() for each in self.processes.values()))
            await asyncio.gather(drawing, return_exceptions=True)

    async def perform(self, step: Step) -> None:
        """Perform one step of the script, and print it."""
        process = self.processes.get(step.process)
        if process is None:
            process = self.processes[step.process] = self.new_process(step.process)
        self.news(f"{step.process} {step.text}")
        if step.action is Action.START:
            await self.start_process(process)
        elif step.action is Action.STOP:
            await process.stop()
        else:
            await process.kill()

    async def settled(self, within_s: float) -> None:
        """Return when every process is in the group or has ended, or when the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not all(each.is_settled for each in self.processes.values()):
                    self.changed.clear()
                    await self.changed.wait()

    async def _draw(self) -> None:
        while True:
            footer = self.footer()
            rows = [each.row for each in self.processes.values()]
            self.screen.draw(self.at_s, rows, footer)
            await asyncio.sleep(_FRAME_S)


def short_sessions(session_ms: int, heartbeat_ms: int) -> dict[str, str]:
    """Broker settings with which a dead member is noticed within the demo. Kafka's own lower bound
    is 45 seconds."""
    return {
        "group.consumer.min.session.timeout.ms": "1000",
        "group.consumer.session.timeout.ms": str(session_ms),
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.heartbeat.interval.ms": str(heartbeat_ms),
    }


def play(command: str, demo: Coroutine[Any, Any, int]) -> int:
    """Run a demo and return its exit code; 1 after an error, which is printed. Raises
    ``ConfigError``."""
    # a retry that succeeds would only distract
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    try:
        return run_to_end(demo)
    except ConfigError:
        raise
    except Kip848Error as err:
        put_error(*f"kip848 {command}: {err}".split("\n"))
        return 1
    except KeyboardInterrupt:
        return 130
