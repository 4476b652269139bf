"""The life of a client, the same for every client class.

A client is started once and stopped once, in one event loop. The class passes its noun, the steps
that open it and the steps before closing; ``ClientRuntime`` has the rules:

- ``stop`` before ``start`` forbids ``start``. ``stop`` during ``start`` ends it with the error of a
  closed client. A cancelled ``start`` ends with ``CancelledError``, even during ``stop``.
- A failed start closes everything it has opened.
- Each call comes from the loop, thread and process of ``start``.
- Closing has one order: opening ends, the class performs its own steps, metrics are pushed for the
  last time, waiting calls end, the client's task ends, connections close, observers end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Final

from kip848_client.config import ClientConfig
from kip848_client.core.cluster import ClusterChanged, ClusterEvent
from kip848_client.errors import Kip848Error, LocalProtocolError
from kip848_client.runtime._backoff import Backoff
from kip848_client.runtime._closing import Closing, Step
from kip848_client.runtime._home import Home
from kip848_client.runtime._topics import TopicDirectory
from kip848_client.runtime.client._observers import Observers
from kip848_client.runtime.client._parts import recovery
from kip848_client.runtime.clock import LoopClock
from kip848_client.runtime.net._transport import KafkaTransport

__all__ = ["ClientRuntime"]

_log = logging.getLogger("kip848_client")

_GRACE_S: Final = 1.0
"""Minimum time for the client's task to end after it was cancelled. It needs several iterations of
the event loop, which other tasks may keep busy."""


def _failed(text: str, cause: BaseException | None) -> Kip848Error:
    error = Kip848Error(text)
    error.__cause__ = cause
    return error


class ClientRuntime:
    """The life of one client.

    Call ``begin`` first, then ``open``, and ``close`` at last. ``home``, ``clock`` and what
    ``connect`` sets exist from then on.

    Args:
        noun: Name of the client in errors and task names.
        closed: Builds the error of a stopped client.
        not_started: Builds the error of a client that is not started.
        failed: Builds the error of a failed client, from a text and a cause.
    """

    home: Home
    clock: LoopClock
    transport: KafkaTransport
    observers: Observers

    def __init__(
        self,
        noun: str,
        *,
        closed: Callable[[str], Kip848Error] = LocalProtocolError,
        not_started: Callable[[str], Kip848Error] = LocalProtocolError,
        failed: Callable[[str, BaseException | None], Kip848Error] = _failed,
    ) -> None:
        self.noun: Final = noun
        self._closed = closed
        self._not_started = not_started
        self._failed = failed
        self._end_waits: Callable[[Kip848Error | None], None] = _nothing
        self._was_started = self._was_stopped_first = False
        self._opening: asyncio.Task[None] | None = None
        self._closing: Closing | None = None
        self._transport: KafkaTransport | None = None
        self._observers: Observers | None = None
        self.task: asyncio.Task[None] | None = None
        """Holds the task group of everything that runs, once ``run`` was called."""
        self.failure: Kip848Error | None = None
        """The error that ended the client before ``close``."""
        self.close_by_ms = 0
        """The deadline for closing."""

    # -- state -----------------------------------------------------------------------------------

    @property
    def was_started(self) -> bool:
        """Whether ``start`` was called, which is possible once."""
        return self._was_started

    @property
    def was_stopped(self) -> bool:
        """Whether ``stop`` was called, also before ``start``."""
        return self._was_stopped_first or self._closing is not None

    @property
    def is_closed(self) -> bool:
        """Whether ``stop`` has finished."""
        return self._was_stopped_first or (self._closing is not None and self._closing.over)

    @property
    def is_forgotten(self) -> bool:
        """Whether the client runs in this process and was not stopped: for ``__del__``."""
        return self.was_started and not self.home.is_left_behind and not self.was_stopped

    def __str__(self) -> str:
        return "closed" if self.was_stopped else "running" if self.was_started else "not started"

    def closed(self) -> Kip848Error:
        """Return the error of a call to a stopped client."""
        return self._closed(f"the {self.noun} is closed; create a new one")

    def check_home(self) -> None:
        """Raise ``LocalProtocolError`` outside of the event loop, thread and process in which the
        client was started."""
        if self.was_started:
            self.home.check()

    def check_started(self) -> None:
        """Raise if ``start`` was not called, or only after ``stop``, and as ``check_home``."""
        if not self.was_started:
            if self._was_stopped_first:
                raise self.closed()
            raise self._not_started(
                f"the {self.noun} is not started; call start(), or use async with"
            )
        self.home.check()

    def left_s(self) -> float:
        """The time left for closing, in seconds."""
        return self.clock.left_s(self.close_by_ms)

    # -- opening ---------------------------------------------------------------------------------

    def require_new(self) -> None:
        """Raise if ``start`` must not be called: after ``stop``, and a second time."""
        self.check_home()
        if self.was_stopped:
            raise self._closed(f"the {self.noun} was stopped before; create a new one")
        if self.was_started:
            raise LocalProtocolError(f"the {self.noun} was started before; create a new one")

    def begin(self) -> None:
        """Begin ``start``: store the event loop. Raises as ``require_new``."""
        self.require_new()
        self.home, self._was_started = Home(self.noun), True
        self.clock = LoopClock(self.home.loop)

    def connect(self, transport: KafkaTransport, observers: Observers) -> None:
        """Set the transport and observers, which ``close`` will close."""
        self.transport = self._transport = transport
        self.observers = self._observers = observers

    def topic_directory(
        self, config: ClientConfig, learnt: Callable[[ClusterEvent], None]
    ) -> TopicDirectory:
        """Build the directory of topic metadata. ``learnt`` gets the events for the core."""
        return TopicDirectory(
            self.transport,
            self.clock,
            learnt,
            lambda: learnt(ClusterChanged()),
            allow_auto_create=config.allow_auto_create_topics,
            recovery=recovery(config),
            backoff=Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms),
            max_age_ms=config.metadata_max_age_ms,
            fields=self.observers.fields,
        )

    async def open(
        self,
        steps: Callable[[], Coroutine[Any, Any, None]],
        stop: Callable[[], Awaitable[None]],
    ) -> None:
        """Perform ``steps``, in a task that ``close`` cancels. Whatever it raises, ``stop`` is
        called first; an error of ``stop`` becomes a note."""
        try:
            if self._closing is None:
                opening = self._opening = self._create_task(steps(), "-open")
                await self._until_open(opening)
            self._require_open()
        except BaseException as err:
            try:
                await stop()
            except Exception as other:  # noqa: BLE001 - the reason of the failed start matters more
                err.add_note(f"stopping it failed, too: {other!r}")
            raise

    def _require_open(self) -> None:
        if self._closing is not None:
            raise self._closed(f"the {self.noun} was stopped while it started; create a new one")

    async def _until_open(self, opening: asyncio.Task[None]) -> None:
        """Wait for the end of ``opening``. If closing cancels it, the caller is not cancelled."""
        try:
            await opening
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closing is None or (task is not None and task.cancelling()):
                raise

    def run(
        self,
        main: Coroutine[Any, Any, None],
        end_waits: Callable[[Kip848Error | None], None] | None = None,
    ) -> None:
        """Run ``main`` until the client is closed. ``end_waits`` ends the calls that wait, with the
        error that ended ``main``; with ``None`` when the client is closed."""
        self._end_waits = end_waits or _nothing
        task = self.task = self._create_task(main)
        task.add_done_callback(self._on_end)

    def _create_task(self, what: Coroutine[Any, Any, None], suffix: str = "") -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(what, name=f"kip848-{self.noun}{suffix}")

    def _on_end(self, task: asyncio.Task[None]) -> None:
        cause = None if task.cancelled() else task.exception()
        why = "was cancelled from outside"
        if cause is not None:
            why = f"failed by a bug of its own: {cause!r}"
        self.fail(f"the {self.noun} {why}", cause)

    def fail(self, what: str, cause: BaseException | None) -> None:
        """Fail the client because of ``what``: the first such call ends the waiting calls and sets
        ``failure``. A cancellation by ``close`` is not a failure."""
        if self.failure is not None or (cause is None and self._closing is not None):
            return
        error = self._failed(f"{what}; stop the {self.noun} and create a new one", cause)
        if cause is not None:
            _log.error("%s", error, exc_info=cause, extra=dict(self.observers.fields))
        self.failure = error
        self._end_waits(error)

    # -- closing ---------------------------------------------------------------------------------

    def stop_first(self) -> bool:
        """Whether ``stop`` came before ``start``, which it forbids from now on. Raises as
        ``check_home``."""
        self.check_home()
        self._was_stopped_first = not self.was_started
        return self._was_stopped_first

    def close(
        self,
        timeout_ms: float,
        leave: Iterable[Step] = (),
        hurry: Callable[[], None] = lambda: None,
    ) -> Closing:
        """Close the client; the caller must await ``finish`` of the result.

        ``leave`` has the steps of the class before connections close. If closing has begun, the
        nearer deadline counts: ``hurry`` is called if that is the new one.
        """
        deadline_ms = self.clock.now_ms() + int(timeout_ms)
        if self._closing is None:
            self.close_by_ms = deadline_ms
            self._closing = Closing(
                (
                    *(self._stop_opening, *leave, self._push_metrics),
                    *(self._end_task, self._disconnect, self._end_observers),
                )
            )
        elif deadline_ms < self.close_by_ms:
            self.close_by_ms = deadline_ms
            hurry()
        return self._closing

    async def _stop_opening(self) -> None:
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()  # otherwise it would reconnect
            await asyncio.wait([self._opening])

    async def _push_metrics(self) -> None:
        if self._observers is not None:
            await self._observers.telemetry.close(self.left_s())

    async def _end_task(self) -> None:
        self._end_waits(None)
        if self.task is None:
            return
        self.task.cancel()
        _, running = await asyncio.wait([self.task], timeout=max(_GRACE_S, self.left_s()))
        if running:
            raise Kip848Error(f"a task of the {self.noun} does not end although it was cancelled")

    async def _disconnect(self) -> None:
        if self._transport is not None:
            await self._transport.close(self.closed())

    async def _end_observers(self) -> None:
        if self._observers is not None:
            self._observers.close()


def _nothing(_error: Kip848Error | None) -> None:
    """The default for a client without waiting calls."""
