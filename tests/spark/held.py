"""A program with two queries, each of which is held in its second batch, for tests that kill it:
``python -m tests.spark.held BOOTSTRAP TOPIC GROUP FOLDER``.

``FOLDER/shared`` and ``FOLDER/alone`` have output and checkpoint of a member of the group and of a
query without one. A task that meets an offset from 20 on writes the file ``reached`` there, and
waits until ``held`` is gone. The end of the second query is told.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.spark.programs import session
from tests.spark.streams import source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["FREE", "QUERIES"]

FREE: Final = 20
"""So many records of a partition are in the first batch."""
QUERIES: Final = ("shared", "alone")
_PAUSE_S: Final = 0.05


def _held(folder: Path) -> Callable[[int], int]:
    def hold(offset: int) -> int:
        if offset >= FREE:
            (folder / "reached").touch()
            while (folder / "held").exists():
                time.sleep(_PAUSE_S)
        return offset

    return hold


def _begin(spark: SparkSession, folder: Path, bootstrap: str, **said: str) -> StreamingQuery:
    from pyspark.sql import functions as F  # noqa: N812 - the name that Spark's users know it by

    frame = source(spark, bootstrap, maxOffsetsPerTrigger=str(3 * FREE), tasks="1", **said)
    held = F.udf(_held(folder), "bigint")("offset").alias("offset")
    rows = frame.select(frame.value.cast("string").alias("value"), "partition", held)
    writer = rows.writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.start(str(folder / "out"))


def _main() -> None:
    bootstrap, topic, group, folder = sys.argv[1:]
    spark = session()
    home = Path(folder)
    member = {"kafka_group_id": group, "ownership": "shared"}
    _begin(spark, home / "shared", bootstrap, subscribe=topic, **member)
    alone = _begin(spark, home / "alone", bootstrap, subscribe=topic)
    try:
        alone.awaitTermination()
    except Exception as err:  # noqa: BLE001  # it is told, whatever it is
        print("ended:", " ".join(str(err).split()))
    signal.pause()


if __name__ == "__main__":
    _main()
