"""What a task of a batch query or of a stream reads: the partition that Spark hands to ``read``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import InputPartition

__all__ = ["read_partition"]


def read_partition(partition: InputPartition) -> Iterator[Any]:
    """``pyarrow.RecordBatch``es of the ranges of one task. Raises what ``read_ranges`` raises.

    For a plan without partitions Spark makes up one, ``InputPartition(None)``: it has no rows.
    """
    if partition.value is None:
        return iter(())
    from kip848_client.spark._reading import read_ranges

    return read_ranges(partition.value)
