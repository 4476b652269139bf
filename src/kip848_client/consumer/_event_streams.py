"""The way of events to those who follow them: each has a queue of its own, which is bounded.

Whoever reads too slowly loses the oldest events and is told how many. Nobody waits for a reader.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Self
from weakref import WeakSet

from kip848_client.watching import EventsMissed, MembershipEvent

__all__ = ["EventHub", "EventStream"]


class EventStream:
    """The events of a consumer from now on: ``async for event in stream``. It ends when the
    consumer is stopped, or with ``close``."""

    def __init__(self, size: int) -> None:
        self._events: deque[MembershipEvent] = deque(maxlen=size)
        self._missed = 0
        self._closed = False
        self._news = asyncio.Event()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> MembershipEvent:
        while not self._events:
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        if self._missed:
            missed, self._missed = self._missed, 0
            oldest = self._events[0]
            return EventsMissed(oldest.time_ms, oldest.member_epoch, missed)
        return self._events.popleft()

    def put(self, event: MembershipEvent) -> None:
        """Keep an event; the oldest one goes where there is no room."""
        if self._closed:
            return
        self._missed += len(self._events) == self._events.maxlen
        self._events.append(event)
        self._news.set()

    def close(self) -> None:
        """What came before is still read; nothing comes after."""
        self._closed = True
        self._news.set()


class EventHub:
    """Hands each event to every stream that somebody still has."""

    def __init__(self) -> None:
        self._streams: WeakSet[EventStream] = WeakSet()
        self._closed = False

    def stream(self, size: int) -> EventStream:
        """A new one, for events from now on."""
        stream = EventStream(size)
        if self._closed:
            stream.close()
        self._streams.add(stream)
        return stream

    def put(self, event: MembershipEvent) -> None:
        """It happened."""
        for stream in list(self._streams):
            stream.put(event)

    def close(self) -> None:
        """Nothing happens any more."""
        self._closed = True
        for stream in list(self._streams):
            stream.close()
