"""Everybody who watches one consumer: streams of events, metrics, the log.

Without metrics and without streams nothing is done here but a look at each step of the group's
core, of which there are a few a second; the way of records is not touched.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from kip848_client.config import ConsumerConfig
from kip848_client.consumer._event_streams import EventHub
from kip848_client.core.fetch import FetchCore
from kip848_client.core.group import Input, Output
from kip848_client.core.ports import Clock
from kip848_client.observe.core.metrics import ClientMetrics, connection_rows
from kip848_client.observe.core.watching import (
    Chronicle,
    ConnectionMeter,
    FetchMeter,
    GroupMeter,
    PollMeter,
)
from kip848_client.runtime.net._transport import KafkaTransport
from kip848_client.runtime.telemetry import NoTelemetry, TelemetryDriver, telemetry_of

__all__ = ["Watch"]


class Watch:
    """``hub`` has the streams. ``close`` ends everything that is seen of the consumer."""

    def __init__(self, config: ConsumerConfig, clock: Clock, hub: EventHub) -> None:
        self._config = config
        self._clock = clock
        self._hub = hub
        self.fields: Mapping[str, object] = {
            "group_id": config.group_id,
            "client_id": config.client_id,
        }
        """What every line of the log says beside its text."""
        self._store = config.metrics
        self._metrics: ClientMetrics | None = None
        if self._store is not None:
            tags = {"client-id": config.client_id, "group-id": config.group_id or ""}
            self._metrics = self._store.open(tags, clock.now_ms)
        self._committed = config.isolation_level == "read_committed"
        has_group = config.group_id is not None
        self._meter = GroupMeter(self._metrics) if has_group and self._metrics else None
        self._chronicle = Chronicle(int(time.time() * 1000) - clock.now_ms())
        self.event_loop_late_ms = 0
        """How late the newest look at the clock was."""

    def connections(
        self, transport: KafkaTransport, member_id: str
    ) -> TelemetryDriver | NoTelemetry:
        """Measure the connections of ``transport``, if anything is measured. What comes back
        pushes metrics to brokers, or says why nobody does."""
        if self._metrics is not None:
            transport.measure(ConnectionMeter(self._metrics, connection_rows.CONSUMER))
        config = self._config
        return telemetry_of(
            transport,
            self._clock,
            self._metrics,
            {
                "group_id": config.group_id,
                "group_instance_id": config.group_instance_id,
                "group_member_id": None if config.group_id is None else member_id,
                "client_rack": config.client_rack,
            },
            self.fields,
            is_wanted=config.enable_metrics_push,
            is_asked_for="enable_metrics_push" in config.model_fields_set,
            request_timeout_ms=config.request_timeout_ms,
        )

    @contextmanager
    def looking_up(self) -> Generator[None]:
        """The application waits to hear what is committed."""
        began_ms = self._clock.now_ms()
        try:
            yield
        finally:
            now_ms = self._clock.now_ms()
            if self._meter is not None:
                self._meter.looked_up(now_ms, now_ms - began_ms)

    def fetch_meter(self, core: FetchCore) -> FetchMeter | None:
        """What measures fetching, if anything is measured."""
        if self._metrics is None:
            return None
        return FetchMeter(self._metrics, core, committed=self._committed)

    def poll_meter(self) -> PollMeter | None:
        """What measures calls for records, if anything is measured."""
        return PollMeter(self._metrics) if self._metrics else None

    def took(self, event: Input, commands: Sequence[Output]) -> None:
        """The group's core has taken an event and asks for these."""
        now_ms = self._clock.now_ms()
        if self._meter is not None:
            self._meter.took(now_ms, event, commands)
        heartbeats = self._hub.with_heartbeats
        for told in self._chronicle.of(now_ms, event, commands, heartbeats=heartbeats):
            self._hub.put(told)

    def late(self, late_ms: int) -> None:
        """The event loop ran a timer so late."""
        self.event_loop_late_ms = late_ms
        if self._meter is not None:
            self._meter.late(self._clock.now_ms(), late_ms)

    def blocked(self, late_ms: int, silent_ms: int | None) -> None:
        """The event loop was blocked for longer than a heartbeat may wait."""
        self._hub.put(self._chronicle.blocked(self._clock.now_ms(), late_ms, silent_ms))

    def close(self) -> None:
        """The consumer is stopped."""
        if self._store is not None and self._metrics is not None:
            self._store.close(self._metrics)
        self._hub.close()
