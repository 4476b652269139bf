"""The driver of a processor: a command's records are those that were in hand when it was given."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from kip848_client import Consumer, Producer, ProducerRecord, Record
from kip848_client.core.types import TopicPartition
from kip848_client.processor._handlers import RecordHandler
from kip848_client.processor._processor_driver import ProcessorDriver
from kip848_client.processor.core._core import ProcessorCore
from kip848_client.processor.core._model import ProcessorSettings
from kip848_client.runtime.clock import LoopClock
from tests.support.late_tasks import LateTasks, begin_late
from tests.unit.waiting import some_rounds, until

pytestmark = pytest.mark.asyncio

Rec = Record[Any, Any]
TP = TopicPartition("t", 0)


class Log:
    """A consumer of one partition, and a transactional producer, without a network."""

    def __init__(self, records: int) -> None:
        self.records = [_row(offset) for offset in range(records)]
        self.position = 0
        self.is_assigned = True
        self.open: list[bytes] = []
        self.written: list[bytes] = []
        self.dead: list[bytes] = []
        self.committed = 0
        self.aborted = 0
        self._offset = 0

    def ends_soon(self) -> None:
        """No topic is missing here."""

    # -- the consumer

    async def getmany(
        self, *, timeout_ms: int, max_records: int
    ) -> dict[TopicPartition, list[Rec]]:
        if not self.is_assigned or self.position >= len(self.records):
            await asyncio.sleep(min(timeout_ms, 5) / 1_000)
            return {}
        found = self.records[self.position : self.position + max_records]
        self.position += len(found)
        return {TP: found}

    def seek(self, _tp: TopicPartition, offset: int) -> None:
        self.position = offset

    def assign_again(self) -> None:
        self.is_assigned, self.position = True, self.committed

    # -- the producer

    async def begin_transaction(self) -> None:
        self.open, self._offset = [], self.committed

    async def send_offsets_to_transaction(
        self, offsets: dict[TopicPartition, int], _group: object
    ) -> None:
        self._offset = offsets[TP]

    async def commit_transaction(self) -> None:
        self.written += self.open
        self.committed, self.open = self._offset, []

    async def abort_transaction(self) -> None:
        self.aborted += 1
        self.open = []

    def put(self, _topic: str, value: bytes, *_: object) -> bool:
        self.open.append(value)
        return True

    async def send(self, topic: str, value: bytes, *_: object) -> None:
        (self.dead if topic == "dead" else self.open).append(value)

    def sending(self) -> Log:
        return self

    def bytes_sending(self) -> Log:
        return self


def _row(offset: int) -> Rec:
    return Record("t", 0, offset, 7, 0, b"k", b"%d" % offset, None, 1, 2, ())


def _running(
    log: Log,
    function: Callable[[Any], Any],
    dead_letters: str | None = None,
    *,
    batch: bool = False,
    **settings: Any,
) -> ProcessorDriver:
    core = ProcessorCore(
        ProcessorSettings(
            commit_interval_ms=1, dead_letters=dead_letters is not None, poll_wait_ms=1, **settings
        ),
        lambda ms: ms,
    )
    producer = cast("Producer[Any, Any]", log)
    return ProcessorDriver(
        core,
        cast("Consumer[Any, Any]", log),
        producer,
        RecordHandler(function, producer, batch=batch, dead_letter_topic=dead_letters),
        LoopClock(asyncio.get_running_loop()),
    )


def _copy(record: Rec) -> ProducerRecord:
    return ProducerRecord("out", record.value)


async def _stopped(running: ProcessorDriver, task: asyncio.Task[None]) -> None:
    running.stop(LoopClock(asyncio.get_running_loop()).now_ms() + 1_000)
    await task


async def test_a_partition_that_is_lost_before_the_function_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late, log = LateTasks(monkeypatch), Log(4)
    called: list[bytes] = []

    def function(record: Rec) -> ProducerRecord:
        called.append(record.value)
        return _copy(record)

    running = _running(log, function)
    late.hold("_process")
    task = asyncio.create_task(running.run())
    await late.one_is_held()
    log.is_assigned = False
    running.on_partitions_lost({TP})
    late.release()
    await until(lambda: log.aborted)
    await some_rounds()
    assert not called, "the function is not called for records that are not ours any more"
    log.assign_again()
    await until(lambda: log.committed == 4)
    await _stopped(running, task)
    assert log.written == [b"0", b"1", b"2", b"3"]


async def test_a_partition_that_is_asked_back_with_more_of_it_in_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The work of a portion was cut, and another portion was polled: both are in hand when the
    first one goes on, and the second one is given back."""
    late, log = LateTasks(monkeypatch), Log(6)

    async def function(record: Rec) -> ProducerRecord:
        await until(lambda: running._core._is_closing)  # so that the portion is cut
        return _copy(record)

    running = _running(log, function, max_records=2)
    task = asyncio.create_task(running.run())
    await until(lambda: log.committed == 1)
    late.hold("_process")
    await late.one_is_held()
    assert running._core._progress.next is not None, "there is a second portion"
    asked = asyncio.create_task(running.on_partitions_revoked({TP}))
    await some_rounds(2)
    log.is_assigned = False
    late.release()
    await asked
    log.assign_again()
    await until(lambda: log.committed == 6)
    await _stopped(running, task)
    assert log.written == [b"%d" % n for n in range(6)]


async def test_a_partition_that_is_lost_before_its_dead_letters_are_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late, log = LateTasks(monkeypatch), Log(3)

    def function(record: Rec) -> ProducerRecord:
        if record.value == b"1":
            raise ValueError(record.value)
        return _copy(record)

    running = _running(log, function, "dead")
    late.hold("_send_dead_letters")
    task = asyncio.create_task(running.run())
    await late.one_is_held()
    running.on_partitions_lost({TP})
    log.is_assigned = False
    late.release()
    await until(lambda: log.aborted)
    log.assign_again()
    await until(lambda: log.committed == 3)
    await _stopped(running, task)
    assert log.written == [b"0", b"2"]


@pytest.mark.parametrize("batch", [False, True])
async def test_a_process_without_memory_left_ends_and_writes_no_dead_letter(batch: bool) -> None:
    """The records behind would be dead letters, too, and nothing is wrong with them."""
    log = Log(3)

    def function(given: Any) -> list[ProducerRecord]:
        records: list[Rec] = given if batch else [given]
        if any(each.value == b"1" for each in records):
            raise MemoryError
        return [_copy(each) for each in records]

    running = _running(log, function, "dead", batch=batch)
    with pytest.raises(MemoryError) as raised:
        await running.run()
    (note,) = raised.value.__notes__
    assert note == f"while processing t-0 at offset{'s 0 to 2' if batch else ' 1'}"
    assert not log.dead
    assert (log.written, log.committed) == ([], 0)


async def test_a_serializer_without_memory_left_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(3)

    def put(*_: object) -> bool:
        raise MemoryError

    monkeypatch.setattr(log, "put", put)
    with pytest.raises(MemoryError):
        await _running(log, _copy, "dead").run()
    assert not log.dead


@pytest.mark.parametrize("turns", [1, 3])
async def test_commands_mean_the_same_when_their_tasks_begin_late(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """Partitions go and come back in every turn of the loop."""
    begin_late(monkeypatch, turns)
    log = Log(40)
    running = _running(log, _copy, max_records=4)
    task = asyncio.create_task(running.run())
    for turn in range(200):
        await some_rounds(1 + turn % 7)
        if turn % 2:
            log.is_assigned = False
            running.on_partitions_lost({TP})
            continue
        asked = asyncio.create_task(running.on_partitions_revoked({TP}))
        await asked
        log.assign_again()
        assert not task.done(), task.exception()
    log.assign_again()
    await until(lambda: log.committed == 40)
    await _stopped(running, task)
    assert log.written == [b"%d" % n for n in range(40)]
