"""What docs/how-to/spark.md promises of stops, groups and checkpoints, on Spark and Apache Kafka.

``Promises`` there is the table; the rows that need a crash are in ``test_crashes`` and
``test_hand_over``."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kip848_client import Admin
from tests.spark.books import Books, until
from tests.spark.streams import numbers_in, source, to_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.real_kafka,
    pytest.mark.parametrize("release", ["4.4.0"]),
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

_OWNERSHIPS = pytest.mark.parametrize("ownership", ["exclusive", "shared"])


def _run_between_two_triggers(
    spark: SparkSession, books: Books, folder: Path, **said: str
) -> list[int]:
    """One batch, if there are records, and an orderly stop long before the next trigger."""
    frame = source(spark, books.bootstrap, **books.options(**said))
    query = to_parquet(frame, folder, processingTime="10 minutes")
    try:
        until(lambda: query.lastProgress is not None)
    finally:
        query.stop()
    return numbers_in(spark, folder)


@_OWNERSHIPS
def test_an_orderly_stop_and_start_repeats_nothing(
    spark: SparkSession, books: Books, tmp_path: Path, ownership: str
) -> None:
    for turn in range(3):
        books.produce(60)
        found = _run_between_two_triggers(spark, books, tmp_path, ownership=ownership)
        assert found == list(range(60 * (turn + 1)))
    for _ in range(4):
        found = _run_between_two_triggers(spark, books, tmp_path, ownership=ownership)
        assert found == list(range(180)), "without new records"


@_OWNERSHIPS
def test_a_group_that_is_gone_or_renamed_changes_nothing(
    spark: SparkSession, books: Books, tmp_path: Path, ownership: str
) -> None:
    def run(**said: str) -> list[int]:
        options = books.options(ownership=ownership, **said)
        frame = source(spark, books.bootstrap, **options)
        assert to_parquet(frame, tmp_path, availableNow=True).awaitTermination(120)
        return numbers_in(spark, tmp_path)

    books.produce(60)
    assert run() == list(range(60))
    asyncio.run(_delete(books))
    books.produce(20)
    assert run() == list(range(80))
    assert sum(books.committed().values()) == 80
    books.produce(20)
    other = f"{books.group}-renamed"
    assert run(kafka_group_id=other) == list(range(100))
    assert sum(books.committed(other).values()) == 100


@_OWNERSHIPS
def test_a_checkpoint_that_was_set_back(
    spark: SparkSession, books: Books, tmp_path: Path, ownership: str
) -> None:
    """``exclusive`` continues there; ``shared`` refuses, with both numbers."""
    frame = source(spark, books.bootstrap, **books.options(ownership=ownership))

    def run() -> None:
        query = books.to_batches(frame, "query", availableNow=True)
        try:
            assert query.awaitTermination(120)
        finally:
            query.stop()

    checkpoint = books.folder / "query" / "checkpoint"
    books.produce(30)
    run()
    shutil.copytree(checkpoint, tmp_path / "backup")
    books.produce(30)
    run()
    shutil.rmtree(checkpoint)
    shutil.copytree(tmp_path / "backup", checkpoint)
    shutil.rmtree(books.folder / "query" / "out")
    books.produce(30)
    if ownership == "shared":
        with pytest.raises(Exception, match="the checkpoint was set back, or is a copy"):
            run()
        assert books.rows("query") == []
    else:
        run()
        assert sorted(books.rows("query")) == [(p, at) for p in range(3) for at in range(10, 30)]


async def _delete(books: Books) -> None:
    async with Admin(bootstrap_servers=books.bootstrap) as admin:
        await admin.delete_groups([books.group])
