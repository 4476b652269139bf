"""Metrics of the application's calls for records. Decides nothing."""

from __future__ import annotations

from kip848_client.observe.core.metrics import ClientMetrics, Reading, rows

__all__ = ["PollMeter"]


class PollMeter:
    """Measures each call for records, except those answered by the fast path."""

    def __init__(self, metrics: ClientMetrics) -> None:
        self._now_ms = metrics.now_ms
        self._between = metrics.sensor(rows.POLLS)
        self._idle = metrics.sensor(rows.POLL_IDLE)
        self._polled_ms: int | None = None
        self._waits_since_ms: int | None = None
        self._waited_ms = 0
        """Waiting time since the last call."""
        metrics.gauge(rows.LAST_POLL, self._age)

    def polled(self) -> None:
        """Record a call for records."""
        now_ms, before_ms = self._now_ms(), self._polled_ms
        self._polled_ms = now_ms
        if before_ms is not None:
            between_ms = now_ms - before_ms
            self._between.record(now_ms, between_ms)
            if between_ms > 0:
                self._idle.record(now_ms, min(1.0, self._waited_ms / between_ms))
        self._waited_ms = 0

    def waits(self) -> None:
        """Note that there are no records: the call is suspended."""
        if self._waits_since_ms is None:
            self._waits_since_ms = self._now_ms()

    def goes_on(self) -> None:
        """Note that the call no longer waits."""
        if self._waits_since_ms is not None:
            now_ms = self._now_ms()
            self._waited_ms += now_ms - self._waits_since_ms
            self._waits_since_ms = None

    def _age(self) -> Reading:
        if self._polled_ms is None:
            return {}
        if self._waits_since_ms is not None:
            return {(): 0.0}
        return {(): (self._now_ms() - self._polled_ms) / 1_000}
