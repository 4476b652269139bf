"""The history of groups with Spark: events to Parquet, and four tables from them by SQL.

    events = events_of(spark, "events/*.jsonl")     # or events_in(frame): a column of lines
    events.write.mode("append").parquet("history")
    tables = tables_of(spark, spark.read.parquet("history"))
    tables["partition_downtime"].show()

The SQL is in this folder, one file per view or table; ``kip848_client.history.core`` computes the
same in Python, and documents each column.
"""

from __future__ import annotations

from kip848_client.spark.history._events import events_in, events_of
from kip848_client.spark.history._tables import tables_of

__all__ = ["events_in", "events_of", "tables_of"]
