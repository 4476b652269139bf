"""Writes the rows of a batch with Spark: to a directory of the batch, or to directories by time."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F  # noqa: N812 - everybody's name
from pyspark.sql.types import (
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline._batches import BatchNote, BatchOutput, Ranges
from kip848_client.spark.pipeline._config import SinkSettings, TimeUnit
from kip848_client.spark.pipeline._taken_over import TakenOver
from kip848_client.spark.pipeline._time_output import TimeOutput
from kip848_client.spark.pipeline.core._written_index import PART, Part

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["Batch", "DirectoryWriter", "RowWriter", "TimeWriter", "check_for_time"]

_ROWS: Final = "rows"
_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
_NEEDED: Final[Mapping[str, tuple[type[DataType], ...]]] = {
    "topic": (StringType,),
    "partition": _WHOLE,
    "offset": _WHOLE,
    "timestamp": (TimestampType,),
}
_DATE: Final = "date"
_HOUR: Final = "hour"
_DAY_US: Final = 86_400_000_000
_HOUR_US: Final = 3_600_000_000
_YEAR_10000_US: Final = 253_402_300_800_000_000
_TOPIC: Final = "__kip848_topic"
_PARTITION: Final = "__kip848_partition"
_START: Final = "__kip848_start"
_END: Final = "__kip848_end"
_PARTS: Final = (PART, _TOPIC, _PARTITION, _START, _END)
_EXCLUDED: Final = "spark.sql.adaptive.optimizer.excludedRules"
_PRUNING: Final = "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation"
OUTSIDE: Final = "kip848: row outside of its batch"
"""How the error for a row that no record of its batch has begins."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of the query, and the offsets in it."""

    number: int
    ranges: Ranges
    topics: Mapping[str, str]
    """The ids of the topics."""


class RowWriter(ABC):
    """Writes batches to one output."""

    settings: SinkSettings | None = None
    """Options and columns; ``None`` for dead letters."""

    @property
    @abstractmethod
    def output(self) -> TakenOver:
        """The directory."""

    @abstractmethod
    def lacking(self, records: DataFrame, batch: Batch) -> DataFrame | None:
        """The records of a batch that the output does not have; ``None`` without any."""

    @abstractmethod
    def stage(self, rows: DataFrame, batch: Batch) -> int:
        """Write rows to the staging directory; returns how many."""

    @abstractmethod
    def publish(self, batch: Batch, rows: int, *, keeps_empty: bool) -> None:
        """Show the staged rows to readers. ``keeps_empty``: also a batch without rows."""

    def _write(
        self, rows: DataFrame, number: int, columns: Sequence[str], options: Mapping[str, str]
    ) -> None:
        given = {} if self.settings is None else self.settings.options
        writer = rows.write.mode("overwrite").options(**given, **options)
        if columns:
            writer = writer.partitionBy(*columns)
        writer.parquet(self.output.staged(number))

    @property
    def _columns(self) -> tuple[str, ...]:
        return () if self.settings is None else self.settings.partition_by


class DirectoryWriter(RowWriter):
    """One directory per batch."""

    def __init__(self, output: BatchOutput) -> None:
        self._output = output

    @property
    def output(self) -> BatchOutput:
        """The directory."""
        return self._output

    def lacking(self, records: DataFrame, batch: Batch) -> DataFrame:
        """All: the batch replaces an earlier attempt."""
        del batch
        return records

    def stage(self, rows: DataFrame, batch: Batch) -> int:
        """Write all rows."""
        seen = Observation()
        rows = rows.observe(seen, F.count(F.lit(1)).alias(_ROWS))
        self._write(rows, batch.number, self._columns, {})
        return int(seen.get[_ROWS])

    def publish(self, batch: Batch, rows: int, *, keeps_empty: bool) -> None:
        """Rename the directory; an earlier attempt goes."""
        if rows or keeps_empty:
            self.output.publish(BatchNote(batch.number, rows, batch.ranges, batch.topics))
        else:
            self.output.discard(batch.number)
            self.output.withdraw(batch.number)


class TimeWriter(RowWriter):
    """Directories by the time of the record, files by topic, partition and first offset."""

    def __init__(self, output: TimeOutput, unit: TimeUnit) -> None:
        self._output = output
        self._unit: TimeUnit = unit
        self._parts: Sequence[Part] = ()
        """Of the current batch."""

    @property
    def output(self) -> TimeOutput:
        """The directory."""
        return self._output

    def lacking(self, records: DataFrame, batch: Batch) -> DataFrame | None:
        """The records with offsets that are not written yet."""
        self._parts = self.output.lacking(batch.ranges, batch.topics)
        planned = sum(end - start for each in batch.ranges.values() for start, end in each.values())
        missing = sum(part.end - part.start for part in self._parts)
        if not missing:
            return None
        if missing == planned:
            return records
        wanted = _table_of(records, self._parts)
        return records.join(F.broadcast(wanted), _same(records, wanted), "left_semi")

    def stage(self, rows: DataFrame, batch: Batch) -> int:
        """Write all rows, one file per part and time."""
        parts = _table_of(rows, self._parts)
        known = rows.join(F.broadcast(parts), _same(rows, parts), "left")
        outside = F.concat_ws(
            " ",
            F.lit(f"{OUTSIDE}:"),
            *(rows[each].cast("string") for each in ("topic", "partition", "offset")),
        )
        times = _times(rows["timestamp"], self._unit)
        found = known.withColumns(
            {**times, PART: F.coalesce(F.col(PART), F.raise_error(outside).cast("int"))}
        ).drop(_TOPIC, _PARTITION, _START, _END)
        _keep_observations(rows.sparkSession)
        seen = Observation()
        found = found.observe(seen, F.count(F.lit(1)).alias(_ROWS))
        folders = [*times, *self._columns, PART]
        ordered = found.repartition(*folders).sortWithinPartitions(*folders, "offset")
        self._write(ordered, batch.number, folders, {"maxRecordsPerFile": "0"})
        return int(seen.get[_ROWS])

    def publish(self, batch: Batch, rows: int, *, keeps_empty: bool) -> None:
        """Rename the files; those of an interrupted attempt are gone."""
        del rows, keeps_empty
        self.output.publish(batch.number, self._parts, batch.topics)


def check_for_time(schema: StructType, unit: TimeUnit) -> None:
    """Check that rows can be written by time. Raises ``ConfigError``."""
    types = {each.name: each.dataType for each in schema.fields}
    for name, accepted in _NEEDED.items():
        if not isinstance(types.get(name), accepted):
            has = f"has the type {types[name].simpleString()}" if name in types else "is missing"
            raise ConfigError(
                "sink.partition_by_time needs the columns topic, partition, offset and timestamp "
                f"of the records in the rows, but {name} {has}: return them unchanged from the "
                "transform"
            )
    taken = [name for name in types if name.lower() in (*_names(unit), PART)]
    if taken:
        raise ConfigError(
            f"the rows have a column {taken[0]!r}, which sink.partition_by_time adds: rename it in "
            "the transform"
        )


def _keep_observations(session: SparkSession) -> None:
    """Spark replaces the plan of a shuffle without rows by an empty one, and what was observed
    below it is lost. The session is the query's own."""
    known = session.conf.get(_EXCLUDED, "") or ""
    if _PRUNING not in known:
        session.conf.set(_EXCLUDED, ",".join(each for each in (known, _PRUNING) if each))


def _names(unit: TimeUnit) -> tuple[str, ...]:
    return (_DATE,) if unit == "day" else (_DATE, _HOUR)


def _times(timestamp: Column, unit: TimeUnit) -> dict[str, Column]:
    """Date and hour in UTC, whatever the session's time zone; null without a time, and for one
    before 1970 or after 9999, which readers of directories cannot parse."""
    us = F.unix_micros(timestamp)
    is_fine = us.between(0, _YEAR_10000_US - 1)
    day = F.floor(us / F.lit(_DAY_US)).cast("int")
    date = F.date_add(F.lit("1970-01-01").cast("date"), day).cast("string")
    hour = F.lpad((F.floor(us / F.lit(_HOUR_US)) % 24).cast("string"), 2, "0")
    found = {_DATE: F.when(is_fine, date), _HOUR: F.when(is_fine, hour)}
    return {name: found[name] for name in _names(unit)}


def _table_of(frame: DataFrame, parts: Sequence[Part]) -> DataFrame:
    rows = [dict(zip(_PARTS, (number, *part), strict=True)) for number, part in enumerate(parts)]
    kinds = ("int", "string", "int", "bigint", "bigint")
    fields = ",".join(f"{name}:{kind}" for name, kind in zip(_PARTS, kinds, strict=True))
    table = F.from_json(F.lit(json.dumps(rows)), f"array<struct<{fields}>>")
    return frame.sparkSession.range(1).select(F.inline(table))


def _same(rows: DataFrame, parts: DataFrame) -> Column:
    return (
        (rows["topic"] == parts[_TOPIC])
        & (rows["partition"] == parts[_PARTITION])
        & (rows["offset"] >= parts[_START])
        & (rows["offset"] < parts[_END])
    )
