"""How everything here is timed: the minimum of several repeats, and tables in plain text."""

from __future__ import annotations

import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence

__all__ = ["best_us", "cpu_s", "machine", "say", "table"]


def best_us(action: Callable[[], object], *, repeats: int = 9, seconds: float = 0.05) -> float:
    """Microseconds of one call: the minimum over ``repeats`` batches of about ``seconds`` each.

    The minimum, because everything that disturbs a measurement makes it longer.
    """
    started = time.perf_counter()
    action()
    once = max(time.perf_counter() - started, 1e-7)
    count = max(1, min(100_000, int(seconds / once)))
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(count):
            action()
        best = min(best, time.perf_counter() - started)
    return best / count * 1e6


def cpu_s() -> float:
    """Processor time that this process has used so far, with all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def machine() -> str:
    """One line on where the numbers come from."""
    return f"CPython {platform.python_version()}, {platform.system()} {platform.machine()}"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns: the first to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in [headings, *rows]) for i in range(len(headings))]
    lines = []
    for row in [headings, *rows]:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def say(text: str) -> None:
    """Print without surprises about buffering."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
