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
    """Read the events of files of JSON lines. Lines that are not events are left out.

    Args:
        spark: The session.
        *paths: Files and patterns such as ``events/*.jsonl``; anything that Spark reads.

    Returns:
        A frame with the columns of ``FIELDS``.

    Raises:
        PySparkException: A path cannot be read.
    """
    return events_in(spark.read.text(list(paths)))


def events_in(frame: DataFrame) -> DataFrame:
    """Read the events of a frame of lines. Lines that are not events are left out.

    Args:
        frame: A batch or a stream with a column ``value``: what ``format("kip848")`` reads from the
            topic of a ``HistoryTopic``.

    Returns:
        A frame with the columns of ``FIELDS``.

    Raises:
        PySparkException: There is no column ``value``.
    """
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
