"""Metrics of any group member: heartbeats, epoch, fences, rebalances. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kip848_client.core.member import (
    Announce,
    EpochChanged,
    Fenced,
    HeartbeatAnswered,
    HeartbeatFailed,
    HeartbeatLost,
    MemberState,
    SendHeartbeat,
)
from kip848_client.observe.core.metrics import ClientMetrics, Reading, Row
from kip848_client.observe.core.metrics.rows import MembershipRows

__all__ = ["MembershipMeter"]

_CARRIED_OUT: Final = frozenset({MemberState.ACKNOWLEDGING, MemberState.STABLE})


class MembershipMeter:
    """Measures the latency of heartbeats, and the time between states."""

    def __init__(self, metrics: ClientMetrics, rows: MembershipRows) -> None:
        self._metrics = metrics
        self._rows = rows
        self._heartbeats = metrics.sensor(rows.heartbeat)
        self._response_time = metrics.sensor(rows.heartbeat_response_time)
        self._loop_lag = metrics.sensor(rows.loop_lag)
        for row in (rows.rebalance, rows.rebalance_latency, rows.failed_rebalance):
            metrics.sensor(row)  # 0 before the first record, not missing
        self._sent: dict[int, int] = {}
        """Send times of unanswered heartbeats, by attempt."""
        self._sent_ms: int | None = None
        self._rebalance_ms: int | None = None
        """When the current rebalance began."""
        self._rebalanced_ms: int | None = None
        """When the last one ended."""
        self.epoch = 0
        metrics.gauge(rows.member_epoch, lambda: {(): self.epoch})
        metrics.gauge(rows.last_heartbeat, lambda: self._seconds_since(self._sent_ms))
        metrics.gauge(rows.last_rebalance, lambda: self._seconds_since(self._rebalanced_ms))

    def on_step(self, now_ms: int, event: object, commands: Iterable[object]) -> None:
        """Process a step of the core: the event and the returned commands."""
        self._on_event(now_ms, event)
        for command in commands:
            self._on_command(now_ms, command)

    def late(self, now_ms: int, late_ms: int) -> None:
        """Record how late the event loop ran a timer."""
        self._loop_lag.record(now_ms, late_ms)

    # -- inside ------------------------------------------------------------------------------

    def _on_event(self, now_ms: int, event: object) -> None:
        match event:
            case HeartbeatAnswered():
                self._heartbeat_answered(now_ms, event.attempt)
            case HeartbeatLost() | HeartbeatFailed():
                self._heartbeat_lost(event.attempt)
            case _:
                pass

    def _on_command(self, now_ms: int, command: object) -> None:
        match command:
            case SendHeartbeat():
                self._heartbeat_sent(now_ms, command.attempt)
            case EpochChanged():
                self.epoch = command.member_epoch or 0
            case Fenced():
                self._metrics.record(self._rows.fenced, now_ms, 1, command.cause)
            case Announce():
                self._on_state(now_ms, command)
            case _:
                pass

    def _heartbeat_sent(self, now_ms: int, attempt: int) -> None:
        self._sent[attempt] = self._sent_ms = now_ms
        self._heartbeats.record(now_ms)

    def _heartbeat_answered(self, now_ms: int, attempt: int) -> None:
        sent_ms = self._sent.pop(attempt, now_ms)
        self._response_time.record(now_ms, now_ms - sent_ms)

    def _heartbeat_lost(self, attempt: int) -> None:
        self._sent.pop(attempt, None)

    def _on_state(self, now_ms: int, told: Announce) -> None:
        if self._begins(told):
            if self._rebalance_ms is None:
                self._rebalance_ms = now_ms
            return
        if not self._ends(told):
            return
        begun_ms = now_ms if self._rebalance_ms is None else self._rebalance_ms
        self._rebalance_ms = None
        if told.new not in _CARRIED_OUT:
            self._record(self._rows.failed_rebalance, now_ms, 1)
            return
        self._rebalanced_ms = now_ms
        self._record(self._rows.rebalance, now_ms, 1)
        self._record(self._rows.rebalance_latency, now_ms, now_ms - begun_ms)

    def _begins(self, told: Announce) -> bool:
        return told.new is MemberState.RECONCILING

    def _ends(self, told: Announce) -> bool:
        return told.old is MemberState.RECONCILING

    def _record(self, row: Row, now_ms: int, value: float) -> None:
        self._metrics.record(row, now_ms, value)

    def _seconds_since(self, then_ms: int | None) -> Reading:
        return {} if then_ms is None else {(): (self._metrics.now_ms() - then_ms) / 1_000}
