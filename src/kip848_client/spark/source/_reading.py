"""A task that reads: from ranges of offsets to Arrow batches.

An executor's Python process runs many tasks, so it keeps its consumer, with open connections, for
the next task with the same settings. The consumer does not join a group.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any, Final

from kip848_client.consumer import Consumer
from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition, format_topic_id
from kip848_client.errors import (
    NoOffsetForPartition,
    OffsetOutOfRange,
    RequestTimedOut,
    TopicGone,
)
from kip848_client.records import RecordBatchView
from kip848_client.records._arrow import pyarrow
from kip848_client.spark._connecting import connected
from kip848_client.spark._loop import LoopThread
from kip848_client.spark.source.core._options import SourceOptions
from kip848_client.spark.source.core._planning import DataLost
from kip848_client.spark.source.core._slots import TaskRanges

__all__ = ["read_ranges"]

_log = logging.getLogger("kip848_client.spark")

_ROWS_MAX: Final = 100_000
"""About the largest Arrow batch. Spark takes any size; this limits memory for any topic."""
_WAIT_MS: Final = 10
"""How long a broker may wait for records (``kafka.fetch.max.wait.ms``). The records of a task
exist, and a fetch beyond its end would delay the next task."""
_TURN_MS: Final = 100
"""How long a call may wait for records before the positions are checked."""


def read_ranges(task: TaskRanges) -> Iterator[Any]:
    """``pyarrow.RecordBatch``es of all records in the ranges, in order for each partition.

    The next batch is fetched while Spark processes this one. Raises ``DataLost`` if records no
    longer exist (unless ``failOnDataLoss=false``), and ``RequestTimedOut`` if no records arrive for
    ``kafkaConsumer.pollTimeoutMs``.
    """
    reading = _Reading(task)
    loop = _loop()
    following = loop.begin(reading.next())
    try:
        while batches := following.result():
            following = loop.begin(reading.next())
            yield from batches
    except Exception:
        loop.begin(_discard(task.options))
        raise
    finally:
        following.cancel()


class _Reading:
    """Reads the ranges of a task. Lives in the loop's thread."""

    def __init__(self, task: TaskRanges) -> None:
        self._options = task.options
        self._topic_ids = task.topic_ids
        self._left = {each.tp: each for each in task.ranges}
        self._at = {each.tp: each.start for each in task.ranges}
        """The next offset by partition."""
        self._consumer: _RangeConsumer | None = None
        self._is_kept = False
        """Whether the consumer is that of an earlier task, and may know deleted topics."""

    async def next(self) -> list[Any]:
        """The next Arrow batches; none when everything was read."""
        if self._consumer is None:
            await self._begin()
        deadline = time.monotonic() + self._options.poll_timeout_ms / 1000
        while self._left and (consumer := self._consumer) is not None:
            try:
                views = await consumer.getbatches(timeout_ms=_TURN_MS, max_records=_ROWS_MAX)
            except (NoOffsetForPartition, TopicGone) as err:
                await self._after(err)
                continue
            if other := consumer.created_again(self._left, self._topic_ids):
                if self._is_kept:
                    await self._renew(f"topic {other} was created again")
                else:
                    self._continue_without(other, "deleted and created again")
                continue
            batches = [batch for view in views.values() if (batch := self._take(view)) is not None]
            if batches:
                return self._together(batches)
            await self._look_for_ends()
            if time.monotonic() > deadline:
                raise self._nothing_came()
        return []

    async def _begin(self) -> None:
        """Assign what is left to the consumer of this process."""
        self._is_kept = _key(self._options) in _kept
        self._consumer = consumer = await _consumer(self._options)
        consumer.assign(self._left)
        for tp in self._left:
            consumer.seek(tp, self._at[tp])
        # An earlier task paused these at its end. Resume only after the seek: a fetch from the end
        # of that task would wait for new records.
        consumer.resume(*self._left)

    async def _renew(self, why: str) -> None:
        """Replace the consumer of an earlier task: it may know a topic that was deleted and created
        again since. A new one knows the topics that exist."""
        _log.info("a new consumer reads this task: %s", why)
        await _discard(self._options)
        await self._begin()

    async def _after(self, err: NoOffsetForPartition | TopicGone) -> None:
        """Handle missing records. The consumer of an earlier task may be wrong about them. Raises
        the error if the consumer is new and nothing explains it."""
        if self._is_kept:
            await self._renew(str(err))
        elif isinstance(err, TopicGone):
            self._continue_without(err.topic, "deleted")
        elif isinstance(err, OffsetOutOfRange):
            self._continue_after(err)
        else:  # the topic was created again while it was read
            raise err

    def _take(self, view: RecordBatchView[Any, Any]) -> Any:
        """The part of a view that is in the range of its partition, if any."""
        wanted = self._left.get(view.tp)
        if wanted is None:
            return None
        self._at[view.tp] = view.next_offset
        batch = view.to_arrow()
        if view.next_offset >= wanted.end:
            batch = batch.slice(0, bisect_left(view.offsets, wanted.end))
            self._finish(view.tp)
        return batch if batch.num_rows else None

    def _finish(self, tp: TopicPartition) -> None:
        del self._left[tp]
        if self._consumer is not None:
            self._consumer.pause(tp)

    async def _look_for_ends(self) -> None:
        """A range may end with offsets without records: transaction markers, compacted records."""
        if self._consumer is None:
            return
        for tp in list(self._left):
            try:
                position = await self._consumer.position(tp)
            except (NoOffsetForPartition, TopicGone) as err:
                await self._after(err)
                return
            if position >= self._left[tp].end:
                self._finish(tp)

    def _continue_after(self, err: OffsetOutOfRange) -> None:
        """Handle records that do not exist (any more)."""
        tp = TopicPartition(err.topic, err.partition)
        wanted = self._left.get(tp)
        if wanted is None:
            return
        if self._options.fails_on_data_loss:
            raise DataLost(
                f"records are lost: {shown(tp)} should be read from {err.offset} to {wanted.end}, "
                f"but has only {err.start} to {err.end}. Set failOnDataLoss=false to continue with "
                "the records that exist."
            ) from err
        _log.warning(
            "%s lost records from %d on: it has %d to %d; continuing with those",
            shown(tp),
            err.offset,
            err.start,
            err.end,
        )
        if self._consumer is not None and err.offset < err.start < wanted.end:
            self._consumer.seek(tp, err.start)
        else:
            self._finish(tp)

    def _continue_without(self, topic: str, what: str) -> None:
        """Continue without a topic that was deleted since the batch was planned."""
        if self._options.fails_on_data_loss:
            raise DataLost(
                f"records are lost: topic {topic} was {what} while it was read. Set "
                "failOnDataLoss=false to continue with the records that exist."
            )
        _log.warning("topic %s was %s while it was read; continuing without it", topic, what)
        for tp in [each for each in self._left if each.topic == topic]:
            self._finish(tp)

    def _together(self, batches: list[Any]) -> list[Any]:
        """Combine small batches of many partitions: each costs Spark as much as a large one."""
        if not self._options.with_headers:
            batches = [each.drop_columns("headers") for each in batches]
        if len(batches) == 1:
            return batches
        pa = pyarrow()
        return list(pa.Table.from_batches(batches).combine_chunks().to_batches())

    def _nothing_came(self) -> RequestTimedOut:
        ranges = sorted(self._left.values())
        left = ", ".join(f"{shown(tp)} up to {end}" for tp, _, end in ranges[:5])
        more = f" and {len(ranges) - 5} more" if len(ranges) > 5 else ""
        return RequestTimedOut(
            f"no records for {self._options.poll_timeout_ms} ms while reading {left}{more}; check "
            "that the leader of the partition is up, or raise kafkaConsumer.pollTimeoutMs"
        )


@cache
def _loop() -> LoopThread:
    return LoopThread("kip848-spark-read")


class _RangeConsumer(Consumer[Any, Any]):
    """The consumer of a process, for one task after another."""

    def created_again(
        self, partitions: Collection[TopicPartition], planned: Mapping[str, str]
    ) -> str | None:
        """A topic of these partitions that is read under another id than it was planned with."""
        for tp in partitions:
            wanted = planned.get(tp.topic)
            found = None if self._engine is None else self._engine.core.topic_id(tp)
            if wanted is not None and found is not None and format_topic_id(found) != wanted:
                return tp.topic
        return None


_kept: dict[tuple[tuple[str, str], ...], _RangeConsumer] = {}


async def _discard(options: SourceOptions) -> None:
    """After a failure: the consumer may be unusable, so the next task gets a new one."""
    found = _kept.pop(_key(options), None)
    if found is not None:
        await found.stop()


def _key(options: SourceOptions) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(options.properties.items()))


async def _consumer(options: SourceOptions) -> _RangeConsumer:
    """The consumer of this process for these settings, started on first use."""
    key = _key(options)
    found = _kept.get(key)
    if found is None:
        settings = options.client_settings()
        settings.pop("group_instance_id", None)
        settings.setdefault("fetch_max_wait_ms", _WAIT_MS)

        def consumer() -> _RangeConsumer:
            return _RangeConsumer(**settings, auto_offset_reset="none", enable_auto_commit=False)

        found = await connected(consumer, "default.api.timeout.ms", options.api_timeout_ms)
        _kept[key] = found
    return found
