"""Who runs what, as it really is: nothing runs twice, nothing rests that could run.

A worker that slept for longer than its session cannot know that others run what it runs: what it
does until it has heard of it is excused, and has to end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kip848_client.connect.core import AssignedItem
from kip848_client.core.connect import ITSELF
from mock_coordinator.sim.invariants import Violation

__all__ = ["Checks", "GenerationsMixed", "Runner", "RunsTwice", "Unread"]


class RunsTwice(Exception):
    """An item runs at two workers."""


class GenerationsMixed(Exception):
    """Tasks of two generations of a connector run side by side."""


class Unread(Exception):
    """An item is started whose configuration the worker has not read."""


class Runner(Protocol):
    """A worker, as far as it runs something."""

    @property
    def name(self) -> str:
        """For the trace."""
        ...

    @property
    def runs(self) -> Iterable[AssignedItem]:
        """What was started and not stopped."""
        ...

    @property
    def read_offset(self) -> int:
        """How far it has read what is configured."""
        ...

    @property
    def is_excused(self) -> bool:
        """Whether it sleeps, or has overslept."""
        ...


class Checks:
    """Of one world."""

    def __init__(self) -> None:
        self._runners: list[Runner] = []
        self.starts = 0

    def enter(self, runner: Runner) -> None:
        """It may run something from now on."""
        self._runners.append(runner)

    def leave(self, runner: Runner) -> None:
        """It is gone, and with it what it ran."""
        self._runners.remove(runner)

    def started(self, runner: Runner, items: Iterable[AssignedItem]) -> None:
        """It runs these, too. Raises ``Violation``."""
        for item in items:
            self.starts += 1
            if item.generation > runner.read_offset:  # generations are counted by offsets here
                said = f"{runner.name} has read {runner.read_offset}"
                raise Violation(Unread, f"{item} of {item.generation}, and {said}")
            for other in self._runners:
                if not other.is_excused and not runner.is_excused:
                    _compare(runner, item, other)

    def where(self) -> dict[AssignedItem, str]:
        """What runs, and where."""
        return {item: runner.name for runner in self._runners for item in runner.runs}


def _compare(runner: Runner, item: AssignedItem, other: Runner) -> None:
    for running in other.runs:
        if running.connector != item.connector:
            continue
        if other is not runner and running.task == item.task:
            raise Violation(RunsTwice, f"{item} at {runner.name} and {other.name}")
        if ITSELF not in (item.task, running.task) and running.generation != item.generation:
            said = f"{item} of {item.generation} at {runner.name}"
            rest = f"{running} of {running.generation} at {other.name}"
            raise Violation(GenerationsMixed, f"{said}, {rest}")
