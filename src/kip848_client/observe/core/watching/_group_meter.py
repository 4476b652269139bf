"""From what the group core takes and asks for to metrics of the group. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kip848_client.core.group import CallListener, Input, ListenerMethod, ListenerReturned, Output
from kip848_client.core.member import (
    Announce,
    EpochChanged,
    Fenced,
    HeartbeatAnswered,
    HeartbeatFailed,
    HeartbeatLost,
    MemberState,
    Phase,
    PhaseBegan,
    SendHeartbeat,
)
from kip848_client.core.offsets import (
    CommitAnswered,
    CommitAsked,
    CommitDone,
    CommitImpossible,
    CommitKind,
    CommitLost,
    SendCommit,
)
from kip848_client.observe.core.metrics import ClientMetrics, Reading, Row, rows
from kip848_client.observe.core.watching._chronicle import stale_partitions

__all__ = ["GroupMeter"]

_LISTENER: Final[Mapping[ListenerMethod, Row]] = {
    ListenerMethod.ASSIGNED: rows.ASSIGNED_LATENCY,
    ListenerMethod.REVOKED: rows.REVOKED_LATENCY,
    ListenerMethod.LOST: rows.LOST_LATENCY,
}
_NS_A_MS: Final = 1_000_000
_CARRIED_OUT: Final = MemberState.ACKNOWLEDGING


class GroupMeter:
    """Measures from question to answer, and from state to state."""

    def __init__(self, metrics: ClientMetrics) -> None:
        self._metrics = metrics
        self._heartbeats = metrics.sensor(rows.HEARTBEAT)
        self._response_time = metrics.sensor(rows.HEARTBEAT_RESPONSE_TIME)
        self._loop_lag = metrics.sensor(rows.LOOP_LAG)
        for row in (rows.REBALANCE, rows.REBALANCE_LATENCY, rows.FAILED_REBALANCE, rows.COMMIT):
            metrics.sensor(row)  # 0 where nothing happened, not nothing
        metrics.sensor(rows.STALE_COMMIT)
        self._sent: dict[int, int] = {}
        """When heartbeats were sent that are not answered, by attempt."""
        self._commits: dict[int, int] = {}
        """The same of OffsetCommit, by attempt."""
        self._wishes: dict[int, int] = {}
        """When ``commit()`` was called, by ticket."""
        self._calls: dict[int, tuple[ListenerMethod, int]] = {}
        """When the listener was called, by number."""
        self._epoch = 0
        self._sent_ms: int | None = None
        self._rebalance_ms: int | None = None
        """When the rebalance of the moment began."""
        self._rebalanced_ms: int | None = None
        """When the last one ended."""
        self._phase: tuple[Phase, int] | None = None
        metrics.gauge(rows.MEMBER_EPOCH, lambda: {(): self._epoch})
        metrics.gauge(rows.LAST_HEARTBEAT, lambda: self._seconds_since(self._sent_ms))
        metrics.gauge(rows.LAST_REBALANCE, lambda: self._seconds_since(self._rebalanced_ms))

    def took(self, now_ms: int, event: Input, commands: Iterable[Output]) -> None:
        """The core has taken an event and asked for these."""
        self._on_event(now_ms, event)
        for command in commands:
            self._on_command(now_ms, command)

    def late(self, now_ms: int, late_ms: int) -> None:
        """The event loop ran a timer so late."""
        self._loop_lag.record(now_ms, late_ms)

    def looked_up(self, now_ms: int, took_ms: int) -> None:
        """The application has waited so long to hear what is committed."""
        self._record(rows.COMMITTED, now_ms, took_ms * _NS_A_MS)

    # -- inside ------------------------------------------------------------------------------

    def _on_event(self, now_ms: int, event: Input) -> None:
        match event:
            case HeartbeatAnswered():
                sent_ms = self._sent.pop(event.attempt, now_ms)
                self._response_time.record(now_ms, now_ms - sent_ms)
            case HeartbeatLost() | HeartbeatFailed():
                self._sent.pop(event.attempt, None)
            case CommitAnswered():
                sent_ms = self._commits.pop(event.attempt, now_ms)
                self._record(rows.COMMIT, now_ms, 1)
                self._record(rows.COMMIT_LATENCY, now_ms, now_ms - sent_ms)
                if stale_partitions(event):
                    self._record(rows.STALE_COMMIT, now_ms, 1)
            case CommitLost() | CommitImpossible():
                self._commits.pop(event.attempt, None)
            case CommitAsked(kind=CommitKind.MANUAL):
                self._wishes[event.ticket] = now_ms
            case ListenerReturned():
                method, called_ms = self._calls.pop(event.number, (None, now_ms))
                if method is not None:
                    self._record(_LISTENER[method], now_ms, now_ms - called_ms)
            case _:
                pass

    def _on_command(self, now_ms: int, command: Output) -> None:
        match command:
            case SendHeartbeat():
                self._sent[command.attempt] = self._sent_ms = now_ms
                self._heartbeats.record(now_ms)
            case SendCommit():
                self._commits[command.attempt] = now_ms
            case CommitDone():
                asked_ms = self._wishes.pop(command.ticket or 0, None)
                if asked_ms is not None:
                    self._record(rows.COMMIT_SYNC, now_ms, (now_ms - asked_ms) * _NS_A_MS)
            case CallListener():
                self._calls[command.number] = (command.method, now_ms)
            case EpochChanged():
                self._epoch = command.member_epoch or 0
            case Fenced():
                self._metrics.record(rows.FENCED, now_ms, 1, command.cause)
            case PhaseBegan():
                self._end_phase(now_ms)
                self._phase = (command.phase, now_ms)
            case Announce():
                self._on_state(now_ms, command)
            case _:
                pass

    def _on_state(self, now_ms: int, told: Announce) -> None:
        if told.new is MemberState.RECONCILING:
            if self._rebalance_ms is None:
                self._rebalance_ms = now_ms
            return
        if told.old is not MemberState.RECONCILING:
            return
        self._end_phase(now_ms)
        begun_ms = now_ms if self._rebalance_ms is None else self._rebalance_ms
        self._rebalance_ms = None
        if told.new is not _CARRIED_OUT:
            self._record(rows.FAILED_REBALANCE, now_ms, 1)
            return
        self._rebalanced_ms = now_ms
        self._record(rows.REBALANCE, now_ms, 1)
        self._record(rows.REBALANCE_LATENCY, now_ms, now_ms - begun_ms)

    def _end_phase(self, now_ms: int) -> None:
        if self._phase is not None:
            phase, began_ms = self._phase
            self._phase = None
            self._metrics.record(rows.PHASE_TIME, now_ms, now_ms - began_ms, phase.value)

    def _record(self, row: Row, now_ms: int, value: float) -> None:
        self._metrics.record(row, now_ms, value)

    def _seconds_since(self, then_ms: int | None) -> Reading:
        return {} if then_ms is None else {(): (self._metrics.now_ms() - then_ms) / 1_000}
