"""Handles SIGTERM, by which Spark ends its source process.

Spark does not call ``stop()`` when a query stops: its JVM terminates the process, and sends the
signal twice, some milliseconds apart. Without a handler, the group would notice that a member is
gone only when its session expires.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

__all__ = ["leave_when_terminated"]


def leave_when_terminated(leave: Callable[[], None]) -> None:
    """Call ``leave`` once when the process is terminated, then end the process.

    Only in Spark's own process for sources, and only if no other handler is set.
    """
    program = getattr(sys.modules.get("__main__"), "__spec__", None)
    if program is None or not program.name.endswith("python_streaming_source_runner"):
        return
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            leave()
        finally:
            os._exit(0)

    signal.signal(signal.SIGTERM, end)
