"""The writers, as Spark calls them: ``write`` in executors, ``commit`` and ``abort`` in the
driver.

At least once, the rows of a task are visible when the task has written them. Exactly once (with
``kafka.transactional.id``) they are visible when the batch is committed: ``_two_phase_commit``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from kip848_client.spark.sink._running_task import RunningTask, new_run, running_task
from kip848_client.spark.sink.core import _two_phase_commit
from kip848_client.spark.sink.core._transactional_ids import transactional_id
from kip848_client.spark.sink.core._two_phase_commit import Batch, Steps

if TYPE_CHECKING:
    from kip848_client.spark.sink._options import SinkOptions
    from kip848_client.spark.sink._write_task import Prepared

__all__ = ["BatchWriter", "StreamWriter", "Written"]

_log = logging.getLogger("kip848_client.spark")

Messages = Sequence[WriterCommitMessage | None]


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """The result of a task."""

    rows: int
    task: RunningTask | None = None
    """Only for exactly once, like the next field."""
    prepared: Prepared | None = None


class BatchWriter(DataSourceArrowWriter):
    """``df.write``. Spark pickles it for executors, and for the commit."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._run = new_run()

    def write(self, iterator: Iterator[Any]) -> Written:
        """Write the rows of one task."""
        return _write(self._options, self._run, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks have written."""
        _end(self._options, messages, 0, _two_phase_commit.commit)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """A task or the commit has failed."""
        _log.warning("a write has failed; %s", _what_stays(self._options, messages))
        _end(self._options, messages, 0, _two_phase_commit.abort)


class StreamWriter(DataSourceStreamArrowWriter):
    """``df.writeStream``. Spark makes one for the tasks of a batch, which it pickles for executors,
    and another one for its commit."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> Written:
        """Write the rows of one task of a batch."""
        return _write(self._options, None, iterator)

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803  # Spark's name
    ) -> None:
        """All tasks of the batch have written."""
        _end(self._options, messages, batchId, _two_phase_commit.commit)

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803  # Spark's name
    ) -> None:
        """A task or the commit has failed."""
        _log.warning("batch %d has failed; %s", batchId, _what_stays(self._options, messages))
        _end(self._options, messages, batchId, _two_phase_commit.abort)


def _write(options: SinkOptions, run: str | None, batches: Iterator[Any]) -> Written:
    from kip848_client.spark.sink._write_task import write_at_least_once, write_in_transaction

    if options.name is None:
        return Written(write_at_least_once(options, batches))
    task = running_task(run)
    name = transactional_id(options.name, task.run, task.partition, task.attempt)
    prepared = write_in_transaction(options, name, batches)
    rows = 0 if prepared.participant is None else prepared.participant.rows
    return Written(rows, task, prepared)


def _end(
    options: SinkOptions, messages: Messages, number: int, how: Callable[[Batch], Steps]
) -> None:
    """Perform a commit or an abort, for exactly once. Without results of tasks there is nothing to
    do: tasks that fail abort their own transactions."""
    from kip848_client.spark.sink._transaction_committer import carry_out

    results = [each for each in messages if isinstance(each, Written) and each.task is not None]
    if options.name is None or not results:
        return
    task = results[0].task
    assert task is not None, "just looked at"
    prepared = [each.prepared for each in results if each.prepared is not None]
    batch = Batch(
        name=options.name,
        query=task.query,
        number=number,
        run=task.run,
        participants=tuple(
            sorted(each.participant for each in prepared if each.participant is not None)
        ),
        fails_on_data_loss=options.fails_on_data_loss,
    )
    topics = sorted({topic for each in prepared for topic in each.topics})
    carry_out(options, batch, how(batch), topics)


def _what_stays(options: SinkOptions, messages: Messages) -> str:
    if options.name is not None:
        return "its rows are aborted, unless its commit was decided"
    rows = sum(each.rows for each in messages if isinstance(each, Written))
    return f"{rows} rows of successful tasks remain, and a repetition writes them again"
