"""A network without sockets: all requests reach a broker in this process. Each may be spoilt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from kip848_client import Consumer, TopicPartition
from kip848_client.consumer._engine import Engine
from kip848_client.core.types import ANY_VERSION, VersionLimits
from kip848_client.core.wire import request_api
from kip848_client.runtime.net._transport import KafkaTransport
from mock_coordinator import MockBroker

__all__ = ["FakeNetwork", "Offline", "offline"]

TP = TopicPartition("t", 0)


class FakeTransport:
    """``before`` is called with the name of the API, before each request is served; it may raise
    or wait. ``closed`` counts."""

    def __init__(self, broker: MockBroker) -> None:
        self._connection = broker.connect()
        self.before: Callable[[str], Any] = lambda _name: None
        self.asked: list[str] = []
        self.closed = 0
        self.begun_anew = 0
        self.closing: Callable[[], None] = lambda: None
        self.knows_coordinator = True

    async def bootstrap(self) -> Any:
        await self._look("Bootstrap")

    def require_kip848(self, _link: Any) -> None:
        pass

    def learn_brokers(self, _brokers: Any) -> None:
        pass

    async def any_broker(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int | None = None
    ) -> Any:
        del versions, timeout_ms
        await self._look(request_api(request).name)
        return await self._connection.request(request)

    async def broker(self, _node_id: int, request: Any, **options: Any) -> Any:
        return await self.any_broker(request, **options)

    async def fetch(self, _node_id: int, request: Any, **options: Any) -> Any:
        return await self.any_broker(request, **options)

    def add_brokers(self, _brokers: Any) -> None:
        pass

    async def begin_anew(self) -> None:
        self.begun_anew += 1

    async def coordinator(self, request: Any, **options: Any) -> Any:
        return await self.any_broker(request, **options)

    async def find_coordinator(self) -> None:
        await self._look("FindCoordinator")

    def forget_coordinator(self) -> None:
        pass

    async def close(self, _why: Any) -> None:
        self.closed += 1
        self.closing()
        self._connection.close()

    async def _look(self, name: str) -> None:
        self.asked.append(name)
        waiting = self.before(name)
        if waiting is not None:
            await waiting


class FakeNetwork:
    """What an ``Engine`` is given for ``network``."""

    def __init__(self, broker: MockBroker) -> None:
        self.transport = FakeTransport(broker)

    def __call__(self, _config: Any, _clock: Any) -> KafkaTransport:
        return cast("KafkaTransport", self.transport)


class Offline:
    """A consumer of group ``g`` that is subscribed to ``t``, whose partition 0 has 5 records."""

    def __init__(self, broker: MockBroker, consumer: Consumer[Any, Any]) -> None:
        self.broker = broker
        self.consumer = consumer
        self.network = FakeNetwork(broker)
        broker.produce("t", *[b"%d" % n for n in range(5)])

    @property
    def engine(self) -> Engine[Any, Any]:
        engine = self.consumer._engine
        assert engine is not None
        return engine

    @property
    def committed(self) -> int | None:
        """What the group has committed."""
        group = self.broker.snapshot("g")
        offsets = {} if group is None else group.offsets.get("t", {})
        return offsets[0].offset if 0 in offsets else None

    @property
    def members(self) -> int:
        group = self.broker.snapshot("g")
        return 0 if group is None else len(group.members)


@asynccontextmanager
async def offline(
    monkeypatch: pytest.MonkeyPatch, partitions: int = 1, **settings: Any
) -> AsyncGenerator[Offline]:
    """The consumer, not started; it is stopped at the end if the test has not done so."""
    async with MockBroker({"t": partitions}, listen=False) as broker:
        settings.setdefault("auto_commit_interval_ms", 60_000)
        settings.setdefault("auto_offset_reset", "earliest")
        consumer: Consumer[Any, Any] = Consumer("t", group_id="g", **settings)
        one = Offline(broker, consumer)
        monkeypatch.setattr(consumer, "_network", one.network)
        before = asyncio.all_tasks()
        try:
            yield one
        finally:
            await consumer.stop(timeout_ms=1_000)
        left = [each for each in asyncio.all_tasks() - before if not each.done()]
        assert not left, f"tasks are left: {left}"
