"""The listener that starts and stops a worker's items."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from kip848_client.connect.core._model import AssignedItem
from kip848_client.core.short import short
from kip848_client.errors import ConfigError

__all__ = ["WorkerRebalanceListener", "checked_listener"]


class WorkerRebalanceListener(Protocol):
    """Starts and stops items; methods may be coroutines.

    Calls are made one at a time.

    If a method raises, the error is logged. An item that could not be started still belongs to this
    worker, and an item that could not be stopped does not.
    """

    def on_assigned(self, items: tuple[AssignedItem, ...], /) -> Awaitable[None] | None:
        """Start newly assigned items.

        Args:
            items: The new items only.

        Returns:
            ``None``, or an awaitable that is awaited.

        Raises:
            Exception: It is logged; the items still belong to this worker.
        """
        ...

    def on_revoked(self, items: tuple[AssignedItem, ...], /) -> Awaitable[None] | None:
        """Stop items that move to other workers, which start them when this returns.

        The time limit is ``task_shutdown_graceful_timeout_ms``. After that the call is cancelled,
        and the other workers start the items anyway.

        Args:
            items: The revoked items only.

        Returns:
            ``None``, or an awaitable that is awaited.

        Raises:
            Exception: It is logged; the items are given up.
        """
        ...

    def on_lost(self, items: tuple[AssignedItem, ...], /) -> Awaitable[None] | None:
        """Stop items at once: the group has removed this worker, or may have.

        Args:
            items: The lost items.

        Returns:
            ``None``, or an awaitable that is awaited.

        Raises:
            Exception: It is logged; the items are lost.
        """
        ...


def checked_listener(listener: object) -> WorkerRebalanceListener:
    """Return ``listener`` if it has the methods. Raises ``ConfigError``."""
    for name in ("on_assigned", "on_revoked", "on_lost"):
        if not callable(getattr(listener, name, None)):
            raise ConfigError(f"the listener {short(listener)} has no method {name}")
    return listener  # type: ignore[return-value]  # its methods were just looked at
