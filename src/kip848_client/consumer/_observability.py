"""The observable state of a consumer: its membership, health and events."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from kip848_client.config import ConsumerConfig
from kip848_client.consumer._offset_queries import OffsetQueries
from kip848_client.consumer._view import MemberView, health_of, health_without, view_of
from kip848_client.core.member import MemberState
from kip848_client.core.types import TopicPartition
from kip848_client.observe.core.watching import ConsumerHealth, Lifecycle
from kip848_client.runtime.arguments import checked_count, checked_timeout_ms
from kip848_client.runtime.client._event_streams import EventHub, EventStream

__all__ = ["Observability"]

K = TypeVar("K")
V = TypeVar("V")


class Observability(OffsetQueries[K, V]):
    """The observing methods of ``Consumer``."""

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self._events = EventHub()

    @property
    def member(self) -> MemberView | None:
        """The current membership, ``None`` without one. A frozen snapshot."""
        engine = self._engine
        if engine is None or engine.group_driver is None:
            return None
        return view_of(engine.group_driver, engine.clock.now_ms(), engine.errors.fatal)

    def health(self) -> ConsumerHealth:
        """Get the health: facts, and ``live``, ``ready``, ``problems`` for probes.

        Works in every state: not started (live, not ready), failed and stopped, too. May be called
        in any thread. Raises nothing.

        Returns:
            A frozen snapshot.
        """
        engine = self._engine
        if engine is None:
            phase = Lifecycle.CLOSED if self._runtime.was_stopped else Lifecycle.NOT_STARTED
            return health_without(self._config, phase, None)
        if self._runtime.is_closed:
            return health_without(self._config, Lifecycle.CLOSED, engine.errors.fatal)
        return health_of(engine)

    def events(self, *, size: int = 1_000, heartbeats: bool = False) -> EventStream:
        """Follow what happens to the membership from now on; iterate with ``async for``.

        Call it before ``start`` to miss nothing. The stream ends when the consumer is stopped. Each
        stream has its own queue; a slow reader never delays the consumer.

        Args:
            size: How many events the queue holds. When it is full the oldest are dropped, and the
                reader gets an ``EventsMissed`` with their number.
            heartbeats: Add an event for each heartbeat, with its latency.

        Returns:
            The stream. Its events are the ``MembershipEvent`` classes of ``kip848_client.observe``,
            each with its time and the member epoch.

        Raises:
            ConfigError: ``size`` is not a positive integer.
        """
        return self._events.stream(checked_count(size, "size"), heartbeats=heartbeats)

    async def client_instance_id(self, timeout_ms: int | None = None) -> str:
        """Get the id under which brokers report this client's metrics (KIP-714).

        Waits until a broker has assigned it (Kafka's GetTelemetrySubscriptions, Kafka 3.7). It is
        the text that brokers' logs show.

        Args:
            timeout_ms: How long to wait, in milliseconds. Default: ``default_api_timeout_ms``.

        Returns:
            The id as URL-safe Base64 without padding.

        Raises:
            LocalProtocolError: This consumer pushes no metrics. That takes the setting ``metrics``
                and the extra ``telemetry``.
            UnsupportedVersion: The brokers take no metrics.
            RequestTimedOut: No broker has answered in time.
        """
        limit_ms: float = self._config.default_api_timeout_ms
        if timeout_ms is not None:
            limit_ms = checked_timeout_ms(timeout_ms)
        return await self._run().observers.telemetry.instance_id(int(limit_ms))

    async def wait_stable(self, timeout_ms: int | None = None) -> frozenset[TopicPartition]:
        """Wait until the group has nothing more for this member to do (state STABLE).

        The assignment may be empty then: there may be more members than partitions, or the
        coordinator has answered the join before it computed an assignment. Does not count as asking
        for records. Without a membership it returns at once.

        Args:
            timeout_ms: How long to wait, in milliseconds; ``None``: without limit.

        Returns:
            The assigned partitions.

        Raises:
            TimeoutError: The time is over. You may wait again.
            Kip848Error: The error that ended the consumer; ``ConsumerClosed`` after ``stop``.
        """
        return await self._until_stable(timeout_ms, with_partitions=False)

    async def wait_assigned(self, timeout_ms: int | None = None) -> frozenset[TopicPartition]:
        """Wait as ``wait_stable``, and until at least one partition is assigned.

        Args:
            timeout_ms: How long to wait, in milliseconds; ``None``: without limit.

        Returns:
            The assigned partitions.

        Raises:
            TimeoutError: The time is over. You may wait again.
            Kip848Error: The error that ended the consumer; ``ConsumerClosed`` after ``stop``.
        """
        return await self._until_stable(timeout_ms, with_partitions=True)

    async def _until_stable(
        self, timeout_ms: int | None, *, with_partitions: bool
    ) -> frozenset[TopicPartition]:
        group_driver = self._run().group_driver
        if group_driver is None:
            return self.assignment()
        timeout_s = None if timeout_ms is None else checked_timeout_ms(timeout_ms) / 1000
        async with asyncio.timeout(timeout_s):
            while group_driver.member.state is not MemberState.STABLE or (
                with_partitions and not self.assignment()
            ):
                await group_driver.change()
                self._run()
        return self.assignment()
