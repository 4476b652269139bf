"""Records on their way, and the futures that tell what became of them: by batch, in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from kip848_client._types import TopicPartition
from kip848_client.errors import Kip848Error
from kip848_client.producing import BatchDone, BatchFailed, BatchSplit

__all__ = ["Deliveries", "OnItsWay", "Receipts", "RecordMetadata"]

_CREATE_TIME: Final = 0
_LOG_APPEND_TIME: Final = 1

_tuple: Final = tuple.__new__


class RecordMetadata(NamedTuple):
    """Where a record is in the log. Equal to aiokafka's of the same values."""

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    """-1 where no broker told: with acks=0, and for a record that a broker already had."""
    timestamp: int
    """Milliseconds since 1970."""
    timestamp_type: int
    """0: given by the producer, 1: by the broker."""
    log_start_offset: int
    """The first offset that the partition has, -1 where it was not told."""


_metadata: Final[Callable[[tuple[Any, ...]], RecordMetadata]] = partial(_tuple, RecordMetadata)


def _same(given: Any) -> Any:
    return given


@dataclass(frozen=True, slots=True)
class Receipts:
    """What is made for the futures of records."""

    receipt: Callable[[tuple[Any, ...]], Any] = _metadata
    """Of the values of a ``RecordMetadata``, in its order: the result."""
    partition: Callable[[TopicPartition], Any] = _same
    """``topic_partition`` in all results of a batch."""
    error: Callable[[Kip848Error], BaseException] = _same
    """Of what has gone wrong: what is raised."""


class OnItsWay:
    """The records of one batch: the future and the time of each, by row."""

    __slots__ = ("futures", "times", "tp")

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.futures: list[asyncio.Future[RecordMetadata] | None] = []
        """``None`` for a record that nobody waits for."""
        self.times: list[int] = []


class Deliveries:
    """All batches that are not done. ``is_silent``: errors are told by other means, too, so that
    a future that nobody looks at is no reason for a warning. After ``end`` there are none, whatever
    is told of them. ``receipts``: see there."""

    def __init__(self, *, is_silent: bool, receipts: Receipts) -> None:
        self.batches: dict[int, OnItsWay] = {}
        self._is_silent = is_silent
        self._receipts = receipts

    def done(self, told: BatchDone) -> None:
        """The records of a batch are in the log."""
        batch = self.batches.pop(told.batch, None)
        if batch is None:
            return
        topic, partition = batch.tp
        make = self._receipts.receipt
        tp = self._receipts.partition(batch.tp)
        offset, append_time_ms, start = told.place
        kind = _CREATE_TIME if append_time_ms < 0 else _LOG_APPEND_TIME
        step = 0 if offset < 0 else 1
        for future, time_ms in zip(batch.futures, batch.times, strict=True):
            if future is not None and not future.done():
                at_ms = time_ms if append_time_ms < 0 else append_time_ms
                row = (topic, partition, tp, offset, at_ms, kind, start)
                future.set_result(make(row))
            offset += step

    def failed(self, told: BatchFailed) -> None:
        """The records of a batch are not in the log, or nobody knows."""
        batch = self.batches.pop(told.batch, None)
        if batch is None:
            return
        made = self._receipts.error
        error = made(told.error)
        for row, future in enumerate(batch.futures):
            culprit = told.culprits.get(row)
            self._fail(future, error if culprit is None else made(culprit))

    def split(self, told: BatchSplit) -> None:
        """The records of a batch are in others from now on."""
        whole = self.batches.pop(told.batch, None)
        if whole is None:
            return
        at = 0
        for number, records in told.parts:
            part = self.batches[number] = OnItsWay(whole.tp)
            part.futures = whole.futures[at : at + records]
            part.times = whole.times[at : at + records]
            at += records

    def end(self, error: Kip848Error) -> None:
        """Nothing is told any more of what is still on its way."""
        batches = list(self.batches.values())
        self.batches.clear()
        made = self._receipts.error(error)
        for batch in batches:
            for future in batch.futures:
                self._fail(future, made)

    def _fail(self, future: asyncio.Future[RecordMetadata] | None, error: BaseException) -> None:
        if future is None or future.done():
            return
        future.set_exception(error)
        if self._is_silent:
            future.exception()
