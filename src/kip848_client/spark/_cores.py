"""How many cores this process may use."""

from __future__ import annotations

import os

__all__ = ["cores"]


def cores() -> int:
    """The cores that the system assigns to this process; all of them if it does not (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
