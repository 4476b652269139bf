"""The writers, as Spark calls them: ``write`` in executors, ``commit`` and ``abort`` in the
driver."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from kip848_client.spark._pouring import write_at_least_once
from kip848_client.spark._sink_options import SinkOptions

__all__ = ["BatchWriter", "StreamWriter", "Written"]

_log = logging.getLogger("kip848_client.spark")


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What a task has written."""

    rows: int


class BatchWriter(DataSourceArrowWriter):
    """``df.write``. Spark pickles it: it holds options alone."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> Written:
        """Write the rows of one task."""
        return Written(write_at_least_once(self._options, iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks have written."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """A task has failed: what others wrote stays."""
        _log.warning("a write has failed; %s", _what_stays(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """``df.writeStream``. Spark makes one for each batch, and pickles it."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[Any]) -> Written:
        """Write the rows of one task of a batch."""
        return Written(write_at_least_once(self._options, iterator))

    def commit(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803  # Spark's name
    ) -> None:
        """All tasks of the batch have written."""

    def abort(
        self,
        messages: list[WriterCommitMessage | None],
        batchId: int,  # noqa: N803  # Spark's name
    ) -> None:
        """A task has failed: what others wrote stays, and comes again with the batch."""
        _log.warning("batch %d was not written; %s", batchId, _what_stays(messages))


def _what_stays(messages: list[WriterCommitMessage | None]) -> str:
    rows = sum(each.rows for each in messages if isinstance(each, Written))
    return f"{rows} rows of tasks that did not fail stay, and are written again with a repetition"
