"""Writes each batch to a directory of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - everybody's name

from kip848_client.errors import Kip848Error
from kip848_client.spark.pipeline._batches import BatchNote, BatchOutput, Ranges
from kip848_client.spark.pipeline._config import PipelineConfig
from kip848_client.spark.pipeline._decode import (
    BAD,
    bad_records,
    decoded,
    good_only,
    good_or_raise,
)
from kip848_client.spark.pipeline._errors import PipelineFailed
from kip848_client.spark.pipeline._transform import Transform
from kip848_client.spark.source.core._manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BatchSink", "rows_of"]

_log = logging.getLogger("kip848_client.spark")

_ROWS: Final = "rows"
_BAD_ROWS: Final = "bad"


def rows_of(frame: DataFrame, config: PipelineConfig, transform: Transform) -> DataFrame:
    """The rows to write for records of the source, without dead letters."""
    marked = decoded(frame, config.decode)
    good = good_or_raise(marked) if config.decode.on_error == "fail" else good_only(marked)
    return transform(good)


class BatchSink:
    """Spark calls it with each batch, in order, and repeats a batch that was interrupted."""

    def __init__(
        self,
        config: PipelineConfig,
        transform: Transform,
        output: BatchOutput,
        dead: BatchOutput | None,
        in_hand: Callable[[], dict[str, Any]],
        planned: Callable[[int], Manifest],
    ) -> None:
        self._config = config
        self._transform = transform
        self._output = output
        self._dead = dead
        self._in_hand = in_hand
        """Returns the source's status, with the batch that Spark is processing."""
        self._planned = planned
        """Returns the plan of a batch from Spark's checkpoint."""
        self.rows = 0
        """Rows written since the start."""
        self.bad = 0
        """Records that could not be decoded, since the start."""
        self.error: Exception | None = None
        """The error of a batch; Spark has it only as a text of many lines."""

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Write a complete batch, or raise and leave the output as it was."""
        try:
            self._write(frame, number)
        except Exception as err:
            self.error = err
            self._discard(number)
            raise

    def _write(self, frame: DataFrame, number: int) -> None:
        self._output.check_driver()
        ranges, topics = self._ranges(number)
        if self._dead is None:
            bad, found = Observation(), decoded(frame, self._config.decode)
            if self._config.decode.on_error == "fail":
                good = good_or_raise(found)
            else:
                count = F.sum(F.col(BAD).cast("long")).alias(_BAD_ROWS)
                good = good_only(found.observe(bad, count))
            rows = self._stage(good, number)
            is_counted = self._config.decode.on_error == "drop"
            bad_rows = int(bad.get.get(_BAD_ROWS) or 0) if is_counted else 0
        else:
            frame.persist()  # it is read twice
            try:
                found = decoded(frame, self._config.decode)
                bad_rows = self._write_dead_letters(bad_records(found), number, ranges, topics)
                rows = self._stage(good_only(found), number)
            finally:
                frame.unpersist()
        self._output.publish(BatchNote(number, rows, ranges, topics))
        self.rows += rows
        self.bad += bad_rows

    def _ranges(self, number: int) -> tuple[Ranges, dict[str, str]]:
        """The offsets of the batch. A member's batch may have fewer than planned when it is
        repeated. Spark's own source does not provide them, and repeats exactly what it planned."""
        if self._config.source.engine == "jvm":
            return {}, {}
        planned = self._planned(number)
        if not planned.size:  # the first batch of a query, when there was nothing to read
            return {}, {}
        said = self._in_hand().get("ranges")
        if said is None or said["number"] != planned.number:
            has = "none" if said is None else f"number {said['number']}"
            raise PipelineFailed(
                f"Spark writes batch {number} (number {planned.number} of the source), but the "
                f"current batch of the source is {has}: it was stopped meanwhile. The batch is "
                "repeated at the next start"
            )
        return said["ranges"], said["topics"]

    def _stage(self, good: DataFrame, number: int) -> int:
        """Write the rows to the staging directory; returns how many."""
        sink = self._config.sink
        seen = Observation()
        rows = self._transform(good).observe(seen, F.count(F.lit(1)).alias(_ROWS))
        writer = rows.write.mode("overwrite").options(**sink.options)
        if sink.partition_by:
            writer = writer.partitionBy(*sink.partition_by)
        writer.parquet(self._output.staged(number))
        return int(seen.get[_ROWS])

    def _write_dead_letters(
        self, bad: DataFrame, number: int, ranges: Ranges, topics: dict[str, str]
    ) -> int:
        """Write the records that cannot be decoded; returns how many. Without any there is no
        directory."""
        assert self._dead is not None
        seen = Observation()
        staged = self._dead.staged(number)
        bad.observe(seen, F.count(F.lit(1)).alias(_ROWS)).write.mode("overwrite").parquet(staged)
        rows = int(seen.get[_ROWS])
        if rows:
            self._dead.publish(BatchNote(number, rows, ranges, topics))
        else:
            self._dead.discard(number)
            self._dead.withdraw(number)
        return rows

    def _discard(self, number: int) -> None:
        """Remove incomplete files; if that fails, the next start removes them."""
        for output in (self._output, self._dead):
            try:
                if output is not None:
                    output.discard(number)
            except (OSError, Kip848Error) as err:
                _log.info(
                    "incomplete files of batch %d stay until the next start: %s",
                    number,
                    err,
                )
