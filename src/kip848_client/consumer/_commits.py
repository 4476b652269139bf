"""The calls that wait for the group core: commits, committed offsets, the flush of a close.

Each call posts a request with a ticket to the group core and waits for the command that ends it. A
caller may stop waiting: a request already sent is not cancelled, since a second one could overtake
it and leave the lower offset stored.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any

import anyio

from kip848_client.consumer._group_log import GroupLog
from kip848_client.core.group import (
    CommittedAsked,
    CommittedFailed,
    CommittedFound,
    FlushAsked,
    FlushDone,
    GroupCore,
    Input,
    by_reason,
)
from kip848_client.core.offsets import CommitAsked, CommitDone, CommitKind, CommittableOffset
from kip848_client.core.partition_names import listed
from kip848_client.core.ports import Clock
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConsumerClosed, Kip848Error

__all__ = ["Commits", "Ended"]

Ended = CommitDone | CommittedFound | CommittedFailed | FlushDone
"""The commands that end a request."""


class Commits:
    """The open requests of callers. ``post`` passes an event to the core at once."""

    def __init__(
        self, core: GroupCore, post: Callable[[Input], None], clock: Clock, log: GroupLog
    ) -> None:
        self._log = log
        self._core = core
        self._post = post
        self._clock = clock
        self._tickets = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._ended = asyncio.Event()
        self._closed = False
        self._failure: Kip848Error | None = None

    @property
    def member_epoch(self) -> int | None:
        """The member epoch for requests; ``None`` outside a group."""
        return self._core.member.commit_epoch

    async def commit(
        self, offsets: Mapping[TopicPartition, CommittableOffset], deadline_ms: int
    ) -> CommitDone:
        """Commit and wait for the end, at ``deadline_ms`` at the latest. Raises only
        ``ConsumerClosed``; failures are in the result."""
        ticket = next(self._tickets)
        done: CommitDone = await self._wait(
            ticket, CommitAsked(ticket, CommitKind.MANUAL, offsets, deadline_ms)
        )
        return done

    async def fetch_committed(
        self, partitions: Collection[TopicPartition], deadline_ms: int
    ) -> dict[TopicPartition, CommittableOffset | None]:
        """Look up committed offsets; ``None`` for none. A partition that stays unknown to the
        broker until the deadline is left out.

        Raises ``BrokerError`` for errors that are not transient, ``RequestTimedOut`` at the
        deadline.
        """
        ticket = next(self._tickets)
        event = CommittedAsked(ticket, tuple(partitions), deadline_ms)
        ended: CommittedFound | CommittedFailed = await self._wait(ticket, event)
        if isinstance(ended, CommittedFailed):
            raise ended.error
        return dict(ended.found)

    async def flush(self, deadline_ms: int) -> None:
        """Commit what is confirmed. Raises only ``ConsumerClosed``."""
        ticket = next(self._tickets)
        await self._wait(ticket, FlushAsked(ticket, deadline_ms))

    async def drain(self, deadline_ms: int) -> None:
        """Return when no commit is open any more, or at the deadline."""
        with anyio.move_on_after(self._clock.left_s(deadline_ms)):
            while self._core.open_commits and not self._closed:
                await self._ended.wait()

    def commit_soon(
        self, offsets: Mapping[TopicPartition, CommittableOffset], deadline_ms: int
    ) -> None:
        """Begin a commit of partitions that may be released right afterwards; a failure is logged.
        Does not wait: the request is sent before this returns, unless another one is open."""
        if offsets and not self._closed:
            ticket = next(self._tickets)
            self._post(CommitAsked(ticket, CommitKind.REVOCATION, offsets, deadline_ms))

    def finish(self, ended: Ended) -> None:
        """Complete the call whose request has ended."""
        future = self._waiting.pop(ended.ticket or 0, None)
        if future is None and isinstance(ended, CommitDone):
            for partitions, error in by_reason(ended.failed):
                text = f"automatic commit of {listed(partitions)}: {error}"
                self._log.say_only(logging.WARNING, text)
        if future is not None and not future.done():
            future.set_result(ended)

    def wake_waiters(self) -> None:
        """Let ``drain`` check again after a step of the core."""
        self._ended.set()
        self._ended = asyncio.Event()

    def close(self, error: Kip848Error | None = None) -> None:
        """End every wait, with ``error`` if there is one: nothing more will be sent."""
        self._closed = True
        self._failure = self._failure or error
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(self._error("the consumer was closed before the answer came"))
        self._waiting.clear()
        self.wake_waiters()

    async def _wait(self, ticket: int, event: Input) -> Any:
        if self._closed:
            raise self._error("the consumer is closed")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = future
        self._post(event)
        try:
            return await future
        finally:
            self._waiting.pop(ticket, None)

    def _error(self, otherwise: str) -> Kip848Error:
        if self._failure is not None:
            return self._failure.with_traceback(None)
        return ConsumerClosed(otherwise)
