"""aiokafka's client on our connections, for code that uses ``consumer._client``.

Instrumentation reads the cluster's id from it, some libraries topics and partitions. It has no
connections or tasks of its own: it uses those of its consumer or producer, with their login. Every
call returns or raises within a bounded time, even before the start and after the end.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Final, Self

from aiokafka.client import AIOKafkaClient, ConnectionGroup
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from kip848_client.aiokafka._request_shims import RequestShim
from kip848_client.errors import Kip848Error
from kip848_client.runtime.net._links import Link
from kip848_client.runtime.net._transport import KafkaTransport
from kip848_client.runtime.random import CHANCE

__all__ = ["LinkedClient"]

_NO_TOPICS: Final[tuple[str, ...]] = ()

Learn = Callable[[str], Awaitable[AbstractSet[int]]]
"""Finds the partitions of a topic that is written to."""


class LinkedClient(AIOKafkaClient):  # type: ignore[misc]  # aiokafka has no types
    """See the module. ``like`` makes it from the client that aiokafka's constructor has made."""

    _transport: KafkaTransport | None
    learn: Learn | None
    """Set for a producer, which knows the topics that are written to: looks up their partitions,
    and shows that the producer runs."""
    _refreshes: set[asyncio.Task[bool]]

    @classmethod
    def like(cls, client: Any) -> Self:
        """A client with the settings of aiokafka's ``client``, which was not used yet."""
        made = cls.__new__(cls)
        made.__dict__.update(vars(client), _transport=None, learn=None, _refreshes=set())
        return made

    @property
    def client_id(self) -> str:
        """The client id for brokers; aiokafka may have generated it."""
        made: str = self._client_id
        return made

    async def begin(self, transport: KafkaTransport) -> None:
        """Use the connections of ``transport`` from now on, and learn the brokers."""
        self._transport = transport
        await self._ask(self.cluster, MetadataRequest(list(_NO_TOPICS)))

    async def partitions_of(self, topics: Iterable[str]) -> set[tuple[str, int]]:
        """All partitions of topics, from a new request. Raises aiokafka's error for a topic that
        does not exist or that we may not see."""
        self._topics |= set(topics)
        await self.force_metadata_update()
        found: set[tuple[str, int]] = set()
        for name in topics:
            numbers: Any = await super()._wait_on_metadata(name)
            found |= {(name, number) for number in numbers}
        return found

    async def topics_where(
        self, fits: Callable[[str], object], *, with_internal: bool
    ) -> frozenset[str]:
        """The topics whose names fit, from a new request. Raises ``KafkaError``."""
        cluster: Any = self.cluster
        if not await self._metadata_update(cluster, None):
            raise KafkaError("no broker returned the list of topics")
        names: Iterable[str] = cluster.topics(exclude_internal_topics=not with_internal)
        return frozenset(name for name in names if fits(name))

    def learn_of(self, topic: str) -> asyncio.Future[bool]:
        """Add the topic to ``cluster`` soon; the result is whether a broker answered."""
        self._topics.add(topic)
        if self.cluster.partitions_for_topic(topic) is not None:
            return self._done(found=True)
        return self.force_metadata_update()

    def partitions_known(self, topics: Iterable[str]) -> set[tuple[str, int]]:
        """All partitions of topics, from the last metadata."""
        cluster: Any = self.cluster
        return {(name, n) for name in topics for n in cluster.partitions_for_topic(name) or ()}

    # -- aiokafka's methods ----------------------------------------------------------------------

    async def bootstrap(self) -> None:
        """Nothing to do: the consumer or producer connects."""

    async def close(self) -> None:
        """Nothing to do: the consumer or producer closes its connections."""
        self._transport = None
        self._conns.clear()
        refreshes = list(self._refreshes)
        for each in refreshes:
            each.cancel()
        await asyncio.gather(*refreshes, return_exceptions=True)

    def set_topics(self, topics: Iterable[str]) -> asyncio.Future[bool]:
        """Set the topics for ``force_metadata_update``. The consumer itself requests them."""
        self._topics = set(topics)
        return self._done(found=True)

    def force_metadata_update(self) -> asyncio.Future[bool]:
        """Request the topics that were added; the result is whether a broker answered."""
        if self._transport is None:
            return self._done(found=False)
        refresh = self._loop.create_task(self._metadata_update(self.cluster, self._topics))
        self._refreshes.add(refresh)
        refresh.add_done_callback(self._refreshes.discard)
        return asyncio.shield(refresh)

    async def _metadata_update(self, cluster_metadata: Any, topics: Iterable[str] | None) -> bool:
        named = list(topics) if topics else None
        return await self._ask(cluster_metadata, MetadataRequest(named))

    async def _wait_on_metadata(self, topic: str) -> Any:
        if self.learn is not None:
            return await self.learn(topic)
        return await super()._wait_on_metadata(topic)

    async def send(
        self, node_id: Any, request: Any, *, group: Any = ConnectionGroup.DEFAULT
    ) -> Any:
        """Send a request. Every request of the consumer or producer to a named broker passes
        through here, so that other code can wrap or replace this method. Requests of other code
        use our connections, too."""
        if isinstance(request, RequestShim):
            return await request.send()
        return await super().send(node_id, request, group=group or ConnectionGroup.DEFAULT)

    async def _get_conn(self, node_id: Any, *, group: Any = 0, no_hint: bool = False) -> Any:
        _ = no_hint
        transport = self._transport
        if transport is None:
            return None
        try:
            connection = await transport.link_to(node_id).connect()
        except Kip848Error:
            return None
        self._conns[node_id, group] = connection
        return connection

    # -- inside ----------------------------------------------------------------------------------

    async def _ask(self, cluster_metadata: Any, request: Any) -> bool:
        transport = self._transport
        for link in [] if transport is None else transport.candidates():
            answer = await self._answer(link, request)
            if answer is not None and answer.brokers:
                cluster_metadata.update_metadata(answer)
                return True
        return False

    async def _answer(self, link: Link, request: Any) -> Any:
        with contextlib.suppress(Kip848Error, KafkaError, OSError, TimeoutError):
            async with asyncio.timeout(self._request_timeout_ms / 1000):
                connection = await link.connect()
                return await connection.send(request)
        return None

    def _done(self, *, found: bool) -> asyncio.Future[bool]:
        done: asyncio.Future[bool] = self._loop.create_future()
        done.set_result(found)
        return done

    def get_random_node(self) -> int | None:
        """A broker, if one is known."""
        nodes = [each.nodeId for each in self.cluster.brokers()]
        return CHANCE.choice(nodes) if nodes else None
