"""A producer without sockets: its requests reach a broker in this process. Each may be spoilt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from kip848_client import Producer
from kip848_client.core.wire import request_api
from kip848_client.producer._engine import Engine
from kip848_client.runtime.net._transport import KafkaTransport
from mock_coordinator import MockBroker

__all__ = ["Offline", "offline"]


class FakeTransport:
    """``before`` is called with the name of the API, before each request is served; it may raise
    or wait."""

    def __init__(self, broker: MockBroker) -> None:
        self._connection = broker.connect()
        self.before: Callable[[str], Any] = lambda _name: None
        self.asked: list[str] = []

    async def bootstrap(self) -> None:
        pass

    def learn_brokers(self, _brokers: Any) -> None:
        pass

    def add_brokers(self, _brokers: Any) -> None:
        pass

    def opened(self, _node_id: int) -> int:
        return 1

    async def any_broker(self, request: Any, **_options: Any) -> Any:
        name = request_api(request).name
        self.asked.append(name)
        waiting = self.before(name)
        if waiting is not None:
            await waiting
        return await self._connection.request(request)

    async def broker(self, _node_id: int, request: Any, **options: Any) -> Any:
        return await self.any_broker(request, **options)

    async def produce(self, _node_id: int, request: Any, **options: Any) -> Any:
        return await self.any_broker(request, **options)

    async def begin_anew(self) -> None:
        pass

    async def close(self, _why: Any) -> None:
        self._connection.close()


class Offline:
    """A producer, and a broker with the topic ``t``."""

    def __init__(self, broker: MockBroker, producer: Producer[Any, Any]) -> None:
        self.broker = broker
        self.producer = producer
        self.transport = FakeTransport(broker)

    def network(self, _config: Any, _clock: Any) -> KafkaTransport:
        """What an ``Engine`` is given."""
        return cast("KafkaTransport", self.transport)

    @property
    def engine(self) -> Engine:
        engine = self.producer._engine
        assert engine is not None
        return engine


@asynccontextmanager
async def offline(
    monkeypatch: pytest.MonkeyPatch, partitions: int = 1, **settings: Any
) -> AsyncGenerator[Offline]:
    """The producer, started; it is stopped at the end."""
    async with MockBroker({"t": partitions}, listen=False) as broker:
        one = Offline(broker, Producer(**settings))
        monkeypatch.setattr(one.producer, "_network", one.network)
        before = asyncio.all_tasks()
        await one.producer.start()
        try:
            yield one
        finally:
            await one.producer.stop(timeout_ms=1_000)
        here = {asyncio.current_task()}
        left = [each for each in asyncio.all_tasks() - before - here if not each.done()]
        assert not left, f"tasks are left: {left}"
