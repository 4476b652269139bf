"""Turns the steps of a worker's core into metrics. Contains no decisions."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kip848_client.connect.core import _classic_messages as ms
from kip848_client.connect.core._classic_core import ClassicWorkerCore
from kip848_client.connect.core._commands import StartItems, StopItems
from kip848_client.connect.core._core import WorkerCore
from kip848_client.connect.core._events import ItemsStarted, ItemsStopped
from kip848_client.connect.core._model import AssignedItem
from kip848_client.core.connect import ITSELF
from kip848_client.core.member import Announce, MemberState
from kip848_client.observe.core.metrics import ClientMetrics, Reading, Row, worker_rows
from kip848_client.observe.core.watching import MembershipMeter

__all__ = ["WorkerMeter"]


class WorkerMeter(MembershipMeter):
    """Measures a worker on either protocol. ``runs`` returns the items that its listener was called
    to start, and not yet to stop."""

    def __init__(
        self,
        metrics: ClientMetrics,
        core: WorkerCore | ClassicWorkerCore,
        runs: Callable[[], Collection[AssignedItem]],
    ) -> None:
        super().__init__(metrics, worker_rows.MEMBER)
        self._core = core
        self._is_classic = isinstance(core, ClassicWorkerCore)
        self._runs = runs
        self._calls: dict[int, tuple[Row, int]] = {}
        """When the listener was to be called, by plan."""
        metrics.gauge(worker_rows.ASSIGNED_CONNECTORS, lambda: _connectors(core.assigned))
        metrics.gauge(worker_rows.ASSIGNED_TASKS, lambda: _tasks(core.assigned))
        metrics.gauge(worker_rows.CONNECTOR_COUNT, lambda: _connectors(runs()))
        metrics.gauge(worker_rows.TASK_COUNT, lambda: _tasks(runs()))

    def _on_event(self, now_ms: int, event: object) -> None:
        self.epoch = self._core.member_epoch or 0
        match event:
            case ms.HeartbeatTaken():
                self._heartbeat_answered(now_ms, event.attempt)
            case ms.RequestRefused(api="Heartbeat"):
                self._heartbeat_answered(now_ms, event.attempt)
            case ms.RequestLost() | ms.RequestFailed():
                self._heartbeat_lost(event.attempt)
            case ItemsStarted() | ItemsStopped():
                row, called_ms = self._calls.pop(event.plan, (None, now_ms))
                if row is not None:
                    self._record(row, now_ms, now_ms - called_ms)
            case _:
                super()._on_event(now_ms, event)

    def _on_command(self, now_ms: int, command: object) -> None:
        match command:
            case ms.SendClassicHeartbeat():
                self._heartbeat_sent(now_ms, command.attempt)
            case StartItems() if command.items:
                self._calls[command.plan] = (worker_rows.ITEMS_ASSIGNED_LATENCY, now_ms)
            case StopItems() if not self._runs_none_of(command.items):
                row = (
                    worker_rows.ITEMS_LOST_LATENCY
                    if command.lost
                    else worker_rows.ITEMS_REVOKED_LATENCY
                )
                self._calls[command.plan] = (row, now_ms)
            case _:
                super()._on_command(now_ms, command)

    def _runs_none_of(self, items: Collection[AssignedItem]) -> bool:
        return set(items).isdisjoint(self._runs())

    def _begins(self, told: Announce) -> bool:
        """A classic rebalance begins with JoinGroup. Items stopped before it belong to the previous
        assignment."""
        if self._is_classic:
            return told.new is MemberState.JOINING
        return super()._begins(told)

    def _ends(self, told: Announce) -> bool:
        if self._is_classic:
            return self._rebalance_ms is not None and told.new is not MemberState.RECONCILING
        return super()._ends(told)


def _connectors(items: Collection[AssignedItem]) -> Reading:
    return {(): sum(each.task == ITSELF for each in items)}


def _tasks(items: Collection[AssignedItem]) -> Reading:
    return {(): sum(each.task != ITSELF for each in items)}
