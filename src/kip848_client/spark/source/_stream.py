"""A streaming query, as Spark calls it.

Spark calls from one thread and waits: each method asks the brokers in an event loop in another
thread, with a deadline. The first call that needs brokers connects, not the constructor, because
Spark makes and pickles several readers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kip848_client.spark._cores import cores
from kip848_client.spark.source._signals import leave_when_terminated
from kip848_client.spark.source._task_reading import read_partition
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._ranges import OffsetRange
from kip848_client.spark.source.core._slots import divided

if TYPE_CHECKING:
    from kip848_client.spark.source._source_driver import SourceDriver
    from kip848_client.spark.source.core._options import SourceOptions

__all__ = ["StreamReader"]

_log = logging.getLogger("kip848_client.spark")


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The methods that Spark calls. ``SourceDriver`` answers."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._driver: SourceDriver | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Executors get only the options."""
        return {"_options": self._options, "_driver": None}

    def _run(self) -> SourceDriver:
        if self._driver is None:
            from kip848_client.spark.source._source_driver import SourceDriver

            self._driver = SourceDriver(self._options)
            leave_when_terminated(self._driver.close)
        return self._driver

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name
        """``maxOffsetsPerTrigger``."""
        limit = self._options.limit
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """Read only the records that exist now."""
        self._run().stop_at_what_is_there()

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """The offsets at which a query without a checkpoint starts."""
        return self._run().first().to_json()

    def latestOffset(  # noqa: N802  # Spark's name
        self, start: dict[str, Any], limit: ReadLimit
    ) -> dict[str, Any]:
        """The next batch; ``start`` itself if there is nothing to read. ``start`` is done: Spark
        calls this when the batch before is in its commit log."""
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        before = Manifest.of(start)
        after = self._run().next(before, most)
        return start if after is before else after.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802  # Spark's name
        """The last known ends of the partitions, which Spark shows in its progress."""
        if self._driver is None:
            return None
        return self._driver.ends()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch, which ``end`` describes completely."""
        del start
        planned = Manifest.of(end)
        found = self._run().batch(planned)
        ranges = [OffsetRange(tp, *span) for tp, span in sorted(found.items())]
        tasks = divided(ranges, self._options, cores(), planned.topic_ids)
        return [InputPartition(each) for each in tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Arrow batches of the ranges of one task."""
        return read_partition(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark has committed the batch. Offsets are committed to the group in ``latestOffset``,
        which Spark calls after the last batch, too."""

    def stop(self) -> None:
        """The query is over."""
        if self._driver is not None:
            self._driver.close()
