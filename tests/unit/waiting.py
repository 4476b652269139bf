"""Waiting for a condition, giving way to everything else in between; no fixed sleeps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["some_rounds", "until"]

_TICK_S = 0.001


async def until(condition: Callable[[], object], timeout_s: float = 5) -> None:
    """Return when the condition is true; fail when it does not become so in time."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - nothing signals what is waited for
            await asyncio.sleep(_TICK_S)


async def some_rounds(count: int = 20) -> None:
    """Let everything that is ready run, several times over."""
    for _ in range(count):
        await asyncio.sleep(0)
