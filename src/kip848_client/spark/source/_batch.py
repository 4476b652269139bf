"""A batch query: reads everything between two positions, once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kip848_client.core.partition_names import shown
from kip848_client.errors import ConfigError
from kip848_client.spark._cores import cores
from kip848_client.spark._loop import LoopThread
from kip848_client.spark.source._task_reading import read_partition
from kip848_client.spark.source.core._ranges import OffsetRange
from kip848_client.spark.source.core._slots import divided

if TYPE_CHECKING:
    from kip848_client.spark.source.core._options import SourceOptions

__all__ = ["BatchReader"]


class BatchReader(DataSourceReader):
    """Reads the ranges of the options. Spark pickles it, so it holds only the options."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        """Ask the brokers for the ranges, and divide them among tasks."""
        loop = LoopThread("kip848-spark-plan")
        try:
            ranges, ids = loop.call(_ranges(self._options), self._options.poll_timeout_ms)
        finally:
            loop.close()
        return [InputPartition(each) for each in divided(ranges, self._options, cores(), ids)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Arrow batches of the ranges of one task."""
        return read_partition(partition)


async def _ranges(options: SourceOptions) -> tuple[list[OffsetRange], Mapping[str, str]]:
    """The ranges, and the ids of their topics."""
    from kip848_client.spark.source._cluster import Cluster

    cluster = Cluster(options)
    await cluster.start()
    try:
        seen = await cluster.seen()
        starts = await cluster.places(options.starting, seen)
        ends = await cluster.places(options.ending, seen)
    finally:
        await cluster.stop()
    for tp, start in starts.items():
        if ends[tp] < start:
            raise ConfigError(
                f"{options.ending.option} of {shown(tp)} is {ends[tp]}, "
                f"before {options.starting.option}, {start}"
            )
    ranges = [OffsetRange(tp, start, ends[tp]) for tp, start in sorted(starts.items())]
    return ranges, seen.topic_ids
