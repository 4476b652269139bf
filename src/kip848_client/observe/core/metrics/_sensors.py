"""Counters, timings and gauges. Pure: the time is an argument of recording and reading.

Records are kept twice: summed up since the start (``total``, the buckets), as monitoring systems
expect, and in the newest two windows of 30 s, from which Kafka's own averages, maxima and rates are
computed (``metrics.num.samples``, ``metrics.sample.window.ms``).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from enum import Enum
from typing import Final

__all__ = ["BUCKETS_MS", "Sensor", "Statistic"]

WINDOW_MS: Final = 30_000

BUCKETS_MS: Final = (
    *(5, 10, 25, 50, 100, 250, 500),
    *(1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 300_000),
)
"""Upper bounds of the buckets for timings; longer ones go into a last bucket."""


class Statistic(Enum):
    """A statistic of records: the suffix of a metric's name in Kafka's client."""

    RATE = "rate"
    """Per second, over the last windows."""
    HOURLY = "rate-per-hour"
    TOTAL = "total"
    """Sum since the start."""
    AVG = "avg"
    """Over the last windows."""
    MAX = "max"
    """Over the last windows."""
    VALUE = ""
    """A gauge: the current value."""


class _Window:
    __slots__ = ("begin_ms", "count", "most", "total")

    def __init__(self, begin_ms: int) -> None:
        self.begin_ms = begin_ms
        self.count = 0
        self.total = 0.0
        self.most = -math.inf


class Sensor:
    """The records under one name with one set of labels.

    ``buckets``: whether records are also counted by size (``BUCKETS_MS``).
    """

    __slots__ = ("_before", "_window", "buckets", "count", "total")

    def __init__(self, now_ms: int, *, buckets: bool) -> None:
        self.count = 0
        """Number of records."""
        self.total = 0.0
        """Their sum."""
        self.buckets: list[int] | None = [0] * (len(BUCKETS_MS) + 1) if buckets else None
        """Number of records up to ``BUCKETS_MS[i]`` and above the previous bound."""
        self._window = _Window(now_ms)
        self._before: _Window | None = None

    def record(self, now_ms: int, value: float = 1) -> None:
        """Record a value: an amount, or a duration in ms."""
        self.count += 1
        self.total += value
        if self.buckets is not None:
            self.buckets[bisect_left(BUCKETS_MS, value)] += 1
        window = self._window
        if now_ms >= window.begin_ms + WINDOW_MS:
            self._before = window
            window = self._window = _Window(now_ms)
        window.count += 1
        window.total += value
        window.most = max(window.most, value)

    def read(self, statistic: Statistic, now_ms: int) -> float:
        """Return the current value of a statistic; NaN, as in Kafka, for an average or a maximum of
        nothing."""
        if statistic is Statistic.TOTAL:
            return self.total
        both = (self._before, self._window)
        windows = [each for each in both if each and now_ms < each.begin_ms + 2 * WINDOW_MS]
        total = sum(each.total for each in windows)
        match statistic:
            case Statistic.AVG:
                count = sum(each.count for each in windows)
                return total / count if count else math.nan
            case Statistic.MAX:
                most = max((each.most for each in windows), default=-math.inf)
                return most if most > -math.inf else math.nan
            case Statistic.HOURLY:
                return 3_600 * self._rate(windows, total, now_ms)
            case _:
                return self._rate(windows, total, now_ms)

    @staticmethod
    def _rate(windows: list[_Window], total: float, now_ms: int) -> float:
        """Return the rate per second, over at least one window, so that the first records do not
        give an excessive rate."""
        begin_ms = min((each.begin_ms for each in windows), default=now_ms)
        return total * 1_000 / max(now_ms - begin_ms, WINDOW_MS)
