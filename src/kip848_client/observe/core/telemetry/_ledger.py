"""Which of a client's metrics to push, and which were pushed: for brokers that request differences.

A counter value that a broker has not acknowledged is not lost: the next difference includes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from kip848_client.observe.core.metrics import ClientMetrics, Row, Statistic
from kip848_client.observe.core.telemetry._model import Subscription
from kip848_client.observe.core.telemetry._names import telemetry_label, telemetry_name

__all__ = ["Ledger", "Point"]

PointLabels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One value of one metric."""

    name: str
    labels: PointLabels
    value: float
    start_ms: int
    """Start of the period of a counter."""
    total: float | None = None
    """The counter's total since the client began. ``None`` for other metrics."""

    @property
    def is_counter(self) -> bool:
        """Whether the value only grows."""
        return self.total is not None


class Ledger:
    """Reads ``metrics`` and records what was acknowledged. ``opened_ms``: since when they count."""

    def __init__(self, metrics: ClientMetrics, opened_ms: int) -> None:
        self._metrics: Final = metrics
        self._opened_ms: Final = opened_ms
        self._settled: dict[tuple[str, PointLabels], tuple[float, int]] = {}
        self._turn = 0

    def points(self, subscription: Subscription, now_ms: int) -> list[Point]:
        """Return the current values of wanted metrics, the most important first: if not all of them
        fit, those of the whole client come before those of single topics and partitions, which take
        turns. Metrics without values are left out."""
        found = [each for each in self._all(subscription, now_ms) if not math.isnan(each.value)]
        whole = [each for each in found if not each.labels]
        parts = [each for each in found if each.labels]
        turn = self._turn % len(parts) if parts else 0
        return [*whole, *parts[turn:], *parts[:turn]]

    def settle(self, points: Iterable[Point], now_ms: int) -> None:
        """Record pushed points, with their values of ``now_ms``."""
        for each in points:
            if each.total is not None:
                self._settled[each.name, each.labels] = each.total, now_ms

    def left_out(self, pushed: Iterable[Point]) -> None:
        """Note that only these fit: the others come first in the next push."""
        self._turn += sum(bool(each.labels) for each in pushed)

    def _all(self, subscription: Subscription, now_ms: int) -> Iterator[Point]:
        for row, labels, sensor in self._metrics.sensors():
            for metric, statistic in zip(row.names, row.statistics, strict=True):
                name = telemetry_name(row, metric)
                if not subscription.wants(name):
                    continue
                value = sensor.read(statistic, now_ms)
                named = _labelled(row, labels)
                if statistic is Statistic.TOTAL:
                    yield self._counted(name, named, value, delta=subscription.delta)
                else:
                    yield Point(name, named, value, self._opened_ms)

        def wanted(row: Row) -> bool:
            return subscription.wants(telemetry_name(row, row.name))

        for row, labels, value in self._metrics.gauges(wanted):
            name = telemetry_name(row, row.name)
            yield Point(name, _labelled(row, labels), value, self._opened_ms)

    def _counted(self, name: str, labels: PointLabels, total: float, *, delta: bool) -> Point:
        before, since_ms = 0.0, self._opened_ms
        if delta:
            before, since_ms = self._settled.get((name, labels), (before, since_ms))
        return Point(name, labels, total - before, since_ms, total)


def _labelled(row: Row, labels: tuple[str, ...]) -> PointLabels:
    names = (telemetry_label(each) for each in row.labels)
    return tuple(zip(names, labels, strict=True))
