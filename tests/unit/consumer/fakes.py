"""Stand-ins for the ports, answered by the test."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from kip848_client.core.types import ANY_VERSION, TopicId, VersionLimits
from kip848_client.core.wire import request_api
from kip848_client.core.wire.messages.metadata import MetadataResponseTopic

__all__ = ["FakeClock", "FakeTopics", "FakeTransport"]


class FakeClock:
    """Moves only when told to."""

    def __init__(self) -> None:
        self.ms = 1_000

    def now_ms(self) -> int:
        return self.ms

    def left_s(self, then_ms: int) -> float:
        return max(0, then_ms - self.ms) / 1000


class FakeTransport:
    """``answer`` gets (where, request) and returns the response or raises; ``asked`` keeps both."""

    def __init__(self, answer: Callable[[str, Any], Any]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []
        self.requests: list[Any] = []
        self.versions: list[VersionLimits] = []
        self.timeouts: list[int | None] = []
        self.brokers: dict[int, tuple[str, int]] = {}
        self.begun_anew = 0
        self.found = 0
        self.forgotten = 0

    async def _ask(self, where: str, request: Any, versions: VersionLimits) -> Any:
        self.asked.append((where, request_api(request).name))
        self.requests.append(request)
        self.versions.append(versions)
        return self.answer(where, request)

    async def any_broker(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int | None = None
    ) -> Any:
        self.timeouts.append(timeout_ms)
        return await self._ask("any", request, versions)

    async def broker(
        self,
        node_id: int,
        request: Any,
        *,
        versions: VersionLimits = ANY_VERSION,
        timeout_ms: int | None = None,
    ) -> Any:
        self.timeouts.append(timeout_ms)
        return await self._ask(f"broker {node_id}", request, versions)

    async def fetch(
        self, node_id: int, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int
    ) -> Any:
        self.timeouts.append(timeout_ms)
        return await self._ask(f"fetch {node_id}", request, versions)

    async def coordinator(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int | None = None
    ) -> Any:
        self.timeouts.append(timeout_ms)
        return await self._ask("coordinator", request, versions)

    async def find_coordinator(self) -> None:
        self.found += 1

    def forget_coordinator(self) -> None:
        self.forgotten += 1

    def learn_brokers(self, brokers: Iterable[tuple[int, str, int]]) -> None:
        self.brokers = {each[0]: each[1:] for each in brokers}

    def add_brokers(self, brokers: Iterable[tuple[int, str, int]]) -> None:
        self.brokers |= {each[0]: each[1:] for each in brokers}

    async def begin_anew(self) -> None:
        self.brokers = {}
        self.begun_anew += 1


class FakeTopics:
    """Ids from a dictionary."""

    def __init__(self, ids: Mapping[str, TopicId] | None = None) -> None:
        self.ids = dict(ids or {})
        self.watched: set[str] = set()
        self.refreshed = 0

    def name_of(self, topic_id: TopicId) -> str | None:
        return next((name for name, each in self.ids.items() if each == topic_id), None)

    def id_of(self, topic: str) -> TopicId | None:
        return self.ids.get(topic)

    def partitions_of(self, topic: str) -> frozenset[int] | None:
        return frozenset({0}) if topic in self.ids else None

    def want(self, topics: Collection[str]) -> None:
        self.watched |= set(topics)

    def watch(self, topics: Collection[str]) -> None:
        self.watched |= set(topics)

    def retain(self, topics: Collection[str]) -> None:
        self.watched &= set(topics)

    async def resolve(self, topic_ids: Iterable[TopicId]) -> Mapping[TopicId, str]:
        found = {each: self.name_of(each) for each in topic_ids}
        return {each: name for each, name in found.items() if name is not None}

    async def refresh(self, topics: Iterable[str] = ()) -> None:
        self.refreshed += 1
        self.watched |= set(topics)

    def refresh_soon(self) -> None:
        self.refreshed += 1

    async def list_topics(self) -> tuple[MetadataResponseTopic, ...]:
        return ()
