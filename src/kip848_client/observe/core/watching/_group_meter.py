"""Translates events and commands of the group core into metrics. Decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kip848_client.core.group import CallListener, ListenerMethod, ListenerReturned
from kip848_client.core.member import Announce, MemberState, Phase, PhaseBegan
from kip848_client.core.offsets import (
    CommitAnswered,
    CommitAsked,
    CommitDone,
    CommitImpossible,
    CommitKind,
    CommitLost,
    SendCommit,
)
from kip848_client.observe.core.metrics import ClientMetrics, Row, rows
from kip848_client.observe.core.watching._chronicle import stale_partitions
from kip848_client.observe.core.watching._membership_meter import MembershipMeter

__all__ = ["GroupMeter"]

_LISTENER: Final[Mapping[ListenerMethod, Row]] = {
    ListenerMethod.ASSIGNED: rows.ASSIGNED_LATENCY,
    ListenerMethod.REVOKED: rows.REVOKED_LATENCY,
    ListenerMethod.LOST: rows.LOST_LATENCY,
}
_NS_A_MS: Final = 1_000_000


class GroupMeter(MembershipMeter):
    """Also measures commits, calls of the listener and phases of a rebalance."""

    def __init__(self, metrics: ClientMetrics) -> None:
        super().__init__(metrics, rows.MEMBER)
        for row in (rows.COMMIT, rows.STALE_COMMIT):
            metrics.sensor(row)  # 0 before the first record, not missing
        self._commits: dict[int, int] = {}
        """Send times of unanswered OffsetCommit requests, by attempt."""
        self._wishes: dict[int, int] = {}
        """Start times of ``commit()`` calls, by ticket."""
        self._calls: dict[int, tuple[ListenerMethod, int]] = {}
        """Start times of listener calls, by number."""
        self._phase: tuple[Phase, int] | None = None

    def looked_up(self, now_ms: int, took_ms: int) -> None:
        """Record how long the application waited for committed offsets."""
        self._record(rows.COMMITTED, now_ms, took_ms * _NS_A_MS)

    # -- inside ------------------------------------------------------------------------------

    def _on_event(self, now_ms: int, event: object) -> None:
        match event:
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
                super()._on_event(now_ms, event)

    def _on_command(self, now_ms: int, command: object) -> None:
        match command:
            case SendCommit():
                self._commits[command.attempt] = now_ms
            case CommitDone():
                asked_ms = self._wishes.pop(command.ticket or 0, None)
                if asked_ms is not None:
                    self._record(rows.COMMIT_SYNC, now_ms, (now_ms - asked_ms) * _NS_A_MS)
            case CallListener():
                self._calls[command.number] = (command.method, now_ms)
            case PhaseBegan():
                self._end_phase(now_ms)
                self._phase = (command.phase, now_ms)
            case _:
                if isinstance(command, Announce) and command.old is MemberState.RECONCILING:
                    self._end_phase(now_ms)
                super()._on_command(now_ms, command)

    def _end_phase(self, now_ms: int) -> None:
        if self._phase is not None:
            phase, began_ms = self._phase
            self._phase = None
            self._metrics.record(rows.PHASE_TIME, now_ms, now_ms - began_ms, phase.value)
