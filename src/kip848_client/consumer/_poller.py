"""How the application gets records, and what its asking means to everything else.

To ask for records says four things: records handed out before are done with (so they may be
committed, and partitions be given up), the application is alive (``max.poll.interval.ms``), errors
may be raised now, and the event loop shall have a chance: a consumer that always finds records
would otherwise never let heartbeats run, so at least every 10 ms one call gives way.

The fast path costs one comparison of the clock and one flag; everything else is done at most every
10 ms or when the flag says that somebody wants something.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, Generic, Protocol, TypeVar

from kip848_client._aiokafka._fetch import FetchPath
from kip848_client._types import TopicPartition
from kip848_client.consumer._errors import ErrorBox
from kip848_client.errors import ConsumerClosed

__all__ = ["PollObserver", "Poller"]

R = TypeVar("R")

_CHORES_EVERY_S: Final = 0.01
_POLLED_EVERY_S: Final = 1.0


class PollObserver(Protocol):
    """Who wants to know that the application polls: the membership, if there is one."""

    @property
    def wants_poll(self) -> bool:
        """Whether something waits for the next poll (a rejoin, a callback to repeat)."""
        ...

    def polled(self, *, waiting: bool) -> None:
        """The application asked for records; ``waiting``: and is suspended until some come."""
        ...

    def poll_ended(self) -> None:
        """It has got its answer after ``polled(waiting=True)``."""
        ...


class Poller(Generic[R]):
    """Hands records to the application."""

    def __init__(self, fetch: FetchPath[R], errors: ErrorBox, *, poll_interval_ms: int) -> None:
        self._fetch = fetch
        self._errors = errors
        self._observer: PollObserver | None = None
        self._loop = asyncio.get_running_loop()
        self._now: Callable[[], float] = self._loop.time
        self._polled_every_s = min(_POLLED_EVERY_S, poll_interval_ms / 4000)
        self._chores_at_s = 0.0
        self._polled_at_s = float("-inf")
        self._waiting = 0
        self._announcement: asyncio.TimerHandle | None = None
        self._announced = False
        self._patient: list[asyncio.Future[None]] = []
        self._closed = False
        self.attention = False
        """Set it to make the next call look at errors and the observer."""

    def observe(self, observer: PollObserver) -> None:
        """Tell ``observer`` of every poll from now on."""
        self._observer = observer

    def finished(self) -> None:
        """The application is done with what it has, as if it had come back for more."""
        self._fetch.confirm()
        self._let_go()

    def close(self) -> None:
        """Refuse every further call, those that wait now included."""
        self._closed = True
        self.attention = True
        self._let_go()
        self._fetch.wake()

    def take(self) -> R | None:
        """A record if one is there and nothing else has to be done first."""
        if self.attention or self._now() >= self._chores_at_s:
            return None
        return self._fetch.take_one()

    async def one(self, only: Collection[tuple[str, int]] = ()) -> R:
        """The next record, as soon as there is one."""
        await self._begin(only)
        record = self._fetch.take_one(only)
        if record is not None:
            return record
        self._start_waiting()
        try:
            while True:
                waiter = self._fetch.waiter()
                self._check(only)
                record = self._fetch.take_one(only)
                if record is not None:
                    waiter.cancel()
                    return record
                await waiter
        finally:
            self._stop_waiting()

    async def many(
        self, only: Collection[tuple[str, int]], timeout_s: float, records_max: int | None
    ) -> dict[TopicPartition, list[R]]:
        """The records that are there, or the first to come within the time; else none, also when
        the consumer is closed meanwhile."""
        await self._begin(only)
        taken = self._fetch.take_many(only, records_max)
        if taken or timeout_s <= 0:
            return taken
        deadline_s = self._now() + timeout_s
        self._start_waiting()
        try:
            while True:
                waiter = self._fetch.waiter()
                if self._closed:
                    waiter.cancel()
                    return taken
                self._check(only)
                taken = self._fetch.take_many(only, records_max)
                left_s = deadline_s - self._now()
                if taken or left_s <= 0:
                    waiter.cancel()
                    return taken
                alarm = self._loop.call_later(left_s, _finish, waiter)
                try:
                    await waiter
                finally:
                    alarm.cancel()
        finally:
            self._stop_waiting()

    async def until_done(self, partitions: Iterable[TopicPartition]) -> None:
        """Return when the application is done with what it got of these partitions: it has come
        back for more, or closes."""
        wanted = tuple(partitions)
        while self._fetch.is_busy(wanted) and not self._closed:
            future: asyncio.Future[None] = self._loop.create_future()
            self._patient.append(future)
            self.attention = True
            await future

    # -- inside --------------------------------------------------------------------------------

    async def _begin(self, only: Collection[tuple[str, int]]) -> None:
        self._fetch.confirm()
        self._check(only)
        now = self._now()
        if now >= self._chores_at_s:
            await asyncio.sleep(0)
            self._chores_at_s = self._now() + _CHORES_EVERY_S
            self._check(only)
        observer = self._observer
        if observer is not None and (
            now >= self._polled_at_s + self._polled_every_s or observer.wants_poll
        ):
            self._polled_at_s = now
            observer.polled(waiting=False)

    def _check(self, only: Collection[tuple[str, int]]) -> None:
        if self._closed:
            raise ConsumerClosed("the consumer is closed; create a new one")
        self._let_go()
        self.attention = bool(self._errors)
        if self.attention:
            self._errors.check(only)
        self._fetch.require_assigned(only)

    def _let_go(self) -> None:
        patient, self._patient = self._patient, []
        for future in patient:
            _finish(future)

    def _start_waiting(self) -> None:
        self._waiting += 1
        if self._announcement is None and self._observer is not None:
            self._announcement = self._loop.call_later(self._polled_every_s, self._announce)

    def _announce(self) -> None:
        assert self._observer is not None
        self._announced = True
        self._observer.polled(waiting=True)

    def _stop_waiting(self) -> None:
        self._waiting -= 1
        if self._waiting or self._announcement is None:
            return
        self._announcement.cancel()
        self._announcement = None
        if self._announced:
            self._announced = False
            assert self._observer is not None
            self._polled_at_s = self._now()
            self._observer.poll_ended()


def _finish(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_result(None)
