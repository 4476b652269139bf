"""The columns of the source: those of Spark's own Kafka source."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kip848_client.errors import ConfigError

__all__ = ["check_schema", "schema_of"]

_COLUMNS: Final = (
    StructField("key", BinaryType()),
    StructField("value", BinaryType()),
    StructField("topic", StringType()),
    StructField("partition", IntegerType()),
    StructField("offset", LongType()),
    StructField("timestamp", TimestampType()),
    StructField("timestampType", IntegerType()),
)
_HEADERS: Final = StructField(
    "headers",
    ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())])),
)


def schema_of(*, with_headers: bool) -> StructType:
    """The schema; ``headers`` is the last column, with ``includeHeaders``."""
    return StructType([*_COLUMNS, _HEADERS] if with_headers else [*_COLUMNS])


def check_schema(said: StructType, *, with_headers: bool) -> None:
    """Raise ``ConfigError`` for any schema but the source's."""
    ours = schema_of(with_headers=with_headers)
    if said != ours:
        raise ConfigError(
            f"format kip848 has a fixed schema, {ours.simpleString()}, got {said.simpleString()}; "
            "omit .schema(...), and select and cast columns instead"
        )
