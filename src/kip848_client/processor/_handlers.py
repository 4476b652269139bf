"""Calls the user's function and sends its results.

Records are removed from the front of the fetched records once they are complete, so those that are
left still have to be processed. The loop over records is a processor's hot path: a function that is
not async costs no task, coroutine or event per record.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Callable, Collection
from contextlib import suppress
from inspect import isawaitable
from itertools import takewhile
from typing import Any, Final

from kip848_client.errors import BrokerError, ConfigError, LocalProtocolError
from kip848_client.processor._dead_letters import dead_letter_headers
from kip848_client.processor.core import _commands as do
from kip848_client.processor.core import _events as ev
from kip848_client.processor.core._error_rules import Reaction, is_of_the_record, reaction
from kip848_client.processor.core._records import ProducerRecord, outputs_of
from kip848_client.producer import Producer
from kip848_client.records import Record

__all__ = ["Function", "RecordHandler", "Rows"]

_TURN_S: Final = 0.01
"""How often a function that never awaits lets other tasks run."""

Function = Callable[[Any], Any]
Rows = deque[Record[Any, Any]]
Answer = ev.Processed | ev.FunctionFailed | ev.OutputRefused


class RecordHandler:
    """Calls one function and sends its outputs."""

    def __init__(
        self,
        function: Function,
        producer: Producer[Any, Any],
        *,
        batch: bool,
        dead_letter_topic: str | None,
    ) -> None:
        self._function = function
        self._producer = producer
        self._batch = batch
        self._dead_letter_topic = dead_letter_topic
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] | None = None
        self._cut: int | None = None
        self._discarded: int | None = None
        self._is_ending = False

    @property
    def in_function(self) -> bool:
        """Whether the calling task is the one in which the function runs."""
        return self._task is not None and self._task is asyncio.current_task()

    def cut(self, command: do.Cut) -> None:
        """See ``Cut``."""
        self._cut = command.number
        if command.discard:
            self._discarded = command.number

    def end(self) -> None:
        """Tasks are cancelled from now on."""
        self._is_ending = True

    async def process(self, command: do.Process, rows: Rows) -> Answer:
        """See ``Process``."""
        if self._discarded == command.number:  # before this task ran
            return ev.Processed(command.number, command.first, 0)
        taken = list(takewhile(lambda each: each.offset < command.until, rows))
        self._task = asyncio.current_task()
        try:
            if self._batch:
                answer, records = await self._process_batch(command, taken)
            else:
                answer, records = await self._process_each(command, taken)
        finally:
            self._task = None
        for _ in range(records):
            rows.popleft()
        return answer

    async def _process_each(
        self, command: do.Process, taken: list[Record[Any, Any]]
    ) -> tuple[Answer, int]:
        number, until, records = command.number, command.first, 0
        function, time = self._function, self._loop.time
        try:
            sending = self._producer.sending()
        except LocalProtocolError as err:  # the producer has been stopped elsewhere
            return self._refused(number, taken[0], taken[0], err), 0
        put, send = sending.put, sending.send
        turn_at_s = time() + _TURN_S
        for record in taken:
            offset = record.offset
            outputs: Collection[ProducerRecord]
            try:
                result = function(record)
                if result.__class__ is ProducerRecord:
                    outputs = (result,)
                elif result is None:
                    outputs = ()
                else:
                    outputs = await self._outputs(result)
            except (Exception, asyncio.CancelledError) as err:  # noqa: BLE001 - see _failed
                return self._failed(number, record, record, records, err), records
            if self._discarded == number:
                break
            try:
                for topic, value, key, partition, timestamp_ms, headers in outputs:
                    if headers or not put(topic, value, key, partition, timestamp_ms):
                        await send(topic, value, key, partition, timestamp_ms, headers)
            except (Exception, asyncio.CancelledError) as err:  # noqa: BLE001 - see _refused
                return self._refused(number, record, record, err), records
            until = offset + 1
            records += 1
            if time() >= turn_at_s:
                await asyncio.sleep(0)
                turn_at_s = time() + _TURN_S
            if self._cut == number:
                break
        return ev.Processed(number, until, records), records

    async def _process_batch(
        self, command: do.Process, taken: list[Record[Any, Any]]
    ) -> tuple[Answer, int]:
        number, first, until = command.number, command.first, command.until
        try:
            outputs = await self._outputs(self._function(list(taken)))
        except (Exception, asyncio.CancelledError) as err:  # noqa: BLE001 - see _failed
            return self._failed(number, taken[0], taken[-1], 0, err), 0
        if self._discarded == number:
            return ev.Processed(number, first, 0), 0
        try:
            sending = self._producer.sending()
            put, send = sending.put, sending.send
            for topic, value, key, partition, timestamp_ms, headers in outputs:
                if headers or not put(topic, value, key, partition, timestamp_ms):
                    await send(topic, value, key, partition, timestamp_ms, headers)
        except (Exception, asyncio.CancelledError) as err:  # noqa: BLE001 - see _refused
            return self._refused(number, taken[0], taken[-1], err), 0
        return ev.Processed(number, until, len(taken)), len(taken)

    async def _outputs(self, result: Any) -> Collection[ProducerRecord]:
        """The function's outputs, awaited if necessary."""
        if isawaitable(result):
            result = await result
        elif isinstance(result, AsyncIterable):
            result = [each async for each in result]
        return outputs_of(result)

    def _failed(
        self,
        number: int,
        first: Record[Any, Any],
        last: Record[Any, Any],
        records: int,
        error: Exception | asyncio.CancelledError,
    ) -> ev.FunctionFailed:
        """The function has failed."""
        told = self._told(error, "the function")
        if self._dead_letter_topic is None or not is_of_the_record(told):  # it will be raised
            _note(told, first, last)
        return ev.FunctionFailed(number, first.offset, last.offset + 1, records, told)

    def _refused(
        self,
        number: int,
        first: Record[Any, Any],
        last: Record[Any, Any],
        error: Exception | asyncio.CancelledError,
    ) -> ev.OutputRefused:
        """An output cannot be sent."""
        told = self._told(error, "a serializer (or the partitioner)")
        is_its_own = isinstance(told, BrokerError) or reaction(told) is Reaction.POISON
        if self._dead_letter_topic is None and is_its_own:
            _note(told, first, last)
        return ev.OutputRefused(number, first.offset, last.offset + 1, told)

    def _told(self, error: Exception | asyncio.CancelledError, who: str) -> Exception:
        """The exception to report. Raises the original one if this task itself is being
        cancelled."""
        if isinstance(error, StopIteration) and self._dead_letter_topic is None:
            ended = RuntimeError(f"{who} raised {error!r}")  # a coroutine cannot raise it (PEP 479)
            ended.__cause__ = error
            return ended
        if isinstance(error, Exception):
            return error
        if self._is_ending:
            raise error
        told = ConfigError(f"{who} let a CancelledError out (of a task that it awaits?)")
        told.__cause__ = error
        return told

    async def send_dead_letters(
        self, command: do.SendDeadLetters, rows: Rows
    ) -> ev.Processed | ev.Failed:
        """See ``SendDeadLetters``."""
        topic = self._dead_letter_topic
        assert topic is not None, "the settings of the core say that there is one"
        records = 0
        try:
            send = self._producer.bytes_sending().send
            while rows and rows[0].offset < command.until:
                each = rows[0]
                time_ms = each.timestamp if each.timestamp >= 0 else None
                headers = dead_letter_headers(each, command.error)
                await send(topic, each.value, each.key, None, time_ms, headers)
                rows.popleft()
                records += 1
        except Exception as err:  # noqa: BLE001 - the core says what it means
            return ev.Failed(command.number, err)
        return ev.Processed(command.number, command.until, records)


def _note(error: Exception, first: Record[Any, Any], last: Record[Any, Any]) -> None:
    where = f"at offset {first.offset}"
    if last is not first:
        where = f"at offsets {first.offset} to {last.offset}"
    with suppress(Exception):  # a frozen dataclass does not allow it
        error.add_note(f"while processing {first.topic}-{first.partition} {where}")
