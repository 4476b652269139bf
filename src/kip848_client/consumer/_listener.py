"""The user's rebalance listener: its shape, and how it is called.

Calls are made one at a time, in the order in which the group asked for them, on a task of the
consumer's while heartbeats go on. A listener may use the consumer freely (commit, seek, pause,
position); it may not ``stop`` it, because stopping waits for the listener.

A listener that raises, or takes longer than its time (it is cancelled then), has failed: the
application gets a ``CallbackError`` from its next call for records, and the same partitions are
given to the listener again after that. Nothing is acknowledged to the group in between. A failed
``on_partitions_lost`` is only reported, because the partitions are gone whatever it says.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol

import anyio

from kip848_client._types import TopicPartition
from kip848_client.errors import CallbackError, ConfigError

__all__ = ["RebalanceListener", "call_listener", "checked_listener", "listener_method"]


class RebalanceListener(Protocol):
    """Told about partitions that come and go; methods may be coroutines.

    ``on_partitions_lost(lost)`` is optional: it is called instead of ``on_partitions_revoked`` for
    partitions that another member may own already. Without it ``on_partitions_revoked`` is called
    for these too, as in Java.
    """

    def on_partitions_revoked(self, revoked: set[TopicPartition], /) -> Awaitable[None] | None:
        """These partitions will be given up when this returns; nothing of them is handed out any
        more. The time to commit and to flush."""
        ...

    def on_partitions_assigned(self, assigned: set[TopicPartition], /) -> Awaitable[None] | None:
        """These partitions are new (only these; possibly none). They are fetched when this
        returns; ``seek`` is honoured."""
        ...


Hook = Callable[[set[TopicPartition]], Any]


def checked_listener(listener: object) -> RebalanceListener:
    """``listener``, if it has the methods. Raises ``ConfigError``."""
    for name in ("on_partitions_revoked", "on_partitions_assigned"):
        if not callable(getattr(listener, name, None)):
            raise ConfigError(f"the listener {listener!r} has no method {name}")
    return listener  # type: ignore[return-value]  # its methods were just looked at


def listener_method(listener: object | None, name: str) -> Hook | None:
    """The method to call for an occasion, ``None`` when nobody listens."""
    found: Hook | None = getattr(listener, name, None)
    if found is None and name == "on_partitions_lost":
        found = getattr(listener, "on_partitions_revoked", None)
    return found


async def call_listener(
    hook: Hook, partitions: Collection[TopicPartition], timeout_ms: int
) -> CallbackError | None:
    """Call one method; returns the failure instead of raising it."""
    name = getattr(hook, "__qualname__", repr(hook))
    try:
        with anyio.fail_after(timeout_ms / 1000):
            result = hook(set(partitions))
            if inspect.isawaitable(result):
                await result
    except TimeoutError as err:
        failed = CallbackError(f"{name} did not return within {timeout_ms} ms and was cancelled")
        failed.__cause__ = err
        return failed
    except Exception as err:  # noqa: BLE001 - whatever the user's code raises is reported to them
        failed = CallbackError(f"{name} raised {type(err).__name__}: {err}")
        failed.__cause__ = err
        return failed
    return None
