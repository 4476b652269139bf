"""Things that happen every now and then, at random times."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from mock_coordinator.sim.kernel import Kernel

__all__ = ["Schedule"]


class Schedule:
    """Lets things happen until ``stop``."""

    def __init__(self, kernel: Kernel, rng: Random) -> None:
        self._kernel = kernel
        self._rng = rng
        self.over = False
        """Whether it was stopped."""

    def repeat(self, mean_ms: int, action: Callable[[], None]) -> None:
        """Every now and then, ``mean_ms`` apart on average; never when that is 0."""
        if mean_ms == 0:
            return

        def again() -> None:
            if not self.over:
                action()
                self.repeat(mean_ms, action)

        self._kernel.after(1 + int(self._rng.expovariate(1 / mean_ms)), again)

    def stop(self) -> None:
        """Nothing happens any more."""
        self.over = True
