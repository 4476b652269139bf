"""An application of FastStream with one subscriber of every kind, for whichever client is below."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from faststream import AckPolicy, BaseMiddleware
from faststream.kafka import KafkaBroker, KafkaMessage
from faststream.kafka.annotations import Consumer

__all__ = ["KINDS", "Application"]

Handler = TypeVar("Handler", bound=Callable[..., Any])

KINDS = ("one", "many", "manual", "failing", "workers", "chain", "chained")


class Application:
    """Its broker, and what each handler has seen. ``topic`` names the topic of a handler."""

    def __init__(
        self, bootstrap: str, topic: Callable[[str], str], middlewares: tuple[Any, ...] = ()
    ) -> None:
        self.seen: dict[str, Counter[bytes]] = {kind: Counter() for kind in KINDS}
        self.workers: set[asyncio.Task[Any] | None] = set()
        self.consumers: set[type] = set()
        self.passed = 0
        self.broker = KafkaBroker(
            bootstrap, middlewares=(self._middleware(), *middlewares), graceful_timeout=5.0
        )
        for kind, subscribe in _SUBSCRIBERS.items():
            subscribe(self, topic(kind), topic)

    def _middleware(self) -> type[BaseMiddleware[Any, Any]]:
        application = self

        class Counting(BaseMiddleware[Any, Any]):
            async def on_receive(self) -> Any:
                application.passed += 1
                return await super().on_receive()

        return Counting

    def subscriber(self, topic: str, kind: str, **options: Any) -> Callable[[Handler], Handler]:
        options.setdefault("fetch_max_wait_ms", 50)
        added: Any = self.broker.subscriber(
            topic, group_id=f"{topic}-{kind}", auto_offset_reset="earliest", **options
        )

        def subscribe(handler: Handler) -> Handler:
            wrapped: Handler = added(handler)
            return wrapped

        return subscribe

    def is_done(self, values: int) -> bool:
        """Whether each handler has seen each value as often as it should."""
        once = {b"v%d" % number: 1 for number in range(values)}
        again = once | {b"v0": 2}
        expected = dict.fromkeys(KINDS, once) | {"manual": again, "failing": again}
        return self.seen == {kind: Counter(each) for kind, each in expected.items()}


def _one(app: Application, topic: str, _topic: Callable[[str], str]) -> None:
    @app.subscriber(topic, "one")
    async def one(value: bytes, message: KafkaMessage, consumer: Consumer) -> None:
        record: Any = message.raw_message
        assert record.topic == topic
        app.consumers.add(type(consumer))
        app.seen["one"][value] += 1


def _many(app: Application, topic: str, _topic: Callable[[str], str]) -> None:
    @app.subscriber(topic, "many", batch=True, max_records=7)
    async def many(values: list[bytes]) -> None:
        assert len(values) <= 7
        app.seen["many"].update(values)


def _manual(app: Application, topic: str, _topic: Callable[[str], str]) -> None:
    @app.subscriber(topic, "manual", ack_policy=AckPolicy.MANUAL)
    async def manual(value: bytes, message: KafkaMessage) -> None:
        app.seen["manual"][value] += 1
        if value == b"v0" and app.seen["manual"][value] == 1:
            await message.nack()
        else:
            await message.ack()


def _failing(app: Application, topic: str, _topic: Callable[[str], str]) -> None:
    @app.subscriber(topic, "failing", ack_policy=AckPolicy.NACK_ON_ERROR)
    async def failing(value: bytes) -> None:
        app.seen["failing"][value] += 1
        if value == b"v0" and app.seen["failing"][value] == 1:
            raise ValueError("once")


def _workers(app: Application, topic: str, _topic: Callable[[str], str]) -> None:
    @app.subscriber(topic, "workers", max_workers=2)
    async def workers(value: bytes) -> None:
        app.workers.add(asyncio.current_task())
        app.seen["workers"][value] += 1


def _chain(app: Application, topic: str, name: Callable[[str], str]) -> None:
    @app.broker.publisher(name("chained"), headers={"from": "chain"})
    @app.subscriber(topic, "chain")
    async def chain(value: bytes) -> bytes:
        app.seen["chain"][value] += 1
        return value


def _chained(app: Application, topic: str, _topic: Callable[[str], str]) -> None:
    @app.subscriber(topic, "chained")
    async def chained(value: bytes, message: KafkaMessage) -> None:
        assert message.headers["from"] == "chain"
        app.seen["chained"][value] += 1


_SUBSCRIBERS: dict[str, Callable[[Application, str, Callable[[str], str]], None]] = {
    "one": _one,
    "many": _many,
    "manual": _manual,
    "failing": _failing,
    "workers": _workers,
    "chain": _chain,
    "chained": _chained,
}
