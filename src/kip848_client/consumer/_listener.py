"""The user's rebalance listener: its shape, and how it is called.

Calls are made one at a time, in the order in which the group asked for them, on a task of the
consumer's while heartbeats go on. A listener may use the consumer freely (commit, seek, pause,
position); it may not ``stop`` it, because stopping waits for the listener.

A listener that raises (a CancelledError, too), or takes longer than its time (it is cancelled
then, and again each second until it ends), has failed: the application gets a ``CallbackError``
from its next call for records, and the same partitions are given to the listener again after that.
Nothing is acknowledged to the group in between. A failed ``on_partitions_lost`` is only reported,
because the partitions are gone whatever it says.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final, Protocol

import anyio

from kip848_client._shown import shown, told
from kip848_client._types import TopicPartition
from kip848_client.errors import CallbackError, ConfigError

__all__ = ["RebalanceListener", "call_hook", "call_listener", "checked_listener", "listener_method"]

_log = logging.getLogger("kip848_client")

_REPEAT_CANCEL_S: Final = 1.0
"""Between two cancellations of a method that overran its time and does not end."""
_PATIENCE_S: Final = 0.5
"""What a method that was cancelled gets to end, when the consumer is being closed."""


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
            raise ConfigError(f"the listener {shown(listener)} has no method {name}")
    return listener  # type: ignore[return-value]  # its methods were just looked at


def listener_method(listener: object | None, name: str) -> Hook | None:
    """The method to call for an occasion, ``None`` when there is no listener for it."""
    found: Hook | None = getattr(listener, name, None)
    if found is None and name == "on_partitions_lost":
        found = getattr(listener, "on_partitions_revoked", None)
    return found


def _ignore(_task: asyncio.Task[None]) -> None:
    """There is no listener."""


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


async def call_hook(
    hook: Callable[[], Any],
    name: str,
    timeout_ms: int,
    *,
    began: Callable[[asyncio.Task[None]], None] = _ignore,
) -> CallbackError | None:
    """Call a user's code, which may be a coroutine; returns the failure instead of raising it.

    The method runs in a task of its own, which ``began`` gets. So a CancelledError that comes out
    of it is known from one that is meant for us: who cancels a worker and awaits it lets one out.
    When we are cancelled the method is cancelled too, and left to itself if it does not end soon:
    it must not hold up who waits for us.
    """
    task = asyncio.get_running_loop().create_task(_called(hook), name=name)
    began(task)
    try:
        await asyncio.wait([task], timeout=timeout_ms / 1000)
        overran = not task.done()
        while not task.done():  # again and again, but with pauses: it may have swallowed one
            task.cancel()
            await asyncio.wait([task], timeout=_REPEAT_CANCEL_S)
    except asyncio.CancelledError:
        await _end(task, name)
        raise
    return _failure(task, name, timeout_ms if overran else None)


async def _called(hook: Callable[[], Any]) -> None:
    result = hook()
    if inspect.isawaitable(result):
        await result


async def _end(task: asyncio.Task[None], name: str) -> None:
    task.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.wait([task], timeout=_PATIENCE_S)
    if not task.done():
        _log.error("%s does not end although it was cancelled; it is not waited for", name)
        task.add_done_callback(_retrieve)
    else:
        _retrieve(task)


def _retrieve(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # or asyncio complains that its result was never read


def _failure(task: asyncio.Task[None], name: str, overran_ms: int | None) -> CallbackError | None:
    cause: BaseException | None
    if task.cancelled():
        cause = asyncio.CancelledError()
        said = "let a CancelledError out (of a task that it awaits?)"
    else:
        cause = task.exception()
        said = "" if cause is None else f"raised {told(cause)}"
    if overran_ms is not None:
        cause = TimeoutError() if task.cancelled() else cause
        said = f"did not return within {overran_ms} ms and was cancelled"
    elif cause is None:
        return None
    failed = CallbackError(f"{name} {said}")
    failed.__cause__ = cause
    return failed
