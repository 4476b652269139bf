"""Runs a command in an asyncio loop so that it cleans up, whatever ends it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

__all__ = ["run_to_end"]

_BY_SIGNAL: Final = 128
"""Shells add the number of the signal that ended a process."""
_ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)


def run_to_end(work: Coroutine[Any, Any, int]) -> int:
    """Run it and return the exit code. SIGTERM and SIGHUP cancel it, as Ctrl-C does: child
    processes are stopped and the terminal is restored, and the exit code is 143 or 129. An ignored
    signal (nohup) stays ignored."""
    ended_by: list[int] = []

    async def watched() -> int:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(number: int) -> None:
            ended_by.append(number)
            task.cancel()

        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                with suppress(NotImplementedError, RuntimeError, ValueError):  # another thread
                    loop.add_signal_handler(number, end, number)
        return await work

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError:
        if not ended_by:
            raise
        return _BY_SIGNAL + ended_by[0]
