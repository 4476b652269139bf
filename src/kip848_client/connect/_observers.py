"""The observers of a worker: its metrics and its event streams."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kip848_client.connect.core._chronicle import WorkerChronicle
from kip848_client.connect.core._classic_core import ClassicWorkerCore
from kip848_client.connect.core._core import WorkerCore
from kip848_client.connect.core._meter import WorkerMeter
from kip848_client.connect.core._model import AssignedItem
from kip848_client.observe.core.metrics import connection_rows
from kip848_client.runtime.client._observers import MemberObservers
from kip848_client.runtime.clock import wall_clock_origin_ms
from kip848_client.runtime.net._transport import KafkaTransport

__all__ = ["WorkerObservers"]


class WorkerObservers(MemberObservers):
    """The observers of one worker."""

    def connected(self, transport: KafkaTransport) -> None:
        """Measure the connections of ``transport``, if enabled."""
        self.measure(transport, connection_rows.CONNECT)

    def chosen(
        self,
        core: WorkerCore | ClassicWorkerCore,
        runs: Callable[[], Collection[AssignedItem]],
    ) -> None:
        """The protocol is chosen: observe ``core`` from now on."""
        meter = None if self.metrics is None else WorkerMeter(self.metrics, core, runs)
        self.follow(WorkerChronicle(wall_clock_origin_ms(self._clock), core), meter)
