"""What can be seen of a consumer while it runs: its membership, its health, what happens to it."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from kip848_client.config import ConsumerConfig
from kip848_client.consumer._inquiry import Inquiry
from kip848_client.consumer._view import MemberView, health_of, health_without, view_of
from kip848_client.core.member import MemberState
from kip848_client.core.types import TopicPartition
from kip848_client.observe.core.watching import ConsumerHealth, Lifecycle
from kip848_client.runtime.arguments import checked_count, checked_timeout_ms
from kip848_client.runtime.client._event_streams import EventHub, EventStream

__all__ = ["Watched"]

K = TypeVar("K")
V = TypeVar("V")


class Watched(Inquiry[K, V]):
    """The part of ``Consumer`` that is for looking at it."""

    def __init__(self, config: ConsumerConfig) -> None:
        super().__init__(config)
        self._events = EventHub()

    @property
    def member(self) -> MemberView | None:
        """What the membership looks like now, ``None`` without one. A frozen snapshot."""
        engine = self._engine
        if engine is None or engine.group_driver is None:
            return None
        return view_of(engine.group_driver, engine.clock.now_ms(), engine.errors.fatal)

    def health(self) -> ConsumerHealth:
        """How the consumer is now: facts, and ``live``, ``ready`` and ``problems`` for probes. Also
        of one that has failed, was not started (live, not ready) or was stopped. May be called in
        any thread. Raises nothing."""
        engine = self._engine
        if engine is None:
            phase = Lifecycle.CLOSED if self._runtime.was_stopped else Lifecycle.NOT_STARTED
            return health_without(self._config, phase, None)
        if self._runtime.is_closed:
            return health_without(self._config, Lifecycle.CLOSED, engine.errors.fatal)
        return health_of(engine)

    def events(self, *, size: int = 1_000, heartbeats: bool = False) -> EventStream:
        """What happens to the membership from now on, to be iterated over with ``async for``:
        ``MembershipEvent``s of ``kip848_client.observe.core.watching``, each with its time and
        member epoch.

        It ends when the consumer is stopped. Legal before ``start``, so that nothing is missed.
        Each stream has a queue of ``size`` events: whoever reads too slowly loses the oldest ones,
        and gets an ``EventsMissed`` that says how many. Nothing waits for a reader. With
        ``heartbeats`` there is an event for each heartbeat as well, with its latency.
        """
        return self._events.stream(checked_count(size, "size"), heartbeats=heartbeats)

    async def client_instance_id(self, timeout_ms: int | None = None) -> str:
        """What brokers call this consumer where they tell of the metrics that it pushes (KIP-714),
        as their logs show it. Waits for it, at most ``timeout_ms`` (default:
        ``default_api_timeout_ms``).

        Raises ``LocalProtocolError`` for a consumer that pushes none (it takes ``metrics`` and the
        extra ``telemetry``), ``UnsupportedVersion`` where brokers take none, ``RequestTimedOut``.
        """
        limit_ms: float = self._config.default_api_timeout_ms
        if timeout_ms is not None:
            limit_ms = checked_timeout_ms(timeout_ms)
        return await self._run().observers.telemetry.instance_id(int(limit_ms))

    async def wait_stable(self, timeout_ms: int | None = None) -> frozenset[TopicPartition]:
        """Wait until the group has nothing more for us to do (state STABLE); returns the
        assignment, which may be empty: there may be more members than partitions, and a coordinator
        may answer a join before it has computed anything. Without a membership it returns at once.

        Raises ``TimeoutError`` after ``timeout_ms`` (``None``: never), after which waiting again is
        fine. It does not count as asking for records.
        """
        return await self._until_stable(timeout_ms, with_partitions=False)

    async def wait_assigned(self, timeout_ms: int | None = None) -> frozenset[TopicPartition]:
        """As ``wait_stable``, but until there is at least one partition."""
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
