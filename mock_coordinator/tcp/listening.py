"""A listener that outlives a connection that cannot be accepted.

A library's accept loop ends at the first error, and the broker with it: when the process has no
file descriptor left, or the client was gone before it was accepted. Here each of these is a line in
the log, and the next one is tried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import anyio
import anyio.abc

from mock_coordinator.tcp.plain_connections import PlainListener

__all__ = ["listen_on"]

_log: Final = logging.getLogger("mock_coordinator")
_PATIENCE_S: Final = 0.1
"""How long to wait before the next try when nothing can be accepted."""

_Handler = Callable[[Any], Any]


async def listen_on(host: str, port: int, *, is_plain: bool = False) -> anyio.abc.Listener[Any]:
    """Listen at an address; port 0 picks a free one. Raises ``OSError`` when it cannot be bound.

    Connections come as ``SocketStream``; ``is_plain``: under asyncio as ``PlainSocket``.
    """
    bound = await anyio.create_tcp_listener(local_host=host, local_port=port)
    if is_plain and anyio.get_cancelled_exc_class() is asyncio.CancelledError:
        return _SteadyListener([PlainListener(each) for each in bound.listeners])
    return _SteadyListener(bound.listeners)


class _SteadyListener(anyio.abc.Listener[Any]):
    """Accepts for ever, at one address of each address family."""

    def __init__(self, listeners: Sequence[Any]) -> None:
        self._listeners: Final = listeners

    async def serve(self, handler: _Handler, task_group: anyio.abc.TaskGroup | None = None) -> None:
        """Run ``handler`` for each connection, in ``task_group``."""
        async with anyio.create_task_group() as own:
            for listener in self._listeners:
                own.start_soon(_accept_for_ever, listener, handler, task_group or own)

    async def aclose(self) -> None:
        """Stop listening."""
        for listener in self._listeners:
            await listener.aclose()

    @property
    def extra_attributes(self) -> Mapping[Any, Callable[[], Any]]:
        """Those of the first address; all have the same port."""
        found: Mapping[Any, Callable[[], Any]] = self._listeners[0].extra_attributes
        return found


async def _accept_for_ever(
    listener: Any, handler: _Handler, task_group: anyio.abc.TaskGroup
) -> None:
    while True:
        try:
            stream = await listener.accept()
        except (OSError, anyio.BrokenResourceError) as err:
            _log.warning("a connection cannot be accepted: %s", err.__cause__ or err)
            await anyio.sleep(_PATIENCE_S)
        else:
            task_group.start_soon(handler, stream)
