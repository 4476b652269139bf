"""An event loop whose time passes only while nothing can run: seconds of waiting take no time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["run_virtually"]

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: it moves the loop's time on instead."""

    now_s = 1_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise AssertionError("every task waits for something that no timer brings")
        if not ready and timeout is not None and timeout > 0:
            self.now_s += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now_s


def run_virtually(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run ``main()`` to its end in such a loop. It must use no network and no threads."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(main())
