"""Executes the commands of the producer core. It contains no protocol rules.

A command that takes time runs as a task; its result is an event with the number of the command. A
call that waits has a ticket: a future that ``Done`` or ``Failed`` completes.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Final

from kip848_client.core.cluster import LearnLeaders
from kip848_client.core.ports import Clock
from kip848_client.core.produce import (
    AddOffsets,
    AddPartitions,
    Appended,
    BatchDone,
    BatchFailed,
    BatchSplit,
    Command,
    CommitOffsets,
    DescribeTransaction,
    Done,
    EndTransaction,
    Event,
    Failed,
    FindCoordinator,
    InitProducerId,
    Notice,
    ProducerCore,
    RoomMade,
    SendProduce,
    TimerFired,
    TopicWanted,
    WaitEnded,
)
from kip848_client.core.types import Wait
from kip848_client.errors import Kip848Error
from kip848_client.observe.core.watching import ProducerMeter
from kip848_client.producer._deliveries import Deliveries, Receipts
from kip848_client.producer._requests import Network, Requests
from kip848_client.runtime._stepping import Stepping
from kip848_client.runtime._topics import TopicDirectory
from kip848_client.runtime._waits import Waits

__all__ = ["ProduceDriver"]

_log = logging.getLogger("kip848_client")


class ProduceDriver:
    """Drives one producer core. Run ``run`` in a task; ``post`` events to it."""

    def __init__(
        self,
        core: ProducerCore,
        network: Network,
        topics: TopicDirectory,
        clock: Clock,
        *,
        is_transactional: bool,
        receipts: Receipts,
        meter: ProducerMeter | None = None,
        fields: Mapping[str, object] | None = None,
    ) -> None:
        self.core: Final = core
        self._fields = dict(fields or {})
        self.meter: Final = meter
        """Measures the producer, if metrics are enabled."""
        self.clock: Final = clock
        self.deliveries: Final = Deliveries(
            is_silent=is_transactional, receipts=receipts, fields=fields
        )
        self._topics = topics
        self._loop = asyncio.get_running_loop()
        self._requests = Requests(network, self.post)
        self._waits = Waits()
        self._steps: Stepping[Event] = Stepping(self._step, self._due_ms, TimerFired, clock)
        self._tickets = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self.is_hungry = False
        """Whether a caller waits for memory."""
        self._hungry: asyncio.Future[None] = self._loop.create_future()
        """The future of that caller, or of the last one."""
        self._failure: Kip848Error | None = None
        self._is_stirred = False

    # -- interface for the application -------------------------------------------------------

    def post(self, event: Event) -> None:
        """Pass an event to the core. While ``run`` runs, the resulting commands are executed before
        this returns."""
        self._steps.post(event)

    def notify(self) -> None:
        """The core asked for a step: take one in the next turn of the event loop."""
        if not self._is_stirred:
            self._is_stirred = True
            self._steps.post_soon(Appended())

    async def ask(
        self, make: Callable[[int], Event], undo: Callable[[], None] | None = None
    ) -> None:
        """Post the event that ``make`` creates from a ticket, and wait for its result. Raises the
        error of ``Failed``. A cancelled caller stops waiting, but the request continues. ``undo``
        is called if the request had succeeded in the moment in which the caller was cancelled."""
        self.check()
        ticket = next(self._tickets)
        future = self._waiting[ticket] = self._loop.create_future()
        self.post(make(ticket))
        try:
            await future
        except asyncio.CancelledError:
            is_done = future.done() and not future.cancelled() and future.exception() is None
            if is_done and undo is not None:
                undo()
            self._waiting.pop(ticket, None)
            self.post(WaitEnded(ticket))  # even if done: the result was not received
            raise

    async def learn(self, topic: str, patience_ms: int, *, refresh: bool = False) -> None:
        """Wait until the number of partitions of a topic is known; with ``refresh`` it is requested
        again. This may create a topic that does not exist. Raises ``BrokerError``,
        ``RequestTimedOut``."""
        deadline_ms = self.clock.now_ms() + patience_ms
        await self.ask(lambda ticket: TopicWanted(ticket, topic, deadline_ms, refresh))

    async def room(self) -> None:
        """Wait until there may be memory. Only one caller waits at a time."""
        self.check()
        assert not self.is_hungry, "who waits for room stands in line"
        future = self._hungry = self._loop.create_future()
        self.is_hungry = True
        self.post(Appended())
        try:
            await future
        finally:
            self.is_hungry = False
            if future.done() and not future.cancelled():
                future.exception()  # a cancelled caller need not receive it

    def check(self) -> None:
        """Raise the error that has ended the producer, if any."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    def end_waits(self, error: Kip848Error) -> None:
        """The producer has ended: fail all waiting calls with ``error``."""
        self._failure = self._failure or error
        futures = [*self._waiting.values(), *([self._hungry] if self.is_hungry else [])]
        self._waiting.clear()
        for future in futures:
            if not future.done():
                future.set_exception(self._failure.with_traceback(None))
        self.deliveries.end(self._failure)

    # -- life cycle --------------------------------------------------------------------------

    async def run(self) -> None:
        """Drive the core until cancelled. Raises errors that indicate a bug in this library."""
        await self._steps.run()

    async def begun(self) -> None:
        """Return once ``run`` is running; from then on events are handled at once."""
        await self._steps.begun()

    def keep_fresh(self) -> None:
        """Refresh the list of brokers from time to time, whether or not records are sent: brokers
        come and go, and the ids of topics that are no longer written to are forgotten."""
        self._steps.start(self._topics.run)

    async def ask_for_features(self) -> None:
        """Learn which transactions version the cluster uses."""
        await self._requests.ask_for_features()

    def _step(self, event: Event) -> None:
        self._is_stirred = False
        now_ms = self.clock.now_ms()
        commands = self.core.step(now_ms, event)
        if self.meter is not None:
            self.meter.on_step(now_ms, event, commands)
        for command in commands:
            self._perform(command)
        due_ms = self._waits.due_ms
        if (due_ms is None or due_ms <= now_ms) and self.core.is_busy:
            self._tell_waits(now_ms, self.core.waits())
        elif due_ms is not None and due_ms <= now_ms:
            self._tell_waits(now_ms, {})

    def _due_ms(self) -> int | None:
        due = (self.core.deadline_ms, self._waits.due_ms)
        return min((each for each in due if each is not None), default=None)

    def _tell_waits(self, now_ms: int, waits: Mapping[str, Wait]) -> None:
        for level, line in self._waits.look(now_ms, waits, again=self.core.is_busy):
            _log.log(level, "%s", line, extra=self._fields)

    def problems(self) -> tuple[str, ...]:
        """What the producer has been waiting for for more than a second."""
        return self._waits.problems(self.clock.now_ms())

    def _perform(self, command: Command) -> None:
        match command:
            case SendProduce():
                self._steps.start(self._requests.produce, command)
            case BatchDone():
                self.deliveries.done(command)
            case Done() | Failed():
                self._finish(command)
            case RoomMade():
                self._let_in()
            case BatchFailed():
                self.deliveries.failed(command)
            case BatchSplit():
                self.deliveries.split(command)
            case LearnLeaders():
                self._steps.start(self._learn_leaders, command)
            case FindCoordinator():
                self._steps.start(self._requests.find_coordinator, command)
            case InitProducerId():
                self._steps.start(self._requests.init_producer_id, command)
            case AddPartitions() | AddOffsets() | CommitOffsets() | EndTransaction():
                self._steps.start(self._requests.at_coordinator, command)
            case DescribeTransaction():
                self._steps.start(self._requests.describe_transaction, command)
            case Notice():
                level = logging.WARNING if command.warning else logging.INFO
                _log.log(level, "%s", command.text, extra=self._fields)
            case _:
                raise AssertionError(f"no such command: {command!r}")

    def _finish(self, told: Done | Failed) -> None:
        future = self._waiting.pop(told.ticket, None)
        if future is None or future.done():
            return  # the caller has given up
        if isinstance(told, Failed):
            future.set_exception(told.error)
        else:
            future.set_result(None)

    def _let_in(self) -> None:
        if not self._hungry.done():
            self._hungry.set_result(None)

    async def _learn_leaders(self, command: LearnLeaders) -> None:
        self.post(await self._topics.look_up(command))
