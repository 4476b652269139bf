# %% [markdown]
# # A topic in a notebook
# Run the cells one after the other: in Jupyter (with jupytext), VS Code or PyCharm. The broker is
# the bundled one, so that `pip install '.[spark]'` and Java 17 is all that is needed.

# %% A broker with some orders. For yours: bootstrap = "localhost:9092", and no broker.
import json

from mock_coordinator.threaded import BrokerThread

broker = BrokerThread({"orders": 3}).__enter__()
bootstrap = broker.bootstrap
for number in range(300):
    order = {"id": number, "customer": f"c{number % 7}", "amount": number / 10}
    broker.produce("orders", json.dumps(order).encode(), partition=number % 3)

# %% Spark, in this process. The format is known by itself.
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

spark = SparkSession.builder.master("local[2]").getOrCreate()

# %% The topic as a table: look at it
records = (
    spark.read.format("kip848")
    .option("kafka.bootstrap.servers", bootstrap)
    .option("subscribe", "orders")
    .load()
)
records.selectExpr("cast(value as string) value", "partition", "offset").show(3, truncate=False)

# %% The pipeline that shall do so always, as a member of the group "billing"
import tempfile

from kip848_client.spark import Pipeline

folder = tempfile.mkdtemp()
settings = {
    "source": {"bootstrap_servers": bootstrap, "topics": ["orders"], "group": "billing"},
    "decode": {"format": "json", "columns": "id bigint, customer string, amount double"},
    "transform": {"sql": "select value.*, partition, offset from records"},
    "sink": {"path": f"{folder}/orders"},
    "run": {"checkpoint": f"{folder}/checkpoint", "trigger": "1 second"},
}
running = Pipeline(settings, spark=spark).start()

# %% It runs beside the notebook. Run this cell again to see how far it is.
running.wait(timeout_s=5)
running.status()

# %% Finish the batch in hand, commit, leave the group: the next start goes on there.
running.stop()
print(running.status().rows, "rows written")

# %% What was written
orders = spark.read.parquet(f"{folder}/orders")
orders.groupBy("customer").agg(F.sum("amount").alias("amount")).orderBy("customer").show()

# %% Done
broker.__exit__(None, None, None)
