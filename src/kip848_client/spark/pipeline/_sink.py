"""Decodes, transforms and writes each batch of the query."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - everybody's name

from kip848_client.errors import Kip848Error
from kip848_client.spark.pipeline._batches import Ranges
from kip848_client.spark.pipeline._config import PipelineConfig
from kip848_client.spark.pipeline._decode import (
    BAD,
    Decoding,
    bad_records,
    good_only,
    good_or_raise,
)
from kip848_client.spark.pipeline._errors import PipelineFailed
from kip848_client.spark.pipeline._transform import Transform
from kip848_client.spark.pipeline._writing import Batch, RowWriter
from kip848_client.spark.source.core._manifest import Manifest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BatchSink", "rows_of"]

_log = logging.getLogger("kip848_client.spark")

_BAD_ROWS: Final = "bad"


def rows_of(
    frame: DataFrame, config: PipelineConfig, decoding: Decoding, transform: Transform
) -> DataFrame:
    """The rows to write for records of the source, without dead letters."""
    marked = decoding.decoded(frame)
    good = good_or_raise(marked) if config.decode.on_error == "fail" else good_only(marked)
    return transform(good)


class BatchSink:
    """Spark calls it with each batch, in order, and repeats a batch that was interrupted."""

    def __init__(
        self,
        config: PipelineConfig,
        decoding: Decoding,
        transform: Transform,
        rows: RowWriter,
        dead: RowWriter | None,
        in_hand: Callable[[], dict[str, Any]],
        planned: Callable[[int], Manifest],
    ) -> None:
        self._config = config
        self._decoding = decoding
        self._transform = transform
        self._rows = rows
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
        self._rows.output.check_driver()
        batch = Batch(number, *self._ranges(number))
        if self._dead is None:
            rows, bad_rows = self._write_rows(frame, batch)
        else:
            frame.persist()  # it is read twice
            try:
                bad_rows = self._write_dead_letters(self._dead, frame, batch)
                rows = self._write_good_rows(frame, batch)
            finally:
                frame.unpersist()
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

    def _write_rows(self, frame: DataFrame, batch: Batch) -> tuple[int, int]:
        """Write the rows; returns how many, and how many records could not be decoded."""
        records = self._rows.lacking(frame, batch)
        if records is None:
            return 0, 0
        bad, found = Observation(), self._decoding.decoded(records)
        is_counted = self._config.decode.on_error == "drop"
        if is_counted:
            count = F.sum(F.col(BAD).cast("long")).alias(_BAD_ROWS)
            good = good_only(found.observe(bad, count))
        else:
            good = good_or_raise(found)
        rows = self._rows.stage(self._transform(good), batch)
        self._rows.publish(batch, rows, keeps_empty=True)
        return rows, int(bad.get.get(_BAD_ROWS) or 0) if is_counted else 0

    def _write_good_rows(self, frame: DataFrame, batch: Batch) -> int:
        """Write the rows of the records that can be decoded; returns how many."""
        records = self._rows.lacking(frame, batch)
        if records is None:
            return 0
        good = good_only(self._decoding.decoded(records))
        rows = self._rows.stage(self._transform(good), batch)
        self._rows.publish(batch, rows, keeps_empty=True)
        return rows

    def _write_dead_letters(self, dead: RowWriter, frame: DataFrame, batch: Batch) -> int:
        """Write the records that cannot be decoded; returns how many. Without any there is no
        directory."""
        records = dead.lacking(frame, batch)
        if records is None:
            return 0
        rows = dead.stage(bad_records(self._decoding.decoded(records)), batch)
        dead.publish(batch, rows, keeps_empty=False)
        return rows

    def _discard(self, number: int) -> None:
        """Remove incomplete files; if that fails, the next start removes them."""
        for writer in (self._rows, self._dead):
            try:
                if writer is not None:
                    writer.output.discard(number)
            except (OSError, Kip848Error) as err:
                _log.info(
                    "incomplete files of batch %d stay until the next start: %s",
                    number,
                    err,
                )
