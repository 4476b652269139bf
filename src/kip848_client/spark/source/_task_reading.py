"""Reads the partition that Spark passes to ``read``, in a task of a batch query or a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import InputPartition

__all__ = ["read_partition"]


def read_partition(partition: InputPartition) -> Iterator[Any]:
    """``pyarrow.RecordBatch``es of the ranges of one task. Raises what ``read_ranges`` raises.

    For a plan without partitions Spark creates one, ``InputPartition(None)``, which has no rows.
    """
    if partition.value is None:
        return iter(())
    from kip848_client.spark.source._reading import read_ranges

    return read_ranges(partition.value)
