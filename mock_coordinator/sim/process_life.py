"""What simulated processes have in common: they stand still, wake up and die."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Generic, Protocol, TypeVar

from mock_coordinator.sim.kernel import Kernel

__all__ = ["NamedProcesses", "ProcessLife"]


class ProcessLife:
    """The life of one process. What is to happen in it while it stands still waits; nothing happens
    in it once it is dead."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.is_alive = True
        self._waiting: list[Callable[[], None]] | None = None
        """What waits while it stands still; ``None`` while it runs."""

    @property
    def is_asleep(self) -> bool:
        """Whether it stands still."""
        return self._waiting is not None

    def enter(self, action: Callable[[], None]) -> None:
        """Do something inside of the process: now, when it wakes up, or never when it is dead."""
        if not self.is_alive:
            return
        if self._waiting is None:
            action()
        else:
            self._waiting.append(action)

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something inside of the process in ``delay_ms``."""
        self._kernel.after(delay_ms, lambda: self.enter(action))

    def sleep(self, for_ms: int) -> None:
        """Stand still for a while, and keep everything."""
        if self.fall_asleep(f"{for_ms} ms"):
            self._kernel.after(for_ms, self.wake)

    def fall_asleep(self, how_long: str = "") -> bool:
        """Stand still until ``wake``, and keep everything (SIGSTOP, a long garbage collection, a
        suspended laptop); returns whether it has run until now."""
        if not self.is_alive or self._waiting is not None:
            return False
        self.on_sleep(how_long)
        self._waiting = []
        return True

    def wake(self) -> None:
        """Go on, with all that came meanwhile."""
        waiting = self._waiting
        if waiting is None or not self.is_alive:
            return
        self.on_wake(len(waiting))
        self._waiting = None
        for action in waiting:
            self.enter(action)

    def on_sleep(self, how_long: str) -> None:
        """For subclasses: it is about to stand still."""

    def on_wake(self, waiting: int) -> None:
        """For subclasses: it is about to go on. ``waiting``: how many actions wait."""


class Mortal(Protocol):
    """A process that ``NamedProcesses`` ends."""

    @property
    def name(self) -> str:
        """Of the process."""
        ...

    def die(self) -> None:
        """Without a word."""
        ...


AnyProcess = TypeVar("AnyProcess", bound=Mortal)


class NamedProcesses(Generic[AnyProcess]):
    """For each name one process after the other, and sometimes several at once. ``begin`` starts
    one."""

    def __init__(
        self, kernel: Kernel, rng: Random, begin: Callable[[str], None], again_ms_max: int
    ) -> None:
        self._kernel = kernel
        self._rng = rng
        self._begin = begin
        self._again_ms_max = again_ms_max
        self._born = 0
        self.living: dict[str, list[AnyProcess]] = {}

    def next_name(self, name: str) -> str:
        """The name of the next process of this name."""
        self._born += 1
        return f"{name}#{self._born}"

    def add(self, name: str, process: AnyProcess) -> None:
        """It lives."""
        self.living.setdefault(name, []).append(process)

    @property
    def alive(self) -> list[AnyProcess]:
        """All that live."""
        return [process for each in self.living.values() for process in each]

    def names(self) -> list[str]:
        """Of all processes."""
        return [process.name for process in self.alive]

    def begin_later(self, name: str) -> None:
        """Start another one after a while."""
        delay_ms = self._rng.randint(1, self._again_ms_max)
        self._kernel.after(delay_ms, lambda: self._begin(name))

    def kill(self, name: str, process: AnyProcess) -> None:
        """End one."""
        process.die()
        self.living[name].remove(process)
