"""Reads a topic by the format's name. Nobody registers it: Spark finds ``pyspark_kip848``."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from mock_coordinator.threaded import BrokerThread

__all__: list[str] = []


def main() -> None:
    """End with an error unless the records are read."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    try:
        with BrokerThread({"orders": 1}) as broker:
            broker.produce("orders", b"1", b"2", b"3")
            reader = spark.read.format("kip848")
            options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "orders"}
            rows = reader.options(**options).load().select("value").collect()
    finally:
        spark.stop()
    assert [bytes(row.value) for row in rows] == [b"1", b"2", b"3"], rows


if __name__ == "__main__":
    main()
