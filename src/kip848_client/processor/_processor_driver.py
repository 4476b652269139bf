"""Executes the commands of the processor's core. It contains no protocol rules.

A command that takes time runs as a task; its result is an event with the number of the command. The
fetched records are stored here; the core knows their offsets.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Any, Final

from kip848_client.consumer import Consumer
from kip848_client.core.ports import Clock
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConsumerClosed, Kip848Error, NotAssigned
from kip848_client.processor._dead_letters import unreadable_record
from kip848_client.processor._handlers import RecordHandler, Rows
from kip848_client.processor.core import _commands as do
from kip848_client.processor.core import _events as ev
from kip848_client.processor.core._core import ProcessorCore
from kip848_client.processor.core._model import Portion
from kip848_client.producer import Producer
from kip848_client.runtime._stepping import Stepping

__all__ = ["ProcessorDriver"]

_log = logging.getLogger("kip848_client")


class ProcessorDriver:
    """Drives one processor's core. It is also the consumer's rebalance listener."""

    def __init__(
        self,
        core: ProcessorCore,
        consumer: Consumer[Any, Any],
        producer: Producer[Any, Any],
        handler: RecordHandler,
        clock: Clock,
    ) -> None:
        self._core = core
        self._consumer = consumer
        self._producer = producer
        self._handler = handler
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._steps: Stepping[ev.Event] = Stepping(
            self._step, lambda: core.deadline_ms, ev.TimerFired, clock
        )
        self._hand: dict[TopicPartition, Rows] = {}
        self._in_work: Rows = deque()
        """The records to process. Taken when the command is given, because the partition may be
        lost before its task runs."""
        self._tickets = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._ended: asyncio.Future[Exception | None] = self._loop.create_future()
        self.over: Final = asyncio.Event()
        """``run`` has ended, for whatever reason."""

    # -- life cycle --------------------------------------------------------------------------

    @property
    def in_function(self) -> bool:
        """Whether the calling task is the one in which the function runs."""
        return self._handler.in_function

    async def run(self) -> None:
        """Process until the core reports its end. Raises the error that it reports."""
        task = self._loop.create_task(self._steps.run(), name="kip848-processor")
        try:
            self._steps.post(ev.RunRequested())
            ends: list[asyncio.Future[Any]] = [task, self._ended]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._handler.end()
            task.cancel()
            self._release_all()
            try:
                await asyncio.wait([task])  # the function may have resources to close
            finally:
                self.over.set()
        if not self._ended.done():
            raise _unforeseen(None if task.cancelled() else task.exception())
        error = self._ended.result()
        if error is not None:
            raise error

    def stop(self, deadline_ms: int) -> None:
        """End ``run``, at the latest at the deadline."""
        self._steps.post(ev.StopRequested(deadline_ms))
        self._producer.ends_soon()

    def stop_soon(self, within_ms: int) -> None:
        """End ``run`` from a signal handler or another thread."""

        def stop() -> None:
            self.stop(self._clock.now_ms() + within_ms)

        with suppress(RuntimeError):  # the loop is closed, so nothing is running
            self._loop.call_soon_threadsafe(stop)

    def _step(self, event: ev.Event) -> None:
        for command in self._core.step(self._clock.now_ms(), event):
            self._perform(command)

    # -- the listener ------------------------------------------------------------------------

    async def on_partitions_revoked(self, revoked: set[TopicPartition], /) -> None:
        """Return once no open transaction has records of these partitions."""
        if not self._steps.running:
            return
        ticket = next(self._tickets)
        future = self._waiting[ticket] = self._loop.create_future()
        self._steps.post(ev.Revoked(ticket, frozenset(revoked)))
        try:
            await future
        finally:
            if self._waiting.pop(ticket, None) is not None:
                self._steps.post(ev.WaitEnded(ticket))

    def on_partitions_assigned(self, assigned: set[TopicPartition], /) -> None:
        """Do nothing: the consumer reads them from their committed offsets."""

    def on_partitions_lost(self, lost: set[TopicPartition], /) -> None:
        """Report the loss at once: no other member waits for this one."""
        if self._steps.running:
            self._steps.post(ev.Lost(frozenset(lost)))

    def _release(self, ticket: int) -> None:
        future = self._waiting.pop(ticket, None)
        if future is not None and not future.done():
            future.set_result(None)

    def _release_all(self) -> None:
        for ticket in list(self._waiting):
            self._release(ticket)

    # -- commands ----------------------------------------------------------------------------

    def _perform(self, command: do.Command) -> None:
        start, producer = self._steps.start, self._producer
        match command:
            case do.Poll():
                start(self._poll, command)
            case do.Process():
                self._in_work = self._hand[command.partition]
                start(self._process, command, self._in_work)
            case do.SendDeadLetters():
                start(self._send_dead_letters, command, self._to_bury(command))
            case do.Begin(number):
                start(self._ask, number, producer.begin_transaction)
            case do.SendOffsets():
                start(self._ask, command.number, lambda: self._send_offsets(command))
            case do.Commit(number):
                start(self._ask, number, producer.commit_transaction)
            case do.Abort(number):
                start(self._ask, number, producer.abort_transaction)
            case _:
                self._tell(command)

    def _tell(self, command: do.Command) -> None:
        """Commands that are executed at once."""
        match command:
            case do.Cut():
                self._handler.cut(command)
            case do.Rewind(offsets):
                for tp, offset in offsets.items():
                    self._hand.pop(tp, None)
                    with suppress(NotAssigned, ConsumerClosed):
                        self._consumer.seek(tp, offset)
            case do.TakeUnreadable(error):
                row = unreadable_record(error)
                tp = TopicPartition(row.topic, row.partition)
                self._hand.setdefault(tp, deque()).append(row)
                with suppress(NotAssigned, ConsumerClosed):
                    self._consumer.seek(tp, row.offset + 1)
            case do.Drop(partitions):
                self._forget(partitions)
            case do.Release(ticket):
                self._release(ticket)
            case do.Ended(error):
                if not self._ended.done():
                    self._ended.set_result(error)
            case do.Notice(text, warning):
                _log.log(logging.WARNING if warning else logging.INFO, "%s", text)
            case _:
                raise AssertionError(f"no such command: {command!r}")

    def _forget(self, partitions: Collection[TopicPartition]) -> None:
        for tp in partitions:
            self._hand.pop(tp, None)

    # -- commands that take time -------------------------------------------------------------

    async def _poll(self, command: do.Poll) -> None:
        try:
            found = await self._consumer.getmany(
                timeout_ms=command.wait_ms, max_records=command.max_records
            )
        except Exception as err:  # noqa: BLE001 - the core says what it means
            self._steps.post(ev.PollFailed(command.number, err))
            return
        portions: list[Portion] = []
        for tp, records in found.items():
            self._hand.setdefault(tp, deque()).extend(records)
            portions.append(Portion(tp, records[0].offset, records[-1].offset + 1, len(records)))
        self._steps.post(ev.Polled(command.number, tuple(portions)))

    async def _ask(self, number: int, ask: Callable[[], Awaitable[None]]) -> None:
        try:
            await ask()
        except Exception as err:  # noqa: BLE001 - the core says what it means
            self._steps.post(ev.Failed(number, err))
        else:
            self._steps.post(ev.Done(number))

    async def _send_offsets(self, command: do.SendOffsets) -> None:
        await self._producer.send_offsets_to_transaction(command.offsets, self._consumer)

    async def _process(self, command: do.Process, rows: Rows) -> None:
        self._steps.post(await self._handler.process(command, rows))

    def _to_bury(self, command: do.SendDeadLetters) -> Rows:
        """The records that become dead letters, and the records after them."""
        rows = self._hand.get(command.partition)
        if not rows or rows[0].offset != command.first:
            return self._in_work  # the group has revoked the partition meanwhile
        return rows

    async def _send_dead_letters(self, command: do.SendDeadLetters, rows: Rows) -> None:
        self._steps.post(await self._handler.send_dead_letters(command, rows))


def _unforeseen(cause: BaseException | None) -> BaseException:
    """The error for ``run`` to raise if the core has not reported its end."""
    if cause is None:
        why = "was cancelled from outside (by the function, or by what it calls?)"
        return Kip848Error(f"the processor {why}; stop it and make a new one")
    if isinstance(cause, BaseExceptionGroup) and not isinstance(cause, ExceptionGroup):
        # not an error of this library: raised by the function, for the caller of run()
        return next(each for each in cause.exceptions if not isinstance(each, Exception))
    told = Kip848Error(
        f"the processor failed by a bug of its own: {cause!r}; stop it and make a new one"
    )
    told.__cause__ = cause
    return told
