"""A task that writes: from rows to records, in an executor's process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, Final

from kip848_client.errors import Kip848Error
from kip848_client.producer import Producer
from kip848_client.producer._prepared import PreparedProducer
from kip848_client.spark._connecting import connected
from kip848_client.spark._loop import LoopThread
from kip848_client.spark.sink._options import SinkOptions
from kip848_client.spark.sink._rows import rows_of
from kip848_client.spark.sink.core._decisions import Participant

__all__ = [
    "Prepared",
    "RowSender",
    "write_at_least_once",
    "write_in_transaction",
    "write_rows",
    "writing_loop",
]

_log = logging.getLogger("kip848_client.spark")


@cache
def writing_loop() -> LoopThread:
    """The event loop of all writing tasks in this process."""
    return LoopThread("kip848-spark-write")


class RowSender:
    """Sends rows with one producer, until one fails. Lives in the loop's thread."""

    def __init__(self, producer: Producer[Any, Any], topic: str | None) -> None:
        self._producer: Final = producer
        self._topic = topic
        self._error: BaseException | None = None
        self.rows = 0
        self.topics: set[str] = set()

    async def send(self, batch: Any) -> None:
        """Send the rows of an Arrow batch. Raises the error of the first row that failed."""
        send = self._producer.send
        for row in rows_of(batch, self._topic):
            if self._error is not None:
                break
            future = await send(row.topic, row.value, row.key, row.partition, None, row.headers)
            future.add_done_callback(self._on_done)
            self.topics.add(row.topic)
            self.rows += 1
        self._check()

    def _on_done(self, future: asyncio.Future[Any]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None and self._error is None:
            self._error = error

    async def finish(self) -> None:
        """Wait until all rows are written. Raises the error of the first row that failed."""
        await self._producer.flush()
        await asyncio.sleep(0)  # callbacks of futures run in the next iteration of the loop
        self._check()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error


def write_rows(sender: RowSender, batches: Iterator[Any]) -> None:
    """Send all rows, and get the next batch from Spark while one is sent. Runs in Spark's thread.
    Raises the error of the first row that failed."""
    loop = writing_loop()
    under_way: Future[None] | None = None
    try:
        for batch in batches:
            if under_way is not None:
                under_way.result()
            under_way = loop.begin(sender.send(batch))
        if under_way is not None:
            under_way.result()
        under_way = loop.begin(sender.finish())
        under_way.result()
    finally:
        if under_way is not None:
            under_way.cancel()


@dataclass(frozen=True, slots=True)
class Prepared:
    """The open transaction of a task."""

    participant: Participant | None
    """``None`` if there were no rows."""
    topics: tuple[str, ...] = ()


def write_in_transaction(
    options: SinkOptions, transactional_id: str, batches: Iterator[Any]
) -> Prepared:
    """Write all rows in one transaction, and leave it open. Aborts it if a row fails, and raises
    the error."""
    loop = writing_loop()
    first = next(batches, None)
    while first is not None and not first.num_rows:
        first = next(batches, None)
    if first is None:
        return Prepared(None)
    producer = loop.begin(_begun(options, transactional_id)).result()
    sender = RowSender(producer, options.topic)
    try:
        write_rows(sender, chain([first], batches))
        found = loop.begin(producer.prepare_transaction()).result()
    except BaseException:
        loop.begin(_abort(producer)).result()
        raise
    participant = Participant(
        found.transactional_id, found.producer_id, found.epoch, found.is_v2, sender.rows
    )
    return Prepared(participant, tuple(sorted(sender.topics)))


async def _begun(options: SinkOptions, transactional_id: str) -> PreparedProducer:
    settings = options.client_settings()
    producer = await connected(
        lambda: PreparedProducer(**settings, transactional_id=transactional_id),
        "max.block.ms",
        options.max_block_ms,
    )
    try:
        await producer.begin_transaction()
    except BaseException:
        await producer.stop(timeout_ms=0)
        raise
    return producer


async def _abort(producer: PreparedProducer) -> None:
    try:
        await producer.abort_transaction()
    except Kip848Error as err:  # the error of the task matters more
        _log.warning("a transaction stays open until it times out: %s", err)
    with suppress(Kip848Error):
        await producer.stop(timeout_ms=0)


def write_at_least_once(options: SinkOptions, batches: Iterator[Any]) -> int:
    """Write all rows; returns how many. A task that fails may have written some rows, and its
    repetition writes them again. Raises the error of the first row that failed."""
    loop = writing_loop()
    sender = RowSender(loop.begin(_producer(options)).result(), options.topic)
    try:
        write_rows(sender, batches)
    except BaseException:
        loop.begin(_discard(options)).result()
        raise
    return sender.rows


_kept: dict[tuple[tuple[str, str], ...], Producer[Any, Any]] = {}


def _key(options: SinkOptions) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(options.properties.items()))


async def _producer(options: SinkOptions) -> Producer[Any, Any]:
    """The producer of this process for these settings; later tasks use it, too."""
    key = _key(options)
    found = _kept.get(key)
    if found is None:
        found = await connected(
            lambda: Producer(**options.client_settings()), "max.block.ms", options.max_block_ms
        )
        _kept[key] = found
    return found


async def _discard(options: SinkOptions) -> None:
    """After a failure: rows of this task that still wait must not be sent by the next task."""
    found = _kept.pop(_key(options), None)
    if found is not None:
        with suppress(Kip848Error):  # the error of the task matters more
            await found.stop(timeout_ms=0)
