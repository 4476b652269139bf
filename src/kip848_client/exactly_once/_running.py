"""Performs what the processor's core asks for. No rule of the protocol is in here.

What takes time is a task, its end an event with the number of the command. Records in hand are
here; the core knows their offsets.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Collection
from contextlib import suppress
from inspect import isawaitable
from typing import Any, Final

from kip848_client._driver._stepping import Stepping
from kip848_client._ports import Clock
from kip848_client._types import TopicPartition
from kip848_client.consumer import Consumer
from kip848_client.errors import ConsumerClosed, Kip848Error, NotAssigned
from kip848_client.exactly_once import _commands as do
from kip848_client.exactly_once import _events as ev
from kip848_client.exactly_once._core import ProcessorCore
from kip848_client.exactly_once._dead_letters import dead_letter_headers
from kip848_client.exactly_once._model import Portion
from kip848_client.exactly_once._records import ProducerRecord, outputs_of
from kip848_client.producer import Producer
from kip848_client.records import Record

__all__ = ["Function", "Running"]

_log = logging.getLogger("kip848_client")

_TURN_S: Final = 0.01
"""A function that awaits nothing gives other tasks a turn this often."""

Function = Callable[[Any], Any]
_Rows = deque[Record[Any, Any]]


class Running:
    """Drives one processor's core. It is the listener of the consumer, too."""

    def __init__(
        self,
        core: ProcessorCore,
        consumer: Consumer[Any, Any],
        producer: Producer[Any, Any],
        function: Function,
        clock: Clock,
        *,
        batch: bool,
        dead_letter_topic: str | None,
    ) -> None:
        self._core = core
        self._consumer = consumer
        self._producer = producer
        self._function = function
        self._clock = clock
        self._batch = batch
        self._dead_letter_topic = dead_letter_topic
        self._loop = asyncio.get_running_loop()
        self._steps: Stepping[ev.Event] = Stepping(
            self._step, lambda: core.deadline_ms, ev.TimerFired, clock
        )
        self._hand: dict[TopicPartition, _Rows] = {}
        self._in_work: _Rows = deque()
        """Of the partition that is processed."""
        self._cut: int | None = None
        self._discarded: int | None = None
        self._tickets = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._ended: asyncio.Future[Exception | None] = self._loop.create_future()
        self._is_ending = False
        self._working: asyncio.Task[Any] | None = None
        self.over: Final = asyncio.Event()
        """``run`` has ended, by whatever way."""

    # -- life --------------------------------------------------------------------------------

    @property
    def in_function(self) -> bool:
        """Whether the calling task is the one in which the function runs."""
        return self._working is not None and self._working is asyncio.current_task()

    async def run(self) -> None:
        """Process until the core says that it has ended. Raises what it says then."""
        task = self._loop.create_task(self._steps.run(), name="kip848-processor")
        try:
            self._steps.post(ev.RunRequested())
            ends: list[asyncio.Future[Any]] = [task, self._ended]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._is_ending = True
            task.cancel()
            self._release_all()
            try:
                await asyncio.wait([task])  # the function may have something to close
            finally:
                self.over.set()
        if not self._ended.done():
            cause = None if task.cancelled() else task.exception()
            raise Kip848Error(
                f"the processor failed by a bug of its own: {cause!r}; stop it and make a new one"
            ) from cause
        error = self._ended.result()
        if error is not None:
            raise error

    def stop(self, deadline_ms: int) -> None:
        """Let ``run`` end, at the latest at the deadline."""
        self._steps.post(ev.StopRequested(deadline_ms))

    def _step(self, event: ev.Event) -> None:
        for command in self._core.step(self._clock.now_ms(), event):
            self._perform(command)

    # -- the listener ------------------------------------------------------------------------

    async def on_partitions_revoked(self, revoked: set[TopicPartition], /) -> None:
        """Return when no transaction has anything of them."""
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
        """They are read from where they are committed."""

    def on_partitions_lost(self, lost: set[TopicPartition], /) -> None:
        """Nobody waits for us."""
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
                start(self._process, command)
            case do.SendDeadLetters():
                start(self._send_dead_letters, command)
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
        """Commands that are done at once."""
        match command:
            case do.Cut():
                self._cut = command.number
                if command.discard:
                    self._discarded = command.number
            case do.Rewind(offsets):
                for tp, offset in offsets.items():
                    self._hand.pop(tp, None)
                    with suppress(NotAssigned, ConsumerClosed):
                        self._consumer.seek(tp, offset)
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

    # -- what takes time ---------------------------------------------------------------------

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

    async def _process(self, command: do.Process) -> None:
        self._working = asyncio.current_task()
        self._in_work = self._hand[command.partition]
        try:
            if self._batch:
                answer = await self._process_batch(command, self._in_work)
            else:
                answer = await self._process_records(command, self._in_work)
        finally:
            self._working = None
        self._steps.post(answer)

    async def _process_records(self, command: do.Process, rows: _Rows) -> ev.Event:
        number, until, records = command.number, command.first, 0
        turn_at_s = self._loop.time() + _TURN_S
        while rows and rows[0].offset < command.until:
            record = rows[0]
            try:
                outputs = await self._outputs(record)
            except Exception as err:  # noqa: BLE001 - whatever the function raises
                return _function_failed(number, record, record, records, err)
            if outputs and self._discarded != number:
                try:
                    await self._send(outputs)
                except Exception as err:  # noqa: BLE001 - the core says what it means
                    return ev.OutputRefused(number, record.offset, record.offset + 1, err)
            rows.popleft()
            until, records = record.offset + 1, records + 1
            if self._loop.time() >= turn_at_s:
                await asyncio.sleep(0)
                turn_at_s = self._loop.time() + _TURN_S
            if self._cut == number:
                break
        return ev.Processed(number, until, records)

    async def _process_batch(self, command: do.Process, rows: _Rows) -> ev.Event:
        number = command.number
        batch = [record for record in rows if record.offset < command.until]
        try:
            outputs = await self._outputs(batch)
        except Exception as err:  # noqa: BLE001 - whatever the function raises
            return _function_failed(number, batch[0], batch[-1], 0, err)
        if self._discarded != number:
            try:
                await self._send(outputs)
            except Exception as err:  # noqa: BLE001 - the core says what it means
                return ev.OutputRefused(number, command.first, command.until, err)
        for _ in batch:
            rows.popleft()
        return ev.Processed(number, command.until, len(batch))

    async def _outputs(self, argument: Any) -> Collection[ProducerRecord]:
        """What the function makes of it."""
        try:
            result = self._function(argument)
            if result is not None and not isinstance(result, ProducerRecord):
                if isawaitable(result):
                    result = await result
                elif isinstance(result, AsyncIterable):
                    result = [each async for each in result]
            return outputs_of(result)
        except asyncio.CancelledError as err:
            if self._is_ending:
                raise
            raise Kip848Error(
                "the function let a CancelledError out (of a task that it awaits?)"
            ) from err

    async def _send(self, outputs: Collection[ProducerRecord]) -> None:
        send = self._producer.sending().send
        for topic, value, key, partition, timestamp_ms, headers in outputs:
            await send(topic, value, key, partition, timestamp_ms, headers)

    async def _send_dead_letters(self, command: do.SendDeadLetters) -> None:
        rows = self._in_work
        if not rows or rows[0].offset != command.first:
            rows = self._hand[command.partition]
        send, topic = self._producer.bytes_sending().send, self._dead_letter_topic
        assert topic is not None, "the core was told that there is one"
        records = 0
        try:
            while rows and rows[0].offset < command.until:
                each = rows[0]
                time_ms = each.timestamp if each.timestamp >= 0 else None
                headers = dead_letter_headers(each, command.error)
                await send(topic, each.value, each.key, None, time_ms, headers)
                rows.popleft()
                records += 1
        except Exception as err:  # noqa: BLE001 - the core says what it means
            self._steps.post(ev.Failed(command.number, err))
            return
        self._steps.post(ev.Processed(command.number, command.until, records))


def _function_failed(
    number: int,
    first: Record[Any, Any],
    last: Record[Any, Any],
    records: int,
    error: Exception,
) -> ev.FunctionFailed:
    where = f"at offset {first.offset}"
    if last is not first:
        where = f"at offsets {first.offset} to {last.offset}"
    error.add_note(f"while processing {first.topic}-{first.partition} {where}")
    return ev.FunctionFailed(number, first.offset, last.offset + 1, records, error)
