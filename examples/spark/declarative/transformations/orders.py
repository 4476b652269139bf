"""From the topic ``orders`` to two tables: every order, and what each customer has spent.

Spark keeps where it is in the storage of the pipeline. The group ``reports`` is told, so that lag
tools see it; nobody else may be a member of it (``ownership=exclusive``, which is right here: the
members of a shared group need to be told of batches by a listener, which such a pipeline has none
of)."""

from __future__ import annotations

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name

spark = SparkSession.active()


@dp.table(name="orders")
def orders() -> DataFrame:
    records = (
        spark.readStream.format("kip848")
        .option("kafka.bootstrap.servers", spark.conf.get("orders.brokers"))
        .option("kafka.group.id", "reports")
        .option("ownership", "exclusive")
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
    )
    order = F.from_json(F.col("value").cast("string"), "id bigint, customer string, amount double")
    return records.select(order.alias("order"), "partition", "offset").select(
        "order.*", "partition", "offset"
    )


@dp.materialized_view(name="spent")
def spent() -> DataFrame:
    return spark.read.table("orders").groupBy("customer").agg(F.sum("amount").alias("amount"))
