"""``Transport`` whose requests go out through ``send`` of an aiokafka client.

Whoever wraps or replaces ``send`` (an instrumentation, a test that lets a broker fail) sees them,
and what it returns or raises counts. Nothing else changes: the requests go over our connections.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import KafkaError

from kip848_client.aiokafka._carried import Carried, CarriedFetch, CarriedProduce
from kip848_client.aiokafka._client import LinkedClient
from kip848_client.core.ports import TopicView
from kip848_client.core.types import ANY_VERSION, VersionLimits
from kip848_client.errors import BrokerError, Kip848Error, UnsupportedVersion
from kip848_client.runtime.net._errors import translated
from kip848_client.runtime.net._transport import KafkaTransport

__all__ = ["ClientTransport", "Ways"]


@dataclass(frozen=True, slots=True)
class Ways:
    """How requests get to aiokafka's ``send``. ``instead``: the error that stands for one of ours
    on the way. ``names`` gives what knows the topics. ``to_coordinator`` and ``to_leader`` send,
    and note in ``Carried.returned`` what came back."""

    client: LinkedClient
    instead: Callable[[Kip848Error], Exception]
    names: Callable[[], TopicView]
    to_coordinator: Callable[[Carried], Awaitable[object]] | None = None
    to_leader: Callable[[int, Carried], Awaitable[object]] | None = None


class ClientTransport(KafkaTransport):
    """See the module."""

    def __init__(self, ways: Ways, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._ways = ways

    @property
    def coordinator_node(self) -> int | None:
        """The broker that coordinates the group, as far as it is known."""
        link = self._coordinator
        if link is None:
            return None
        found = (n for n, address in self._nodes.items() if address == (link.host, link.port))
        return next(found, None)

    async def fetch(
        self, node_id: int, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int
    ) -> Any:
        send = super().fetch

        def sent() -> Awaitable[Any]:
            return send(node_id, request, versions=versions, timeout_ms=timeout_ms)

        ways = self._ways
        carried = CarriedFetch(request, sent, ways.instead, ways.names())
        return await self._answer(carried, self._sent(node_id, carried))

    async def produce(
        self,
        node_id: int,
        request: Any,
        *,
        versions: VersionLimits,
        timeout_ms: int,
        is_answered: bool,
    ) -> Any:
        send = super().produce

        def sent() -> Awaitable[Any]:
            return send(
                node_id,
                request,
                versions=versions,
                timeout_ms=timeout_ms,
                is_answered=is_answered,
            )

        ways = self._ways
        carried = CarriedProduce(request, sent, ways.instead)
        way = ways.to_leader
        going = self._sent(node_id, carried) if way is None else way(node_id, carried)
        try:
            return await self._answer(carried, going)
        except BrokerError as err:
            if isinstance(err, UnsupportedVersion) or err in carried.failures:
                raise
            return carried.refused(err.code)  # what was raised on the way is what a broker says

    async def broker(
        self,
        node_id: int,
        request: Any,
        *,
        versions: VersionLimits = ANY_VERSION,
        timeout_ms: int | None = None,
    ) -> Any:
        send = super().broker

        def sent() -> Awaitable[Any]:
            return send(node_id, request, versions=versions, timeout_ms=timeout_ms)

        carried = Carried(request, sent, self._ways.instead)
        return await self._answer(carried, self._sent(node_id, carried))

    async def coordinator(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int | None = None
    ) -> Any:
        send = super().coordinator

        def sent() -> Awaitable[Any]:
            return send(request, versions=versions, timeout_ms=timeout_ms)

        carried = Carried(request, sent, self._ways.instead)
        way = self._ways.to_coordinator
        going = self._sent(self.coordinator_node, carried) if way is None else way(carried)
        return await self._answer(carried, going)

    async def _sent(self, node_id: int | None, carried: Carried) -> None:
        carried.returned = await self._ways.client.send(node_id, carried)

    async def _answer(self, carried: Carried, going: Awaitable[object]) -> Any:
        """What came back. Raises our error where ours was raised, or one that says the same as
        aiokafka's that others have raised."""
        failure: Kip848Error | None = None
        try:
            await going
        except Exception as err:
            failure = next((ours for ours in carried.failures if err.__cause__ is ours), None)
            if failure is None and not isinstance(err, KafkaError | OSError):
                raise  # a mistake in the code of somebody
            if failure is None:
                raise translated(err, type(carried.request).__name__) from err
        if failure is not None:
            raise failure.with_traceback(None)  # here, where it gets no context
        return carried.understood()
