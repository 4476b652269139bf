"""Queries of the tests."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kip848_client import Admin
from mock_coordinator.threaded import BrokerThread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["committed", "numbers_in", "source", "to_parquet"]


def committed(broker: BrokerThread, group: str) -> int:
    """The sum of the offsets of a group."""

    async def ask() -> int:
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            done = await admin.list_group_offsets(group)
        return sum(each.offset for each in done.values())

    return asyncio.run(ask())


def source(spark: SparkSession, bootstrap: str, **options: str) -> DataFrame:
    """A stream of topic ``a`` from its begin. ``_`` stands for ``.`` in names of options."""
    said = {"kafka.bootstrap.servers": bootstrap, "subscribe": "a", "startingOffsets": "earliest"}
    said |= {name.replace("_", "."): value for name, value in options.items()}
    return spark.readStream.format("kip848").options(**said).load()


def to_parquet(frame: DataFrame, folder: Path, **trigger: str | bool) -> StreamingQuery:
    """Begin to write the values into ``out`` in a folder, with the checkpoint beside it."""
    writer = frame.selectExpr("cast(value as string) value", "partition", "offset").writeStream
    writer = writer.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    chosen: Any = trigger  # its overloads take one of them each
    return writer.trigger(**chosen).start(str(folder / "out"))


def numbers_in(spark: SparkSession, folder: Path) -> list[int]:
    """The numbers that were written, sorted."""
    rows = spark.read.parquet(str(folder / "out")).select("value").collect()
    return sorted(int(row.value) for row in rows)
