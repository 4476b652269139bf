"""Records in flight, and the futures with their results: by batch, in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from kip848_client.core.partition_names import shown
from kip848_client.core.produce import BatchDone, BatchFailed, BatchSplit
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error

__all__ = ["Deliveries", "OnItsWay", "Receipts", "RecordMetadata"]

_log = logging.getLogger("kip848_client")

_CREATE_TIME: Final = 0
_LOG_APPEND_TIME: Final = 1

_tuple: Final = tuple.__new__


class RecordMetadata(NamedTuple):
    """Where a record is in the log. Equal to aiokafka's of the same values.

    Attributes:
        topic: Name of the topic.
        partition: Number of the partition.
        topic_partition: Both of them.
    """

    topic: str
    partition: int
    topic_partition: TopicPartition
    offset: int
    """-1 if no broker returned one: with acks=0, and for a record that a broker already had."""
    timestamp: int
    """Milliseconds since 1970."""
    timestamp_type: int
    """0: set by the producer, 1: by the broker."""
    log_start_offset: int
    """The first offset of the partition, -1 if unknown."""


_metadata: Final[Callable[[tuple[Any, ...]], RecordMetadata]] = partial(_tuple, RecordMetadata)


def _same(given: Any) -> Any:
    return given


@dataclass(frozen=True, slots=True)
class Receipts:
    """Creates the results of records' futures."""

    receipt: Callable[[tuple[Any, ...]], Any] = _metadata
    """Makes the result from the values of a ``RecordMetadata``, in its order."""
    partition: Callable[[TopicPartition], Any] = _same
    """Makes ``topic_partition`` for all results of a batch."""
    error: Callable[[Kip848Error], BaseException] = _same
    """Makes the exception to raise from an error."""


class OnItsWay:
    """The records of one batch: future and timestamp of each, by row."""

    __slots__ = ("futures", "times", "tp")

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.futures: list[asyncio.Future[RecordMetadata] | None] = []
        """``None`` for a record without a future."""
        self.times: list[int] = []


class Deliveries:
    """All unfinished batches. After ``end`` there are none, whatever events follow.

    If records fail while no task awaits their futures, one line per partition is logged, instead of
    asyncio's traceback for each. ``is_silent``: log nothing, because the transaction fails with
    them. ``receipts``: see ``Receipts``. ``fields``: added to each log line.
    """

    def __init__(
        self, *, is_silent: bool, receipts: Receipts, fields: Mapping[str, object] | None = None
    ) -> None:
        self.batches: dict[int, OnItsWay] = {}
        self._is_silent = is_silent
        self._receipts = receipts
        self._fields = dict(fields or {})
        self._unheard: dict[tuple[TopicPartition, type], tuple[int, BaseException]] = {}
        """Records that failed in this turn of the event loop and that no task awaits: their number
        by partition and type of error, and the first error."""

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
        """The records of a batch are not in the log, or this is unknown."""
        batch = self.batches.pop(told.batch, None)
        if batch is None:
            return
        made = self._receipts.error
        error = made(told.error)
        for row, future in enumerate(batch.futures):
            culprit = told.culprits.get(row)
            self._fail(batch.tp, future, error if culprit is None else made(culprit))

    def split(self, told: BatchSplit) -> None:
        """The records of a batch are now in other batches."""
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
        """Fail all unfinished records. No results follow."""
        batches = list(self.batches.values())
        self.batches.clear()
        made = self._receipts.error(error)
        for batch in batches:
            for future in batch.futures:
                self._fail(batch.tp, future, made)
        self._tell()

    def _fail(
        self,
        tp: TopicPartition,
        future: asyncio.Future[RecordMetadata] | None,
        error: BaseException,
    ) -> None:
        if future is None or future.done():
            return
        is_awaited = bool(future._callbacks)  # noqa: SLF001 - there is no public way to know
        future.set_exception(error)
        if is_awaited and not self._is_silent:
            return
        future.exception()  # otherwise asyncio logs it as well
        if not self._is_silent:
            if not self._unheard:
                future.get_loop().call_soon(self._tell)
            count, first = self._unheard.get((tp, type(error)), (0, error))
            self._unheard[tp, type(error)] = count + 1, first

    def _tell(self) -> None:
        unheard, self._unheard = self._unheard, {}
        for (tp, _), (count, error) in unheard.items():
            what = "a record" if count == 1 else f"{count} records"
            text = "%s of %s failed, and no task awaits what send() returned: %s: %s"
            fields = {**self._fields, "topic": tp.topic, "partition": tp.partition}
            _log.error(text, what, shown(tp), type(error).__name__, error, extra=fields)
