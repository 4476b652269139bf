"""Records the events of a consumer."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from types import TracebackType
from typing import Any, Final, Self

from kip848_client.consumer import Consumer
from kip848_client.errors import LocalProtocolError
from kip848_client.history.core import HistoryEvent, Role
from kip848_client.history.core._members import Who, event_of
from kip848_client.history.recording._sinks import LOSSES, HistoryFile, Sink, Stamp

__all__ = ["Recording", "recording"]

_log: Final = logging.getLogger("kip848_client")
_QUEUE: Final = 10_000


def recording(consumer: Consumer[Any, Any], to: str | os.PathLike[str] | Sink) -> Recording:
    """Write the events of a consumer's membership, as long as the block lasts.

    ::

        async with recording(consumer, "events.jsonl"), consumer:
            ...

    It begins before the consumer and ends after it, so that nothing is missed. If writing fails,
    the application is not disturbed: the log has it, once. Entering the block raises ``OSError``
    for a file that cannot be opened.

    Args:
        consumer: Not started, with a ``group_id``.
        to: A file, to which JSON lines are appended, a ``HistoryTopic``, or a sink of your own.

    Returns:
        The block.

    Raises:
        LocalProtocolError: The consumer has no ``group_id``.
    """
    return Recording(consumer, to)


class Recording:
    """The recording of one consumer. ``recording`` makes it.

    Args:
        consumer: Not started, with a ``group_id``.
        to: A file or a sink.
    """

    def __init__(self, consumer: Consumer[Any, Any], to: str | os.PathLike[str] | Sink) -> None:
        config = consumer.config
        if config.group_id is None:
            raise LocalProtocolError("a consumer without a group_id has no membership to record")
        self._consumer = consumer
        self._to = to
        self._sink: Sink | None = None
        self._stamp = Stamp()
        self._who: Who = {
            "role": Role.CONSUMER.value,
            "group_id": config.group_id,
            "member_id": None,
            "instance_id": config.group_instance_id,
            "client_id": config.client_id,
        }
        self._following: asyncio.Task[None] | None = None
        self._lost = 0

    @property
    def lost(self) -> int:
        """How many events could not be written."""
        return self._lost

    async def __aenter__(self) -> Self:
        to = self._to
        self._sink = HistoryFile(to) if isinstance(to, str | os.PathLike) else to
        self._events = self._consumer.events(size=_QUEUE, heartbeats=True)
        await self._put(self._own("started"))
        self._following = asyncio.ensure_future(self._follow())
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._sink is not None, "it was entered"
        assert self._following is not None, "it was entered"
        self._events.close()
        try:
            await self._following
            await self._put(self._own("stopped"))
        finally:
            await self._sink.close()

    async def _follow(self) -> None:
        async for told in self._events:
            self._look()
            await self._put(event_of(told, self._who))

    def _look(self) -> None:
        """Read the member's identity while it runs."""
        view = self._consumer.member
        if view is not None:
            self._who["member_id"] = view.member_id

    def _own(self, kind: str) -> HistoryEvent:
        return HistoryEvent(**self._who, kind=kind, time_ms=time.time_ns() // 1_000_000)

    async def _put(self, event: HistoryEvent) -> None:
        assert self._sink is not None, "it was entered"
        try:
            await self._sink.write(self._stamp.on(event))
        except LOSSES as err:
            if not self._lost:
                _log.warning("events of group %s are lost: %s", event.group_id, err)
            self._lost += 1
