"""Removal of silent producers: partitions check at an interval, not on each request.

Kafka gives each partition a timer with the interval ``producer.id.expiration.check.interval.ms``,
counted from when its log was opened. Here all partitions check at once, counted from the start of
the broker; without any producers there is no timer.
"""

from __future__ import annotations

from typing import Final

from mock_coordinator.core.state.broker import Broker

__all__ = ["ProducerExpiry"]


class ProducerExpiry:
    """The timer of a cluster. ``now_ms`` is when it starts."""

    def __init__(self, broker: Broker, now_ms: int) -> None:
        self._broker: Final = broker
        self._started_ms: Final = now_ms
        self._interval_ms: Final = broker.config.integer("producer.id.expiration.check.interval.ms")
        self._next_ms = now_ms + self._interval_ms

    @property
    def deadline_ms(self) -> int | None:
        """When ``run_due`` has something to do."""
        return self._next_ms if self._broker.logs.have_producers else None

    def run_due(self, now_ms: int) -> None:
        """Look, if it is time."""
        if now_ms < self._next_ms:
            return
        runs = (now_ms - self._started_ms) // self._interval_ms
        self._next_ms = self._started_ms + (runs + 1) * self._interval_ms
        if self._broker.logs.have_producers:
            expiration_ms = self._broker.config.integer("producer.id.expiration.ms")
            self._broker.logs.expire_producers(now_ms, expiration_ms)
