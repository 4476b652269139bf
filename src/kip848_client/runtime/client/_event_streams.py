"""Delivery of events to their readers: each has a bounded queue of its own.

A slow reader loses the oldest events and gets their number. Nothing waits for a reader, and no
reader can harm the client, whatever happens to the event loop in which it reads.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Final, Self
from weakref import WeakSet

from kip848_client.observe.core.watching import (
    EventsMissed,
    HeartbeatAnswered,
    HeartbeatLost,
    HeartbeatRefused,
    MembershipEvent,
)

__all__ = ["EventHub", "EventStream"]

_OF_HEARTBEATS: Final = (HeartbeatAnswered, HeartbeatLost, HeartbeatRefused)


class EventStream:
    """The events of a consumer or worker from now on: ``async for event in stream``.

    ``events()`` makes it. It ends when the client is stopped, or with ``close``. What is
    in the queue is still read after that. Reading in another event loop than the client's raises
    ``LocalProtocolError``.

    Args:
        size: How many events wait for the reader; the oldest are dropped when there are more.
        check_loop: Raises where the stream must not be read.
        heartbeats: Keep events of heartbeats, too.
    """

    def __init__(
        self, size: int, check_loop: Callable[[], None], *, heartbeats: bool = False
    ) -> None:
        self._check_loop = check_loop
        self._heartbeats = heartbeats
        self._events: deque[MembershipEvent] = deque(maxlen=size)
        self._missed = 0
        self._closed = False
        self._news = asyncio.Event()
        self._reader: asyncio.AbstractEventLoop | None = None
        """The event loop of the waiting reader."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> MembershipEvent:
        self._check_reader()
        while not self._events:
            if self._closed:
                raise StopAsyncIteration
            self._reader = asyncio.get_running_loop()
            self._news.clear()
            await self._news.wait()
            self._check_reader()
        if self._missed:
            missed, self._missed = self._missed, 0
            oldest = self._events[0]
            return EventsMissed(oldest.time_ms, oldest.member_epoch, missed)
        return self._events.popleft()

    @property
    def with_heartbeats(self) -> bool:
        """Whether it has events of heartbeats, too."""
        return self._heartbeats and not self._closed

    def put(self, event: MembershipEvent) -> None:
        """Keep an event; the oldest is dropped when the queue is full. Raises nothing.

        Args:
            event: What happened.
        """
        if self._closed or (isinstance(event, _OF_HEARTBEATS) and not self._heartbeats):
            return
        self._missed += len(self._events) == self._events.maxlen
        self._events.append(event)
        self._wake()

    def close(self) -> None:
        """End the stream.

        What came before is still read, and nothing comes after. Raises nothing.
        """
        self._closed = True
        self._wake()

    async def aclose(self) -> None:
        """End the stream as ``close`` does, for ``contextlib.aclosing``. Raises nothing."""
        self.close()

    def _check_reader(self) -> None:
        if not self._closed:  # the rest may be read anywhere
            self._check_loop()

    def _wake(self) -> None:
        """Wake the reader. It may have begun to wait in another event loop before the client's
        start, and that loop may be closed by now."""
        if self._reader is None:
            return
        if self._reader is _running_loop():
            self._news.set()
            return
        with contextlib.suppress(RuntimeError):
            self._reader.call_soon_threadsafe(self._news.set)


class EventHub:
    """Passes each event to every stream that is still referenced."""

    def __init__(self) -> None:
        self._check_loop: Callable[[], None] = lambda: None
        self._streams: WeakSet[EventStream] = WeakSet()
        self._closed = False

    def stream(self, size: int, *, heartbeats: bool = False) -> EventStream:
        """Create a stream for events from now on."""
        stream = EventStream(size, self._check, heartbeats=heartbeats)
        if self._closed:
            stream.close()
        self._streams.add(stream)
        return stream

    def checked_by(self, check_loop: Callable[[], None]) -> Self:
        """Set ``check_loop``, which raises where streams must not be read, at the client's
        start."""
        self._check_loop = check_loop
        return self

    def _check(self) -> None:
        self._check_loop()  # the check in force by then

    @property
    def with_heartbeats(self) -> bool:
        """Whether any stream includes heartbeats."""
        return any(stream.with_heartbeats for stream in list(self._streams))

    def put(self, event: MembershipEvent) -> None:
        """Pass an event to all streams."""
        for stream in list(self._streams):
            stream.put(event)

    def close(self) -> None:
        """Close all streams."""
        self._closed = True
        for stream in list(self._streams):
            stream.close()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
