"""``Transport`` whose requests go out through ``send`` of an aiokafka client.

Code that wraps or replaces ``send`` (instrumentation, a test that simulates a failing broker) sees
them, and what it returns or raises takes effect. The requests still use our connections.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import KafkaError

from kip848_client.aiokafka._client import LinkedClient
from kip848_client.aiokafka._request_shims import FetchShim, ProduceShim, RequestShim
from kip848_client.core.ports import TopicView
from kip848_client.core.types import ANY_VERSION, VersionLimits
from kip848_client.errors import BrokerError, Kip848Error, UnsupportedVersion
from kip848_client.runtime.net._errors import translated
from kip848_client.runtime.net._transport import KafkaTransport

__all__ = ["ClientTransport", "SendHooks"]


@dataclass(frozen=True, slots=True)
class SendHooks:
    """How requests reach aiokafka's ``send``. ``instead`` translates an error of ours. ``names``
    returns the map of topic names and ids. ``to_coordinator`` and ``to_leader`` send, and store the
    response in ``RequestShim.returned``."""

    client: LinkedClient
    instead: Callable[[Kip848Error], Exception]
    names: Callable[[], TopicView]
    to_coordinator: Callable[[RequestShim], Awaitable[object]] | None = None
    to_leader: Callable[[int, RequestShim], Awaitable[object]] | None = None


class ClientTransport(KafkaTransport):
    """See the module."""

    def __init__(self, hooks: SendHooks, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._hooks = hooks

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

        hooks = self._hooks
        shim = FetchShim(request, sent, hooks.instead, hooks.names())
        return await self._answer(shim, self._sent(node_id, shim))

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

        hooks = self._hooks
        shim = ProduceShim(request, sent, hooks.instead)
        way = hooks.to_leader
        going = self._sent(node_id, shim) if way is None else way(node_id, shim)
        try:
            return await self._answer(shim, going)
        except BrokerError as err:
            if isinstance(err, UnsupportedVersion) or err in shim.failures:
                raise
            return shim.refused(err.code)  # an error raised on the way counts as the broker's

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

        shim = RequestShim(request, sent, self._hooks.instead)
        return await self._answer(shim, self._sent(node_id, shim))

    async def coordinator(
        self, request: Any, *, versions: VersionLimits = ANY_VERSION, timeout_ms: int | None = None
    ) -> Any:
        send = super().coordinator

        def sent() -> Awaitable[Any]:
            return send(request, versions=versions, timeout_ms=timeout_ms)

        shim = RequestShim(request, sent, self._hooks.instead)
        way = self._hooks.to_coordinator
        going = self._sent(self.coordinator_node, shim) if way is None else way(shim)
        return await self._answer(shim, going)

    async def _sent(self, node_id: int | None, shim: RequestShim) -> None:
        shim.returned = await self._hooks.client.send(node_id, shim)

    async def _answer(self, shim: RequestShim, going: Awaitable[object]) -> Any:
        """The response. Raises our original error if there was one, or the equivalent of an
        aiokafka error that other code raised."""
        failure: Kip848Error | None = None
        try:
            await going
        except Exception as err:
            failure = next((ours for ours in shim.failures if err.__cause__ is ours), None)
            if failure is None and not isinstance(err, KafkaError | OSError):
                raise  # a bug in other code
            if failure is None:
                raise translated(err, type(shim.request).__name__) from err
        if failure is not None:
            raise failure.with_traceback(None)  # here, where it gets no context
        return shim.understood()
