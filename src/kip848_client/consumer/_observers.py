"""A consumer's observers: its metrics and event streams.

Fetching and polling have meters of their own, and the group driver calls ``on_step``. The record
path is not touched.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from kip848_client.config import ConsumerConfig
from kip848_client.core.fetch import FetchCore
from kip848_client.core.ports import Clock
from kip848_client.core.types import MemberId
from kip848_client.observe.core.metrics import connection_rows
from kip848_client.observe.core.watching import Chronicle, FetchMeter, GroupMeter, PollMeter
from kip848_client.runtime.client._event_streams import EventHub
from kip848_client.runtime.client._observers import MemberObservers
from kip848_client.runtime.clock import wall_clock_origin_ms
from kip848_client.runtime.net._transport import KafkaTransport

__all__ = ["ConsumerObservers"]


class ConsumerObservers(MemberObservers):
    """The observers of one consumer."""

    def __init__(self, config: ConsumerConfig, clock: Clock, hub: EventHub) -> None:
        super().__init__(config, clock, hub)
        self._committed = config.isolation_level == "read_committed"
        self._group_meter: GroupMeter | None = None
        if config.group_id is not None and self.metrics is not None:
            self._group_meter = GroupMeter(self.metrics)
        self.follow(Chronicle(wall_clock_origin_ms(clock)), self._group_meter)

    def connected(
        self, config: ConsumerConfig, transport: KafkaTransport, member_id: MemberId
    ) -> None:
        """Measure the connections of ``transport`` and push metrics through it, if wanted."""
        labels = {
            "group_id": config.group_id,
            "group_instance_id": config.group_instance_id,
            "group_member_id": None if config.group_id is None else member_id,
            "client_rack": config.client_rack,
        }
        self.measure(transport, connection_rows.CONSUMER)
        self.push(transport, labels)

    @contextmanager
    def looking_up(self) -> Generator[None]:
        """Note that the application waits for committed offsets."""
        began_ms = self._clock.now_ms()
        try:
            yield
        finally:
            now_ms = self._clock.now_ms()
            if self._group_meter is not None:
                self._group_meter.looked_up(now_ms, now_ms - began_ms)

    def fetch_meter(self, core: FetchCore) -> FetchMeter | None:
        """The meter of fetching, if metrics are on."""
        if self.metrics is None:
            return None
        return FetchMeter(self.metrics, core, committed=self._committed)

    def poll_meter(self) -> PollMeter | None:
        """The meter of calls for records, if metrics are on."""
        return PollMeter(self.metrics) if self.metrics is not None else None
