"""The jars of Spark's own Kafka source and of its Avro functions, resolved with Maven as Kafka's.

They are taken one by one: not all that they name is published everywhere, and none of the rest is
needed. ``ADD JAR`` makes them known to a session that runs already.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support.kafka_jars import chosen_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["add_avro", "add_kafka_source", "kafka_source_jars"]

_ARTIFACTS: Final = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.0",
)
"""Those of 4.2.0 serve Spark 4.2 and 4.3. A newer provider of tokens is not published."""
_AVRO: Final = ("org.apache.spark:spark-avro_2.13:4.1.1",)
"""It serves Spark 4.2 and 4.3, too. Newer ones, and Protobuf's, are not published everywhere."""


def kafka_source_jars() -> list[Path]:
    """The jars of ``format("kafka")``. Raises ``KafkaUnavailableError``."""
    return chosen_jars("spark-kafka-source", _ARTIFACTS)


def add_kafka_source(spark: SparkSession) -> None:
    """Let a session know ``format("kafka")``. Raises ``KafkaUnavailableError``."""
    for jar in kafka_source_jars():
        spark.sql(f"ADD JAR '{jar}'")


def add_avro(spark: SparkSession) -> None:
    """Let a session know ``from_avro``. Raises ``KafkaUnavailableError``."""
    for jar in chosen_jars("spark-avro", _AVRO):
        spark.sql(f"ADD JAR '{jar}'")
