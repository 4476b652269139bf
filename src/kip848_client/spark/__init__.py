"""Spark: Kafka topics as tables and streams, by the data source ``kip848``.

    from kip848_client.spark import register

    register(spark)
    frame = spark.readStream.format("kip848").options(...).load()

Needs the extra ``spark`` (pyspark 4.2 or later, pyarrow) and Java 17.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kip848_client.spark._archive import ship, write_archive
    from kip848_client.spark.control._group_offsets import GroupOffsets
    from kip848_client.spark.control._query_control import QueryControl
    from kip848_client.spark.pipeline import Pipeline

__all__ = ["GroupOffsets", "Pipeline", "QueryControl", "register", "ship", "write_archive"]

_WHERE: Final = {
    "GroupOffsets": "control._group_offsets",
    "Pipeline": "pipeline",
    "QueryControl": "control._query_control",
    "ship": "_archive",
    "write_archive": "_archive",
}
"""Imported on first use: they import pyspark, or are rarely needed."""


def register(spark: SparkSession) -> None:
    """Register the format ``kip848`` in a session.

    Spark finds it without this call where the package is installed.

    Args:
        spark: The session.

    Raises:
        ImportError: pyspark is missing or older than 4.2.
    """
    from kip848_client.spark._data_source import Kip848DataSource

    spark.dataSource.register(Kip848DataSource)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
