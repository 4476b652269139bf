"""The views and tables, one after the other."""

from __future__ import annotations

from importlib.resources import files
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from kip848_client.history.core import SLA_MS, TABLES

__all__ = ["tables_of"]

_VIEWS: Final = ("on_one_clock", "own_members", "seen_events", "tenures")
_EVENTS: Final = "history_events"


def tables_of(
    spark: SparkSession, events: DataFrame, *, sla_ms: int = SLA_MS
) -> dict[str, DataFrame]:
    """Make the tables of ``kip848_client.history.TABLES`` in SQL.

    Each is computed when an action needs it.

    Args:
        spark: The session.
        events: A batch, as from ``events_of``, or read from Parquet.
        sla_ms: How soon a heartbeat is to be answered, in milliseconds.

    Returns:
        The tables by name.

    Raises:
        PySparkException: ``events`` lacks a column.
    """
    mark = uuid4().hex[:8]  # a session may have several histories
    names = {_EVENTS: f"{_EVENTS}_{mark}"}
    events.createOrReplaceTempView(names[_EVENTS])
    for view in _VIEWS:
        names[view] = f"{view}_{mark}"
        spark.sql(_query(view, names)).createOrReplaceTempView(names[view])
    return {table: _table(spark, table, names, sla_ms) for table in TABLES}


def _table(spark: SparkSession, table: str, names: dict[str, str], sla_ms: int) -> DataFrame:
    query = _query(table, names)
    found = spark.sql(query, {"sla_ms": sla_ms}) if ":sla_ms" in query else spark.sql(query)
    columns = (f"CAST({each.name} AS {_SQL[each.type]})" for each in TABLES[table])
    return found.selectExpr(*columns)


_SQL: Final = {"string": "STRING", "long": "BIGINT"}


def _query(name: str, names: dict[str, str]) -> str:
    """The text of a file, with the views of this history in place of their names."""
    text = (files("kip848_client.spark.history") / "sql" / f"{name}.sql").read_text(
        encoding="utf-8"
    )
    for view, own in names.items():
        for before in ("FROM", "JOIN"):
            text = text.replace(f"{before} {view}", f"{before} {own}")
    return text
