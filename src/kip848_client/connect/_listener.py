"""Who starts and stops what a worker is assigned."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from kip848_client.connect.core._model import AssignedItem
from kip848_client.core.shown import shown
from kip848_client.errors import ConfigError

__all__ = ["WorkerRebalanceListener", "checked_listener"]


class WorkerRebalanceListener(Protocol):
    """Told what to start and to stop; methods may be coroutines. Calls come one after the other.

    An error of theirs is logged: an item that could not be started is this worker's all the same,
    and one that could not be stopped is not.
    """

    def on_assigned(self, items: tuple[AssignedItem, ...], /) -> Awaitable[None] | None:
        """Start these."""
        ...

    def on_revoked(self, items: tuple[AssignedItem, ...], /) -> Awaitable[None] | None:
        """Stop these. When this returns, others start them. It has
        ``task_shutdown_graceful_timeout_ms``; then it is cancelled, and they start them anyway."""
        ...

    def on_lost(self, items: tuple[AssignedItem, ...], /) -> Awaitable[None] | None:
        """Stop these at once: the group has put this worker out, or may have."""
        ...


def checked_listener(listener: object) -> WorkerRebalanceListener:
    """``listener``, if it has the methods. Raises ``ConfigError``."""
    for name in ("on_assigned", "on_revoked", "on_lost"):
        if not callable(getattr(listener, name, None)):
            raise ConfigError(f"the listener {shown(listener)} has no method {name}")
    return listener  # type: ignore[return-value]  # its methods were just looked at
