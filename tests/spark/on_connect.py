"""A client of Spark Connect, which is a process of its own: one has sessions of one kind.
``python -m tests.spark.on_connect sc://HOST:PORT BOOTSTRAP FOLDER`` prints what came of it as JSON;
when that takes too long, where its threads are.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from pyspark.sql import SparkSession

from kip848_client.spark import Pipeline, QueryControl, register
from tests.spark.streams import source, to_parquet

_LATE_S: Final = 0.5
_PATIENCE_S: Final = 200.0


def _batch(spark: SparkSession, bootstrap: str, _folder: Path) -> Any:
    said = {"kafka.bootstrap.servers": bootstrap, "subscribe": "a"}
    return spark.read.format("kip848").options(**said).load().count()


def _stream(spark: SparkSession, bootstrap: str, folder: Path) -> Any:
    member = {"kafka_group_id": "g", "ownership": "shared"}
    frame = source(spark, bootstrap, **member, maxOffsetsPerTrigger="60")
    query = to_parquet(frame, folder / "stream", availableNow=True)
    query.awaitTermination(60)
    rows = spark.read.parquet(str(folder / "stream" / "out")).count()
    return [rows, [each.numInputRows for each in query.recentProgress if each.numInputRows]]


def _write(spark: SparkSession, bootstrap: str, _folder: Path) -> Any:
    to = {"kafka.bootstrap.servers": bootstrap, "kafka.transactional.id": "t", "topic": "b"}
    rows = spark.range(50).selectExpr("cast(id as string) value")
    rows.write.format("kip848").options(**to).mode("append").save()


def _control(spark: SparkSession, bootstrap: str, folder: Path) -> Any:
    """The server is on this machine, as the socket is."""
    path = str(folder / "control")
    frame = source(spark, bootstrap, kafka_group_id="c", ownership="shared", control=path)
    query = to_parquet(frame, folder / "controlled", processingTime="1 hour")
    control = QueryControl(spark, query, path)
    while not query.recentProgress:  # until it has its batch
        query.awaitTermination(1)
    has = control.status()["partitions"]
    with _late(spark):
        control.stop()
    return [has, query.isActive]


@contextmanager
def _late(spark: SparkSession) -> Generator[None]:
    """A busy machine: the client's commands take a while, and events come meanwhile."""
    client: Any = spark.client
    execute = client.execute_command

    def execute_late(*arguments: Any, **said: Any) -> Any:
        time.sleep(_LATE_S)
        return execute(*arguments, **said)

    with patch.object(client, "execute_command", execute_late):
        yield


def _pipeline(spark: SparkSession, bootstrap: str, folder: Path) -> Any:
    settings = {
        "source": {"bootstrap_servers": bootstrap, "topics": ["a"], "group": "p"},
        "sink": {"path": str(folder / "pipeline")},
        "run": {"checkpoint": str(folder / "checkpoint"), "trigger": "available-now"},
    }
    Pipeline(settings, spark=spark).start()


def _wrong(spark: SparkSession, bootstrap: str, _folder: Path) -> Any:
    said = {"kafka.bootstrap.servers": bootstrap, "subscrib": "a"}
    spark.read.format("kip848").options(**said).load().count()


_ALL: tuple[Callable[[SparkSession, str, Path], Any], ...] = (
    _batch,
    _stream,
    _write,
    _control,
    _pipeline,
    _wrong,
)


def _main() -> None:
    faulthandler.dump_traceback_later(_PATIENCE_S, exit=True)
    url, bootstrap, folder = sys.argv[1:]
    spark = SparkSession.builder.remote(url).getOrCreate()
    register(spark)
    said: dict[str, Any] = {}
    for each in _ALL:
        try:
            said[each.__name__.strip("_")] = each(spark, bootstrap, Path(folder))
        except Exception as err:  # noqa: BLE001  # it is what is asked for
            said[each.__name__.strip("_")] = f"{type(err).__name__}: {err}"
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()  # the rest of the patience is for the client's threads to end


if __name__ == "__main__":
    _main()
