"""Queries that begin again on a topic that is not what it was, on Apache Kafka."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kip848_client import Admin
from kip848_client.core.wire import api_named
from kip848_client.core.wire.messages.delete_records import (
    DeleteRecordsRequestDeleteRecordsPartition,
    DeleteRecordsRequestDeleteRecordsTopic,
)
from tests.spark.books import PARTITIONS, Books
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


@pytest.mark.parametrize("ownership", ["shared", "exclusive"])
def test_it_goes_on_or_says_what_is_lost(
    spark: SparkSession, books: Books, tmp_path: Path, ownership: str
) -> None:
    def run(**said: str) -> list[int]:
        frame = source(spark, books.bootstrap, **books.options(ownership=ownership, **said))
        assert to_parquet(frame, tmp_path, availableNow=True).awaitTermination(120)
        return numbers_in(spark, tmp_path)

    books.produce(60)
    assert run() == list(range(60))

    # more partitions
    asyncio.run(_grow(books, PARTITIONS + 2))
    books.kafka.await_topic(books.topic, PARTITIONS + 2)
    books.produce(50, PARTITIONS + 2)
    assert run() == list(range(110))
    assert sum(books.committed().values()) == 110

    # Spark died after its file sink had the batch, and before the log of commits
    commits = tmp_path / "checkpoint" / "commits"
    last = max(int(each.name) for each in commits.iterdir() if each.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)
    assert run() == list(range(110))
    assert (commits / f"{last}").exists(), "the batch was not repeated"
    assert sum(books.committed().values()) == 110

    # retention was faster
    at = books.committed()[0]
    books.produce(50, PARTITIONS + 2)
    _delete_records(books, 0, at + 4)
    with pytest.raises(Exception, match=f"{books.topic}-0 should be read from {at} but starts at"):
        run()
    assert sum(books.committed().values()) == 110
    gone = [number for number in range(110, 160) if number % 5 == 0][:4]
    assert run(failOnDataLoss="false") == sorted(set(range(160)) - set(gone))
    assert sum(books.committed().values()) == 160


async def _grow(books: Books, total: int) -> None:
    async with Admin(bootstrap_servers=books.bootstrap) as admin:
        await admin.create_partitions({books.topic: total})


def _delete_records(books: Books, partition: int, before: int) -> None:
    """As retention does."""
    part = DeleteRecordsRequestDeleteRecordsPartition(partition_index=partition, offset=before)
    topic = DeleteRecordsRequestDeleteRecordsTopic(name=books.topic, partitions=(part,))
    request = api_named("DeleteRecords").request(topics=(topic,), timeout_ms=10_000)
    with books.kafka.connect() as connection:
        answer = connection.request(request, 2)
    assert answer.topics[0].partitions[0].error_code == 0, answer
