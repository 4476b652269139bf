"""All observers of one client: its log, its metrics, its meters, and KIP-714.

A driver calls ``on_step`` with each step of its core. Without metrics and events there is nothing
to call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kip848_client.config import ConsumerConfig, MeasuredConfig, WorkerConfig
from kip848_client.core.ports import Clock
from kip848_client.observe.core.metrics import ClientMetrics
from kip848_client.observe.core.metrics.connection_rows import ConnectionRows
from kip848_client.observe.core.watching import Chronicle, ConnectionMeter, MembershipMeter
from kip848_client.runtime.client._event_streams import EventHub
from kip848_client.runtime.net._transport import KafkaTransport
from kip848_client.runtime.telemetry import NoTelemetry, TelemetryDriver, telemetry_of

__all__ = ["MemberObservers", "Observers", "StepObserver"]

StepObserver = Callable[[int, Any, Sequence[Any]], None]
"""Gets the time of a step in ms, its event, and the commands that the core returned."""


class Observers:
    """The observers of one client.

    Args:
        clock: The client's clock.
        fields: Fields added to every line of the client's log.
        config: The client's settings; ``None`` for one that measures nothing.
        tags: The tags of its metrics.
    """

    telemetry: TelemetryDriver | NoTelemetry

    def __init__(
        self,
        clock: Clock,
        fields: Mapping[str, object],
        config: MeasuredConfig | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        self.fields: Final = dict(fields)
        self._clock = clock
        self._config = config
        self._of_steps: list[StepObserver] = []
        self._at_end: list[Callable[[], None]] = []
        self.telemetry = NoTelemetry("it counts nothing")
        self.metrics: ClientMetrics | None = None
        """The client's metrics, if any."""
        store = None if config is None else config.metrics
        if store is not None:
            metrics = self.metrics = store.open(dict(tags or {}), clock.now_ms)
            self._at_end.append(lambda: store.close(metrics))

    def add(self, observer: StepObserver) -> None:
        """Call ``observer`` with each step from now on."""
        self._of_steps.append(observer)

    def measure(self, transport: KafkaTransport, rows: ConnectionRows) -> None:
        """Measure the connections of ``transport``, if metrics are on."""
        if self.metrics is not None:
            transport.measure(ConnectionMeter(self.metrics, rows))

    def push(self, transport: KafkaTransport, labels: Mapping[str, str | None]) -> None:
        """Push metrics through ``transport`` once ``telemetry`` begins, if metrics are on.
        ``labels`` are those of KIP-714; ``None`` leaves one out."""
        config = self._config
        assert config is not None, "a client without metrics has nothing to push"
        self.telemetry = telemetry_of(
            transport,
            self._clock,
            self.metrics,
            labels,
            self.fields,
            is_wanted=config.enable_metrics_push,
            is_asked_for="enable_metrics_push" in config.model_fields_set,
            request_timeout_ms=config.request_timeout_ms,
        )

    def on_step(self, event: object, commands: Sequence[object]) -> None:
        """Process a step of the client's core: the event and the returned commands."""
        if self._of_steps:
            now_ms = self._clock.now_ms()
            for each in self._of_steps:
                each(now_ms, event, commands)

    def close(self) -> None:
        """End observation when the client is stopped."""
        for each in self._at_end:
            each()


class MemberObservers(Observers):
    """The observers of a group member, with streams of events, too.

    Args:
        config: The member's settings.
        clock: The member's clock.
        hub: The event streams.
    """

    def __init__(self, config: ConsumerConfig | WorkerConfig, clock: Clock, hub: EventHub) -> None:
        group_id, client_id = config.group_id, config.client_id
        super().__init__(
            clock,
            {"group_id": group_id, "client_id": client_id},
            config,
            {"client-id": client_id, "group-id": group_id or ""},
        )
        self._chronicle: Chronicle | None = None
        self._meter: MembershipMeter | None = None
        self._hub = hub
        self.event_loop_late_ms = 0
        """The delay of the latest clock check."""
        self._at_end.append(hub.close)

    def follow(self, chronicle: Chronicle, meter: MembershipMeter | None) -> None:
        """Pass each step to these, and the events of ``chronicle`` to the streams."""
        self._chronicle, self._meter = chronicle, meter
        if meter is not None:
            self.add(meter.on_step)
        self.add(partial(self._tell_streams, chronicle))

    def _tell_streams(
        self, chronicle: Chronicle, now_ms: int, event: Any, commands: Sequence[Any]
    ) -> None:
        heartbeats = self._hub.with_heartbeats
        for each in chronicle.of(now_ms, event, commands, heartbeats=heartbeats):
            self._hub.put(each)

    def late(self, late_ms: int) -> None:
        """Record how late the event loop ran a timer."""
        self.event_loop_late_ms = late_ms
        if self._meter is not None:
            self._meter.late(self._clock.now_ms(), late_ms)

    def blocked(self, late_ms: int, silent_ms: int | None) -> None:
        """Report that the event loop was blocked for longer than a heartbeat may wait."""
        if self._chronicle is not None:
            self._hub.put(self._chronicle.blocked(self._clock.now_ms(), late_ms, silent_ms))
