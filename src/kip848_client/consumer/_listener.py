"""The user's rebalance listener: its shape, and how it is called.

Calls are made one at a time, in the order of the group's requests, on a task of the consumer while
heartbeats continue. A listener may use the consumer freely (commit, seek, pause, position); it may
not ``stop`` it, because stopping waits for the listener.

A listener that raises (even a CancelledError), or exceeds its timeout (it is cancelled then, and
again each second until it ends), has failed: the application's next call for records raises
``CallbackError``, and the listener is called again with the same partitions after that. Nothing is
acknowledged to the group in between. A failed ``on_partitions_lost`` is only reported, because the
partitions are lost in any case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

from kip848_client.core.short import short
from kip848_client.core.types import TopicPartition
from kip848_client.errors import CallbackError, ConfigError
from kip848_client.runtime._hooks import call_hook

__all__ = ["RebalanceListener", "call_listener", "checked_listener", "listener_method"]


class RebalanceListener(Protocol):
    """Gets the partitions that come and go; methods may be coroutines.

    Pass it to ``Consumer.subscribe``. The optional method ``on_partitions_lost(lost)`` is called
    instead of ``on_partitions_revoked`` for partitions that another member may own already. Without
    it, ``on_partitions_revoked`` is called for these too, as in Java.

    Calls are made one at a time, while heartbeats continue. A method may use the consumer (commit,
    seek, pause, position), but not ``stop`` it. A method that raises, or takes longer than
    ``rebalance_callback_timeout_ms`` (default: ``max_poll_interval_ms``), has failed: the next call
    for records raises ``CallbackError``, and after that the method is called again for the same
    partitions. If ``on_partitions_lost`` fails, it is only reported: the partitions are gone.
    """

    def on_partitions_revoked(self, revoked: set[TopicPartition], /) -> Awaitable[None] | None:
        """Finish work on partitions that are released when this returns: commit and flush.

        No more records of them are delivered. They are still in ``assignment()``.

        Args:
            revoked: Only the partitions that go.

        Returns:
            ``None``, or an awaitable that is awaited.

        Raises:
            Exception: Whatever your method raises becomes a ``CallbackError``; the group is not
                notified until a later call succeeds.
        """
        ...

    def on_partitions_assigned(self, assigned: set[TopicPartition], /) -> Awaitable[None] | None:
        """Prepare work on new partitions. They are fetched when this returns.

        A ``seek`` in it decides where they begin.

        Args:
            assigned: Only the partitions that are new; possibly none.

        Returns:
            ``None``, or an awaitable that is awaited.

        Raises:
            Exception: Whatever your method raises becomes a ``CallbackError``; the partitions are
                not fetched until a later call succeeds.
        """
        ...


Hook = Callable[[set[TopicPartition]], Any]


def checked_listener(listener: object) -> RebalanceListener:
    """Check that ``listener`` has the methods. Raises ``ConfigError``."""
    for name in ("on_partitions_revoked", "on_partitions_assigned"):
        if not callable(getattr(listener, name, None)):
            raise ConfigError(f"the listener {short(listener)} has no method {name}")
    return listener  # type: ignore[return-value]  # its methods were just looked at


def listener_method(listener: object | None, name: str) -> Hook | None:
    """Return the listener's method of this name; ``None`` if there is none."""
    found: Hook | None = getattr(listener, name, None)
    if found is None and name == "on_partitions_lost":
        found = getattr(listener, "on_partitions_revoked", None)
    return found


def _ignore(_task: asyncio.Task[None]) -> None:
    """The call without a listener."""


async def call_listener(
    hook: Hook,
    partitions: Collection[TopicPartition],
    timeout_ms: int,
    *,
    began: Callable[[asyncio.Task[None]], None] = _ignore,
) -> CallbackError | None:
    """Call one method; returns the failure instead of raising it."""
    name = getattr(hook, "__qualname__", repr(hook))
    named = set(partitions)
    return await call_hook(lambda: hook(named), name, timeout_ms, began=began)
