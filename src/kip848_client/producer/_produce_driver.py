"""Performs what the producer core asks for. No rule of the protocol is in here.

What takes time is a task, its end an event with the number of the command. Who waits for something
has a ticket: a future that ``Done`` or ``Failed`` ends.
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
        """What measures, if anything is measured."""
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
        """Whether somebody waits for room."""
        self._hungry: asyncio.Future[None] = self._loop.create_future()
        """Who does, or has done last."""
        self._failure: Kip848Error | None = None
        self._is_stirred = False

    # -- for the application's side ----------------------------------------------------------

    def post(self, event: Event) -> None:
        """Give the core an event; what follows is done when this returns, while ``run`` runs."""
        self._steps.post(event)

    def notify(self) -> None:
        """The core wants a step: take one in the next turn of the loop."""
        if not self._is_stirred:
            self._is_stirred = True
            self._steps.post_soon(Appended())

    async def ask(
        self, make: Callable[[int], Event], undo: Callable[[], None] | None = None
    ) -> None:
        """Post what ``make`` makes of a ticket, and wait for its end. Raises what ``Failed`` says.
        Who is cancelled waits no more; what was asked for goes on. ``undo`` is called when it was
        done in the very moment in which its asker was cancelled."""
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
            self.post(WaitEnded(ticket))  # also of what is done: nobody has heard of it
            raise

    async def learn(self, topic: str, patience_ms: int, *, anew: bool = False) -> None:
        """Wait until it is known how many partitions a topic has, or with ``anew`` has by now. One
        that does not exist may be created by that. Raises ``BrokerError``, ``RequestTimedOut``."""
        deadline_ms = self.clock.now_ms() + patience_ms
        await self.ask(lambda ticket: TopicWanted(ticket, topic, deadline_ms, anew))

    async def room(self) -> None:
        """Wait until there may be room. One waits at a time."""
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
                future.exception()  # who is cancelled in the moment of a failure need not hear it

    def check(self) -> None:
        """Raise what has ended the producer, if anything did."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    def end_waits(self, error: Kip848Error) -> None:
        """Nothing is sent or told any more: end every wait with ``error``."""
        self._failure = self._failure or error
        futures = [*self._waiting.values(), *([self._hungry] if self.is_hungry else [])]
        self._waiting.clear()
        for future in futures:
            if not future.done():
                future.set_exception(self._failure.with_traceback(None))
        self.deliveries.end(self._failure)

    # -- life --------------------------------------------------------------------------------

    async def run(self) -> None:
        """Drive the core until cancelled. Raises what shows a bug of ours."""
        await self._steps.run()

    async def begun(self) -> None:
        """Return when ``run`` runs: from then on an event is taken at once."""
        await self._steps.begun()

    def keep_fresh(self) -> None:
        """Ask for the brokers from time to time, whatever is written: they come and go, and ids of
        topics that nobody writes to any more are forgotten."""
        self._steps.start(self._topics.run)

    async def ask_for_features(self) -> None:
        """Learn which transactions the cluster speaks."""
        await self._requests.ask_for_features()

    def _step(self, event: Event) -> None:
        self._is_stirred = False
        now_ms = self.clock.now_ms()
        commands = self.core.step(now_ms, event)
        if self.meter is not None:
            self.meter.took(now_ms, event, commands)
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
        """What the producer has waited for for more than a second."""
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
            return  # whoever asked has given up
        if isinstance(told, Failed):
            future.set_exception(told.error)
        else:
            future.set_result(None)

    def _let_in(self) -> None:
        if not self._hungry.done():
            self._hungry.set_result(None)

    async def _learn_leaders(self, command: LearnLeaders) -> None:
        self.post(await self._topics.look_up(command))
