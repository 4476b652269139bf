"""Lag and lead of single partitions over the last windows: averages and extremes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kip848_client.core.types import TopicPartition
from kip848_client.observe.core.metrics import ClientMetrics, Reading, Sensor, Statistic, rows

__all__ = ["PartitionTrends"]


@dataclass(frozen=True, slots=True)
class _Trend:
    lag: Sensor
    lead: Sensor
    """Records negated values, because sensors keep the largest one."""


class PartitionTrends:
    """Recorded by ``note``; partitions no longer in ``assigned`` are dropped by the next
    ``note``."""

    def __init__(
        self, metrics: ClientMetrics, assigned: Callable[[], frozenset[TopicPartition]]
    ) -> None:
        self._metrics = metrics
        self._assigned = assigned
        self._trends: dict[TopicPartition, _Trend] = {}
        read = self._read
        metrics.gauge(rows.RECORDS_LAG_AVG, lambda: read(lambda each: each.lag, Statistic.AVG))
        metrics.gauge(rows.RECORDS_LAG_MOST, lambda: read(lambda each: each.lag, Statistic.MAX))
        metrics.gauge(
            rows.RECORDS_LEAD_AVG, lambda: read(lambda each: each.lead, Statistic.AVG, -1)
        )
        metrics.gauge(
            rows.RECORDS_LEAD_LEAST, lambda: read(lambda each: each.lead, Statistic.MAX, -1)
        )

    def note(self, now_ms: int, tp: TopicPartition, lag: int | None, lead: int | None) -> None:
        """Record the current values, if known."""
        assigned = self._assigned()
        if len(self._trends) > len(assigned):
            self._trends = {each: trend for each, trend in self._trends.items() if each in assigned}
        trend = self._trends.get(tp)
        if trend is None:
            trend = _Trend(Sensor(now_ms, buckets=False), Sensor(now_ms, buckets=False))
            self._trends[tp] = trend
        if lag is not None:
            trend.lag.record(now_ms, lag)
        if lead is not None:
            trend.lead.record(now_ms, -lead)

    def _read(
        self, sensor: Callable[[_Trend], Sensor], statistic: Statistic, sign: int = 1
    ) -> Reading:
        now_ms, assigned = self._metrics.now_ms(), self._assigned()
        return {
            (tp.topic, str(tp.partition)): sign * sensor(trend).read(statistic, now_ms)
            for tp, trend in sorted(self._trends.items())
            if tp in assigned
        }
