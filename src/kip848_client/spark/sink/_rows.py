"""Rows to write: which columns they may have, and how they become records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    CharType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    VarcharType,
)

from kip848_client.errors import ConfigError
from kip848_client.records._arrow import pyarrow

__all__ = ["Row", "RowRefused", "check_columns", "rows_of"]

_TEXTS: Final = (StringType, CharType, VarcharType)
_COLUMNS: Final = ("topic", "value", "key", "partition", "headers")


class RowRefused(ConfigError):
    """A row cannot be turned into a record."""


class Row(NamedTuple):
    """One row, with the arguments of a producer."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    headers: list[tuple[str, bytes | None]] | None


def check_columns(schema: StructType, topic: str | None) -> None:
    """Check the columns that Spark's own sink uses; all others are ignored, as there. Raises
    ``ConfigError`` if rows of this schema cannot be written."""
    types = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise ConfigError(
            f"column value is missing, got {', '.join(types) or 'no columns'}; it is the value of "
            "the record"
        )
    if topic is None and "topic" not in types:
        raise ConfigError("no topic to write to: set the option topic, or add a column topic")
    for name in ("key", "value"):
        if name in types and not isinstance(types[name], (*_TEXTS, BinaryType)):
            raise _wrong(name, types[name], "string or binary")
    if "topic" in types and not isinstance(types["topic"], _TEXTS):
        raise _wrong("topic", types["topic"], "string")
    if "partition" in types and not isinstance(types["partition"], IntegerType):
        raise _wrong("partition", types["partition"], "int")
    if "headers" in types and not _are_headers(types["headers"]):
        raise _wrong("headers", types["headers"], "array<struct<key:string,value:binary>>")


def _are_headers(found: DataType) -> bool:
    if not isinstance(found, ArrayType) or not isinstance(found.elementType, StructType):
        return False
    fields = found.elementType.fields
    return (
        [each.name for each in fields] == ["key", "value"]
        and isinstance(fields[0].dataType, _TEXTS)
        and isinstance(fields[1].dataType, BinaryType)
    )


def _wrong(name: str, found: DataType, wanted: str) -> ConfigError:
    return ConfigError(f"column {name} must be {wanted}, got {found.simpleString()}; cast it")


def rows_of(batch: Any, topic: str | None) -> Iterator[Row]:
    """The rows of a ``pyarrow.RecordBatch``. Raises ``RowRefused`` for a row without a topic, with
    a header without a key, or with a negative partition."""
    there = batch.schema.names
    columns = {name: batch.column(there.index(name)) for name in _COLUMNS if name in there}
    nothing: list[Any] = [None] * batch.num_rows
    values = _bytes_of(columns["value"])
    keys = _bytes_of(columns["key"]) if "key" in columns else nothing
    topics = [topic] * batch.num_rows if topic is not None else columns["topic"].to_pylist()
    partitions = columns["partition"].to_pylist() if "partition" in columns else nothing
    headers = columns["headers"].to_pylist() if "headers" in columns else nothing
    rows = zip(topics, values, keys, partitions, headers, strict=True)
    for its_topic, value, key, partition, its_headers in rows:
        if its_topic is None:
            raise RowRefused("column topic of a row is null; fill it, or set the option topic")
        if partition is not None and partition < 0:
            raise RowRefused(
                f"a row has partition {partition}; use null to choose the partition by key"
            )
        yield Row(its_topic, value, key, partition, _headers(its_headers))


def _bytes_of(column: Any) -> list[bytes | None]:
    """The column as bytes; strings become UTF-8."""
    found: list[bytes | None] = column.cast(pyarrow().binary()).to_pylist()
    return found


def _headers(found: list[dict[str, Any] | None] | None) -> list[tuple[str, bytes | None]] | None:
    if not found:
        return None
    headers: list[tuple[str, bytes | None]] = []
    for each in found:
        if each is None or each["key"] is None:
            raise RowRefused("a header of a row has no key; omit such headers")
        headers.append((each["key"], each["value"]))
    return headers
