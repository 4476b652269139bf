"""How the application gets records, and what a poll means to the other parts.

A call for records means four things: records delivered before are done (so they may be committed,
and partitions released), the application is alive (``max.poll.interval.ms``), errors may be raised
now, and the event loop gets a turn: a consumer that always finds records would otherwise never let
heartbeats run, so at least every 10 ms one call yields.

The fast path costs one comparison of the clock and one of the task; everything else is done at most
every 10 ms, or on request (``attention``).

Who holds records
-----------------
The *holder* of records is the task that asked for them; it is done with them when it asks again.
Several tasks may ask, each for itself. ``wait_for(consumer.getone(), 5)`` runs the call in a task
of its own: the holder is the one that *made* the call, passed as ``caller`` to these methods. A
task that has ended cannot return: its records are done at the next call of any task. A stopped
consumer gets no next call, so the way in which the task ended decides: after a return its records
are done, after a failure or cancellation they are not.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import current_task
from collections.abc import Callable, Iterable
from threading import get_ident
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeVar

from kip848_client.consumer._deserializing import AT_ONCE_MAX, Deserializing
from kip848_client.consumer._error_box import ErrorBox
from kip848_client.consumer._record_path import Only, RecordPath
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConsumerClosed, Kip848Error, RecordUnreadable
from kip848_client.observe.core.watching import PollMeter
from kip848_client.records import NotMade, Record, RecordBatchView
from kip848_client.runtime._home import Home, task_of

__all__ = ["Caller", "PollObserver", "Poller", "calling_task"]

_log = logging.getLogger("kip848_client")

Caller = asyncio.Task[Any] | None
"""The task that made a call; ``None`` means the task that runs the call."""

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_CHORES_EVERY_S: Final = 0.01
_POLLED_EVERY_S: Final = 1.0
_AT_ONCE: Final = float("-inf")


class PollObserver(Protocol):
    """Notified when the application polls (the group membership, if any)."""

    @property
    def wants_poll(self) -> bool:
        """Whether something waits for the next poll (a rejoin, a callback to repeat)."""
        ...

    def polled(self, *, waiting: bool) -> None:
        """The application asked for records; ``waiting``: and is suspended until there are some."""
        ...

    def poll_ended(self) -> None:
        """The call after ``polled(waiting=True)`` has ended."""
        ...


class Poller(Generic[K, V]):
    """Delivers records to the application."""

    def __init__(
        self,
        path: RecordPath[K, V],
        errors: ErrorBox,
        *,
        poll_interval_ms: int,
        meter: PollMeter | None = None,
    ) -> None:
        self._meter = meter
        self._path = path
        self._deserializing = Deserializing(path.decoding)
        self._errors = errors
        self._observer: PollObserver | None = None
        self._loop = asyncio.get_running_loop()
        self._home: Final = Home("consumer")
        self._now: Callable[[], float] = self._loop.time
        self._polled_every_s = min(_POLLED_EVERY_S, poll_interval_ms / 4000)
        self._chores_at_s = 0.0
        self._polled_at_s = float("-inf")
        self._waiting = 0
        self._announcement: asyncio.TimerHandle | None = None
        self._announced = False
        self._patient: list[asyncio.Future[None]] = []
        self._iterating: Caller = None
        """The task that may use the fast path."""
        self._stoppers: set[Caller] = set()
        self._stopped = False
        self._closed = False
        self._attention = False

    def observe(self, observer: PollObserver) -> None:
        """Notify ``observer`` of every poll from now on."""
        self._observer = observer

    def attention(self) -> None:
        """Make the next call check errors and notify the observer."""
        self._attention = True
        self._chores_at_s = _AT_ONCE

    def mark_done(self, caller: Caller) -> None:
        """Mark the records held by this task as done."""
        if caller is None or caller.get_loop() is not self._loop:
            return  # the call itself does it; or is refused
        self._path.in_flight.mark_done(caller)
        self._let_go()

    def stop(self, caller: Caller, *, done: bool) -> None:
        """Stop delivering: refuse every further call, including those waiting now.

        ``drain`` does not wait for ``caller``; ``done``: whether its records count as done.
        """
        self._stopped = True
        self._stoppers.add(caller)
        self.attention()
        if done:
            self._path.in_flight.mark_done(caller)
        self._deserializing.stop(caller)
        self._let_go()
        self._path.wake()

    async def drain(self, deadline_s: Callable[[], float]) -> None:
        """After ``stop``: return when no task that could still return holds records, or at the
        deadline (by the loop's clock; it may move while ``recheck_deadline`` is called)."""
        while holders := [each for each in self._holders() if not each.done()]:
            left_s = deadline_s() - self._now()
            if left_s <= 0:
                break
            changed: asyncio.Future[None] = self._loop.create_future()
            self._patient.append(changed)
            await asyncio.wait(
                [changed, *holders], timeout=left_s, return_when=asyncio.FIRST_COMPLETED
            )
        for holder in self._holders():
            if holder.done() and _returned(holder):
                self._path.in_flight.mark_done(holder)

    def recheck_deadline(self) -> None:
        """Let ``drain`` check its deadline again."""
        self._let_go()

    def close(self) -> None:
        """After ``stop``: stop waiting for tasks."""
        self._stopped = self._closed = True
        self.attention()
        self._let_go()
        self._path.wake()

    def take(self) -> Record[K, V] | None:
        """Return the next record to the task that got the previous one from ``next`` and is done
        with it; ``None`` if something else has to be done first."""
        if monotonic() >= self._chores_at_s:
            return None
        home = self._home  # checked here, because a call costs a tenth of what a record does
        if task_of(home.loop) is not self._iterating or get_ident() != home.thread:
            return None  # the slow path raises the error about the loop
        path = self._path
        try:
            record = next(path.current, None)
        except BaseException as err:
            path.fast_way_failed()
            if isinstance(err, RecordUnreadable):
                return None  # the slow path raises it
            raise
        if record is not None:
            path.newest = record
        return record

    async def next(self) -> Record[K, V]:
        """As ``one``, for iteration: the calling task gets the following records by ``take``."""
        record = await self.one()
        self._iterating = task = current_task(self._loop)
        if task is not None:  # otherwise any call without a task would match
            self._path.begin_fast_way()
        return record

    async def one(self, only: Only = (), caller: Caller = None) -> Record[K, V]:
        """Wait for the next record."""
        caller = await self._begin(only, caller)
        try:
            record = self._path.take_one(only)
            if record is not None:
                return record
        except NotMade as err:
            await self._deserializing.make(err.readers, 1)
        except RecordUnreadable:
            await asyncio.sleep(0)
            raise
        self._start_waiting()
        try:
            while True:
                waiter = self._path.waiter()
                self._check(only)
                self._path.serve(caller)
                try:
                    record = self._path.take_one(only)
                except NotMade as err:
                    waiter.cancel()
                    await self._make(err, 1)
                    continue
                if record is not None:
                    waiter.cancel()
                    return record
                await waiter
        finally:
            self._stop_waiting()

    async def many(
        self, only: Only, timeout_s: float, records_max: int | None, caller: Caller = None
    ) -> dict[TopicPartition, list[Record[K, V]]]:
        """The records available now, or the first to arrive in time; otherwise none, also if the
        consumer is stopped meanwhile."""
        path = self._path
        return await self._some(
            lambda: path.take_many(only, records_max), only, timeout_s, caller, records_max
        )

    async def batches(
        self, only: Only, timeout_s: float, records_max: int | None, caller: Caller = None
    ) -> dict[TopicPartition, RecordBatchView[K, V]]:
        """As ``many``, as views."""
        path = self._path
        return await self._some(
            lambda: path.take_batches(only, records_max), only, timeout_s, caller
        )

    async def _some(
        self,
        take: Callable[[], dict[TopicPartition, T]],
        only: Only,
        timeout_s: float,
        caller: Caller,
        records_max: int | None = None,
    ) -> dict[TopicPartition, T]:
        caller = await self._begin(only, caller)
        deadline_s = self._now() + timeout_s
        taken: dict[TopicPartition, T] = {}
        try:
            taken = take()
            if taken or timeout_s <= 0:
                return taken
        except NotMade as err:
            await self._deserializing.make(err.readers, records_max or AT_ONCE_MAX)
        except RecordUnreadable:
            await asyncio.sleep(0)
            raise
        self._start_waiting()
        try:
            while True:
                waiter = self._path.waiter()
                if self._stopped:
                    waiter.cancel()
                    return taken
                self._check(only)
                self._path.serve(caller)
                try:
                    taken = take()
                except NotMade as err:
                    waiter.cancel()
                    await self._make(err, records_max or AT_ONCE_MAX)
                    continue
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
        """Return when the application is done with the records it got of these partitions: it has
        asked for more, or closes."""
        wanted = tuple(partitions)
        while self._path.in_flight.is_busy(wanted) and not self._closed:
            future: asyncio.Future[None] = self._loop.create_future()
            self._patient.append(future)
            self.attention()
            await future

    # -- inside --------------------------------------------------------------------------------

    async def _begin(self, only: Only, caller: Caller) -> Caller:
        """Prepare a delivery; returns the future holder."""
        if caller is None:  # otherwise marked as done when the call was made
            caller = current_task(self._loop)
            self._path.in_flight.mark_done(caller)
        if self._meter is not None:
            self._meter.polled()
        now, wanted = self._now(), self._attention
        try:
            self._check(only)
        except Kip848Error:
            await asyncio.sleep(0)  # or an immediate retry starves the loop that would cure it
            raise
        if wanted or monotonic() >= self._chores_at_s:
            await asyncio.sleep(0)
            self._chores_at_s = _AT_ONCE if self._attention else monotonic() + _CHORES_EVERY_S
            self._take_over()
            self._check(only)
        observer = self._observer
        if observer is not None and (
            now >= self._polled_at_s + self._polled_every_s or observer.wants_poll
        ):
            self._polled_at_s = now
            observer.polled(waiting=False)
        self._path.serve(caller)
        return caller

    async def _make(self, unmade: NotMade, limit: int) -> None:
        """Deserialize records for a waiting call: meanwhile the wait is the application's own."""
        self._stop_waiting()
        try:
            await self._deserializing.make(unmade.readers, limit)
        finally:
            self._start_waiting()

    def _check(self, only: Only) -> None:
        self._let_go()
        if self._stopped:
            raise ConsumerClosed("the consumer is closed; create a new one")
        self._attention = bool(self._errors)
        if self._attention:
            self._errors.check()
        self._path.require_assigned(only)
        self._path.raise_pending_error(only)

    def _holders(self) -> list[asyncio.Task[Any]]:
        """The tasks that hold records, except those that stop the consumer."""
        held = self._path.in_flight.holders()
        return [
            each for each in held if isinstance(each, asyncio.Task) and each not in self._stoppers
        ]

    def _take_over(self) -> None:
        """Handle holders that have ended and cannot return. (Called after the loop had its turn:
        the failure of one task may be about to cancel the calling one.)"""
        in_flight = self._path.in_flight
        for holder in self._holders():
            if holder.done():
                in_flight.mark_done(holder)
        in_flight.forget_idle(lambda holder: isinstance(holder, asyncio.Task) and not holder.done())

    def _let_go(self) -> None:
        patient, self._patient = self._patient, []
        for future in patient:
            _finish(future)

    def _start_waiting(self) -> None:
        self._waiting += 1
        if self._meter is not None:
            self._meter.waits()
        if self._announcement is None and self._observer is not None:
            self._announcement = self._loop.call_later(self._polled_every_s, self._announce)

    def _announce(self) -> None:
        assert self._observer is not None
        self._announced = True
        self._observer.polled(waiting=True)

    def _stop_waiting(self) -> None:
        self._waiting -= 1
        if self._meter is not None and not self._waiting:
            self._meter.goes_on()
        if self._waiting or self._announcement is None:
            return
        self._announcement.cancel()
        self._announcement = None
        if self._announced:
            self._announced = False
            assert self._observer is not None
            self._polled_at_s = self._now()
            self._observer.poll_ended()


def calling_task() -> Caller:
    """Return the running task, if any: a call may also be created outside an event loop, to be run
    in one."""
    try:
        return current_task()
    except RuntimeError:
        return None


def _returned(task: asyncio.Task[Any]) -> bool:
    """Whether an ended task returned normally."""
    if task.cancelled():
        return False
    error = task.exception()
    if error is not None:  # asyncio counts the access as handling and would no longer report it
        _log.error("a task that held records failed; they are not committed", exc_info=error)
    return error is None


def _finish(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_result(None)
