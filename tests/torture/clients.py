"""What every process of a torture is made of."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, TypeVar

from kip848_client import Consumer, Producer, TransportError
from tests.torture.names import GROUP, IN, MAX_POLL_MS, READERS, TRANSACTION_MS
from tests.torture.telling import NEWEST

__all__ = [
    "AbandonedError",
    "Reached",
    "UnreachableError",
    "a_consumer",
    "a_producer",
    "a_reader",
]

Client = TypeVar("Client")


class AbandonedError(Exception):
    """The application does not want this transaction any more."""


class UnreachableError(Exception):
    """No broker went on answering while a client started."""


class Reached(Generic[Client]):
    """A client for the length of a block. Raises ``UnreachableError`` where brokers go away while
    it starts; once it has, it has to get over that by itself."""

    def __init__(self, client: AbstractAsyncContextManager[Client, bool | None]) -> None:
        self._client = client

    async def __aenter__(self) -> Client:
        try:
            return await self._client.__aenter__()
        except TransportError as err:
            raise UnreachableError(str(err)) from err

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.__aexit__(kind, error, trace)


def a_consumer(bootstrap: str, name: str, *topics: str) -> Consumer[Any, Any]:
    """One of the group."""
    consumer: Consumer[Any, Any] = Consumer(
        *topics,
        bootstrap_servers=bootstrap,
        group_id=GROUP,
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        fetch_max_wait_ms=100,
    )
    NEWEST["consumer"] = consumer
    return consumer


def a_reader(bootstrap: str, name: str, *, enable_auto_commit: bool = False) -> Consumer[Any, Any]:
    """One of the group that only reads."""
    consumer: Consumer[Any, Any] = Consumer(
        IN,
        bootstrap_servers=bootstrap,
        group_id=READERS,
        client_id=name,
        auto_offset_reset="earliest",
        enable_auto_commit=enable_auto_commit,
        auto_commit_interval_ms=500,
        max_poll_interval_ms=MAX_POLL_MS,
        fetch_max_wait_ms=100,
    )
    NEWEST["consumer"] = consumer
    return consumer


def a_producer(bootstrap: str, name: str) -> Producer[Any, Any]:
    """The one with this transactional id."""
    producer: Producer[Any, Any] = Producer(
        bootstrap_servers=bootstrap,
        client_id=name,
        transactional_id=name,
        transaction_timeout_ms=TRANSACTION_MS,
        linger_ms=0,
    )
    NEWEST["producer"] = producer
    return producer
