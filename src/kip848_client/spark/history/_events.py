"""Events as columns: from lines of JSON, in files or in a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know it by
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from kip848_client.history.core import FIELDS, LINE_BYTES_MAX, SCHEMA, Role

__all__ = ["events_in", "events_of"]

_TYPES: Final[Mapping[str, DataType]] = {
    "string": StringType(),
    "long": LongType(),
    "partitions": ArrayType(
        StructType(
            [
                StructField("topic", StringType()),
                StructField("partitions", ArrayType(LongType())),
            ]
        )
    ),
}
_CORRUPT: Final = "_corrupt"
_EVENT: Final = StructType(
    [
        *(StructField(field.name, _TYPES[field.type]) for field in FIELDS),
        StructField(_CORRUPT, StringType()),
    ]
)
_NUMBER_MAX: Final = (1 << 53) - 1
_WHOLE: Final = """
    partitions IS NULL OR NOT exists(partitions, row -> row IS NULL OR row.topic IS NULL
        OR row.partitions IS NULL OR exists(row.partitions, each -> each IS NULL))"""


def events_of(spark: SparkSession, *paths: str) -> DataFrame:
    """The events of files of JSON lines (patterns such as ``events/*.jsonl``, anything that Spark
    reads). Lines that are no events are left out, as torn ones are."""
    return events_in(spark.read.text(list(paths)))


def events_in(frame: DataFrame) -> DataFrame:
    """The events of a frame with a column ``value`` of lines, batch or stream: what
    ``format("kip848")`` gives of a topic that a ``HistoryTopic`` has written."""
    line = F.col("value").cast("string")
    read = F.from_json(line, _EVENT, {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"})
    found = frame.where(F.octet_length(line) <= LINE_BYTES_MAX).select(read.alias("event"))
    events = found.where(F.col(f"event.{_CORRUPT}").isNull()).select("event.*").drop(_CORRUPT)
    for field in FIELDS:
        if field.required:
            events = events.where(F.col(field.name).isNotNull())
    for name in ("time_ms", "duration_ms", "seq", "count"):
        in_range = F.col(name).between(0, _NUMBER_MAX)
        events = events.where(F.col(name).isNull() | in_range)
    events = events.where(F.col("schema") == SCHEMA).where(F.expr(_WHOLE))
    return events.where(F.col("role").isin([role.value for role in Role]))
