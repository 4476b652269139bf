"""A listener that continues after a connection that cannot be accepted.

A library's accept loop ends at the first error, and the broker with it: when the process has no
file descriptor left, or the client disconnected before it was accepted. Here each of these is
logged, and the next connection is tried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import anyio
import anyio.abc

from mock_coordinator.tcp.plain_sockets import PlainListener

__all__ = ["SteadyListener", "listen_on"]

_log: Final = logging.getLogger("mock_coordinator")
_PATIENCE_S: Final = 0.1
"""How long to wait before the next try when nothing can be accepted."""


class SteadyListener:
    """Accepts until ``aclose``, at one address of each address family."""

    def __init__(self, listeners: Sequence[Any]) -> None:
        self._listeners: Final = listeners

    @property
    def port(self) -> int:
        """The port, which is the same for all."""
        port: int = self._listeners[0].extra_attributes[anyio.abc.SocketAttribute.local_port]()
        return port

    async def serve(self, accepted: Callable[[Any], Awaitable[None]]) -> None:
        """Await ``accepted`` with each connection. The next one at the same address is accepted
        after that: until then it waits in the operating system, which has a bound for them."""
        async with anyio.create_task_group() as tasks:
            for listener in self._listeners:
                tasks.start_soon(_accept_for_ever, listener, accepted)

    async def aclose(self) -> None:
        """Stop listening."""
        for listener in self._listeners:
            await listener.aclose()


async def listen_on(host: str, port: int, *, is_plain: bool = False) -> SteadyListener:
    """Listen at an address; port 0 picks a free one. Raises ``OSError`` when it cannot be bound.

    Connections come as ``SocketStream``; ``is_plain``: under asyncio as ``PlainSocket``.
    """
    bound = await anyio.create_tcp_listener(local_host=host, local_port=port)
    if is_plain and anyio.get_cancelled_exc_class() is asyncio.CancelledError:
        return SteadyListener([PlainListener(each) for each in bound.listeners])
    return SteadyListener(bound.listeners)


async def _accept_for_ever(listener: Any, accepted: Callable[[Any], Awaitable[None]]) -> None:
    while True:
        try:
            stream = await listener.accept()
        except (OSError, anyio.BrokenResourceError) as err:
            _log.warning("cannot accept a connection: %s", err.__cause__ or err)
            await anyio.sleep(_PATIENCE_S)
        else:
            await accepted(stream)
