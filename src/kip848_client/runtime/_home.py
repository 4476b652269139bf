"""The event loop, thread and process in which a client was started. Every call checks them.

A client that is used elsewhere would accept a record or a request and never send it, because its
loop does not run there. After ``os.fork()`` the child has a copy of the client, whose loop and
sockets belong to the parent.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio import current_task
from collections.abc import Callable
from threading import get_ident
from typing import Any, Final
from weakref import WeakSet

from kip848_client.errors import LocalProtocolError

__all__ = ["Home", "task_of"]

_LEFT_BEHIND: Final = object()
"""Replaces the parent's loop in a forked child. No task runs in it."""


_Task = asyncio.Task[Any] | None

if sys.version_info >= (3, 12):
    task_of: Final[Callable[[Any], _Task]] = current_task
else:  # before 3.12, current_task is a Python function, three times as slow
    _tasks: Any = getattr(asyncio.tasks, "_current_tasks")  # noqa: B009 - not in typeshed
    task_of: Final[Callable[[Any], _Task]] = _tasks.get


class Home:
    """The running loop, thread and process. ``who`` names the client in errors."""

    __slots__ = ("__weakref__", "_who", "loop", "thread")

    def __init__(self, who: str) -> None:
        self._who = who
        self.thread: Final = get_ident()
        self.loop: Any = asyncio.get_running_loop()
        """In a forked child: a loop that never runs."""
        _homes.add(self)

    @property
    def is_left_behind(self) -> bool:
        """Whether this is a forked child and the client belongs to the parent."""
        return self.loop is _LEFT_BEHIND

    def check(self) -> None:
        """Raise ``LocalProtocolError`` if the call comes from elsewhere. Between two runs of the
        loop, when no loop runs at all, its thread is enough.

        Every record goes through here, so the usual case avoids a system call, which getting the
        running loop costs. It checks two facts: our loop runs a task, and this is our thread.
        """
        if task_of(self.loop) is None or get_ident() != self.thread:
            self._check_slowly()

    def _check_slowly(self) -> None:
        running = _running_loop()
        if running is self.loop:
            return  # a callback of the loop
        if self.is_left_behind:
            raise LocalProtocolError(
                f"this {self._who} was started before os.fork(), in the parent process, and its "
                "connections belong to the parent; create another one in this process"
            )
        if get_ident() != self.thread:
            raise LocalProtocolError(
                f"this {self._who} was started in another event loop (or thread): in another "
                "thread; call it there with asyncio.run_coroutine_threadsafe, or create another "
                "one in this thread"
            )
        if running is not None:
            ended = ", which is closed" if self.loop.is_closed() else ""
            raise LocalProtocolError(
                f"this {self._who} was started in another event loop (or thread): in another loop "
                f"of this thread{ended}; call it in its own loop, or create one in this loop"
            )


_homes: Final[WeakSet[Home]] = WeakSet()


def _leave_behind() -> None:
    for home in _homes:
        home.loop = _LEFT_BEHIND


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_behind)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
