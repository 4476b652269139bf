"""Calling the user's function, and sending what it returns."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kip848_client import ConfigError, Kip848Error, Producer, ProducerRecord, Record
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ProducerFenced, RecordTooLarge
from kip848_client.processor._dead_letters import dead_letter_headers
from kip848_client.processor._handlers import RecordHandler, Rows
from kip848_client.processor.core import _commands as do
from kip848_client.processor.core import _events as ev
from kip848_client.processor.core._error_rules import Reaction, reaction
from kip848_client.processor.core._records import outputs_of

pytestmark = pytest.mark.asyncio

Rec = Record[Any, Any]
_TP = TopicPartition("t", 0)


@dataclass(frozen=True)
class _FrozenError(Exception):
    number: int


class _Sender:
    """Takes the records of a producer, every other one at once."""

    def __init__(self) -> None:
        self._at_once = itertools.cycle((True, False))
        self.sent: list[tuple[Any, ...]] = []
        self.refuse: BaseException | None = None

    def put(self, *record: Any) -> bool:
        if self.refuse is not None:
            raise self.refuse
        if next(self._at_once):
            self.sent.append((*record, None))
            return True
        return False

    async def send(self, *record: Any) -> None:
        if self.refuse is not None:
            raise self.refuse
        self.sent.append(record)

    def sending(self) -> _Sender:
        return self

    def bytes_sending(self) -> _Sender:
        return self


def _row(offset: int, timestamp: int = 7) -> Rec:
    return Record("t", 0, offset, timestamp, 0, b"k", b"v%d" % offset, None, 1, 2, (("h", b"1"),))


def _made(
    function: Callable[[Any], Any], *, batch: bool = False, letters: str | None = None
) -> tuple[RecordHandler, _Sender]:
    sender = _Sender()
    producer = cast("Producer[Any, Any]", sender)
    return RecordHandler(function, producer, batch=batch, dead_letter_topic=letters), sender


def _copy(record: Rec) -> ProducerRecord:
    return ProducerRecord("out", record.value)


def _rows(*offsets: int) -> Rows:
    return deque(_row(each) for each in offsets)


async def test_what_is_whole_leaves_the_hand() -> None:
    handler, sender = _made(_copy)
    rows = _rows(3, 5, 6, 9)
    answer = await handler.process(do.Process(1, _TP, 3, 7), rows)
    assert answer == ev.Processed(1, 7, 3)
    assert [each.offset for each in rows] == [9]
    assert [each[1] for each in sender.sent] == [b"v3", b"v5", b"v6"]


async def test_a_cut_ends_after_the_record_that_the_function_has() -> None:
    def function(record: Rec) -> ProducerRecord:
        if record.offset == 5:
            handler.cut(do.Cut(1, discard=False))
        return _copy(record)

    handler, sender = _made(function)
    rows = _rows(3, 5, 6)
    assert await handler.process(do.Process(1, _TP, 3, 7), rows) == ev.Processed(1, 6, 2)
    assert [each.offset for each in rows] == [6]
    assert len(sender.sent) == 2


@pytest.mark.parametrize("batch", [False, True])
async def test_what_is_discarded_is_not_sent(batch: bool) -> None:
    def function(_: Any) -> ProducerRecord:
        handler.cut(do.Cut(1, discard=True))
        return ProducerRecord("out")

    handler, sender = _made(function, batch=batch)
    rows = _rows(3, 5)
    assert await handler.process(do.Process(1, _TP, 3, 6), rows) == ev.Processed(1, 3, 0)
    assert sender.sent == []
    assert len(rows) == 2


async def test_outputs_before_an_error_of_the_same_record_are_not_sent() -> None:
    async def function(record: Rec) -> Any:
        yield _copy(record)
        if record.offset == 5:
            raise ZeroDivisionError

    handler, sender = _made(function, letters="dead")
    rows = _rows(3, 5, 6)
    answer = await handler.process(do.Process(1, _TP, 3, 7), rows)
    assert isinstance(answer, ev.FunctionFailed)
    assert (answer.first, answer.until, answer.records) == (5, 6, 1)
    assert not hasattr(answer.error, "__notes__"), "it is not raised, and may be one for all"
    assert len(sender.sent) == 1
    sent = await handler.send_dead_letters(do.SendDeadLetters(2, _TP, 5, 6, answer.error), rows)
    assert sent == ev.Processed(2, 6, 1)
    assert [each.offset for each in rows] == [6]
    assert sender.sent[-1][:5] == ("dead", b"v5", b"k", None, 7)


async def test_a_batch_that_fails_stays_in_hand_for_the_dead_letters() -> None:
    def function(_: list[Rec]) -> None:
        raise ZeroDivisionError

    handler, sender = _made(function, batch=True, letters="dead")
    rows = _rows(3, 5, 9)
    answer = await handler.process(do.Process(1, _TP, 3, 6), rows)
    assert isinstance(answer, ev.FunctionFailed)
    assert (answer.first, answer.until, answer.records) == (3, 6, 0)
    command = do.SendDeadLetters(2, _TP, 3, 6, answer.error)
    assert await handler.send_dead_letters(command, rows) == ev.Processed(2, 6, 2)
    assert [each[1] for each in sender.sent] == [b"v3", b"v5"]


@pytest.mark.parametrize("batch", [False, True])
async def test_an_output_that_is_refused(batch: bool) -> None:
    handler, sender = _made(lambda _: ProducerRecord("out"), batch=batch)
    sender.refuse = RecordTooLarge("10 GB")
    answer = await handler.process(do.Process(1, _TP, 3, 4), _rows(3))
    assert answer == ev.OutputRefused(1, 3, 4, sender.refuse)


async def test_a_dead_letter_that_is_refused() -> None:
    handler, sender = _made(_copy, letters="dead")
    sender.refuse = RecordTooLarge("10 GB")
    command = do.SendDeadLetters(2, _TP, 3, 4, ValueError())
    assert await handler.send_dead_letters(command, _rows(3)) == ev.Failed(2, sender.refuse)


async def test_a_function_that_awaits_nothing_lets_others_have_their_turn() -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    def function(_: Rec) -> None:
        clock.now += 0.004

    handler, _ = _made(function)
    clock = SimpleNamespace(now=0.0)
    handler._loop = cast("asyncio.AbstractEventLoop", SimpleNamespace(time=lambda: clock.now))
    task = asyncio.create_task(other())
    await handler.process(do.Process(1, _TP, 0, 30), deque(_row(each) for each in range(30)))
    task.cancel()
    assert turns >= 9


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_cancellation_that_is_not_ours_is_an_error_of_the_function(is_async: bool) -> None:
    def function(_: Rec) -> Any:
        if is_async:
            future = asyncio.get_running_loop().create_future()
            future.cancel()
            return future
        raise asyncio.CancelledError

    handler, _ = _made(function)
    answer = await handler.process(do.Process(1, _TP, 3, 4), _rows(3))
    assert isinstance(answer, ev.FunctionFailed)
    assert isinstance(answer.error, Kip848Error)
    handler.end()
    with pytest.raises(asyncio.CancelledError):
        await handler.process(do.Process(1, _TP, 3, 4), _rows(3))


@pytest.mark.parametrize("batch", [False, True])
async def test_a_cancellation_that_a_serializer_lets_out_is_its_error(batch: bool) -> None:
    handler, sender = _made(lambda _: ProducerRecord("out"), batch=batch)
    sender.refuse = asyncio.CancelledError()
    answer = await handler.process(do.Process(1, _TP, 3, 4), _rows(3))
    assert isinstance(answer, ev.OutputRefused)
    assert reaction(answer.error) is Reaction.POISON
    assert "let a CancelledError out" in str(answer.error)
    handler.end()
    with pytest.raises(asyncio.CancelledError):
        await handler.process(do.Process(1, _TP, 3, 4), _rows(3))


async def test_an_error_that_cannot_be_changed_is_told_as_it_is() -> None:
    def function(_: Rec) -> None:
        raise error

    error = _FrozenError(5)
    handler, _ = _made(function)
    answer = await handler.process(do.Process(1, _TP, 3, 4), _rows(3))
    assert answer == ev.FunctionFailed(1, 3, 4, 0, error)


@pytest.mark.parametrize(
    ("error", "letters", "notes"),
    [
        (RecordTooLarge("10 GB"), None, ["while processing t-0 at offset 5"]),
        (ZeroDivisionError(), None, ["while processing t-0 at offset 5"]),
        (ZeroDivisionError(), "dead", []),
        (ProducerFenced("by another"), None, []),
    ],
)
async def test_an_output_that_is_refused_says_of_which_record(
    error: Exception, letters: str | None, notes: list[str]
) -> None:
    handler, sender = _made(lambda _: ProducerRecord("out"), letters=letters)
    sender.refuse = error
    answer = await handler.process(do.Process(1, _TP, 5, 6), _rows(5))
    assert isinstance(answer, ev.OutputRefused)
    assert getattr(answer.error, "__notes__", []) == notes


async def test_who_calls_from_within_the_function_is_known() -> None:
    seen: list[bool] = []

    async def function(_: Rec) -> None:
        seen.append(handler.in_function)
        seen.append(await asyncio.create_task(ask()))

    async def ask() -> bool:
        return handler.in_function

    handler, _ = _made(function)
    await handler.process(do.Process(1, _TP, 3, 4), _rows(3))
    assert seen == [True, False]
    assert not handler.in_function


async def test_what_a_function_may_return() -> None:
    one, two = ProducerRecord("a"), ProducerRecord("b")
    assert list(outputs_of(None)) == []
    assert list(outputs_of(one)) == [one]
    assert list(outputs_of([one, two])) == [one, two]
    assert list(outputs_of(each for each in (one, two))) == [one, two]
    for wrong in (5, "text", b"bytes", {"a": one}, [one, None], ("topic", b"value"), object()):
        with pytest.raises(ConfigError, match="the function returns None"):
            outputs_of(wrong)


async def test_headers_of_a_dead_letter() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise ZeroDivisionError

    assert dead_letter_headers(_row(3), ValueError("\udcff" + "x" * 9_000))[:4] == [
        ("h", b"1"),
        ("kip848.errors.topic", b"t"),
        ("kip848.errors.partition", b"0"),
        ("kip848.errors.offset", b"3"),
    ]
    said = dict(dead_letter_headers(_row(3), ValueError("\udcff" + "x" * 9_000)))
    message = said["kip848.errors.exception.message"]
    assert message is not None
    assert message.startswith(b"\\udcff")
    assert len(message) < 5_000
    odd = dict(dead_letter_headers(_row(3), OddError()))
    assert odd["kip848.errors.exception.message"] == b""
