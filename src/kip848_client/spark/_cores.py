"""How many cores this process may use."""

from __future__ import annotations

import os

__all__ = ["cores"]


def cores() -> int:
    """Those that the system gives this process; where it says nothing of that (macOS), all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
