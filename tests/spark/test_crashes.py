"""Drivers that die, and drivers that are two, on Apache Kafka: each record is there once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kip848_client import Admin, Consumer
from kip848_client.core.types import TopicPartition
from tests.spark import programs
from tests.spark.books import Books, until
from tests.spark.held import FREE, QUERIES
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

EACH = 30
"""Records of each partition: the second batch has the last third."""


def test_a_driver_is_replaced_and_one_is_killed_amid_a_batch(
    spark: SparkSession, books: Books, tmp_path: Path
) -> None:
    asyncio.run(_miss_the_dead_soon(books))
    books.produce(3 * EACH)
    for name in QUERIES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "held").touch()
    program = programs.start(
        "tests.spark.held", books.bootstrap, books.topic, books.group, str(tmp_path)
    )
    try:
        until(lambda: all((tmp_path / name / "reached").exists() for name in QUERIES))

        # a second driver with the checkpoint of the first: one of them ends, and says why
        alone = tmp_path / "alone"
        second = source(spark, books.bootstrap, subscribe=books.topic)
        assert to_parquet(second, alone, availableNow=True).awaitTermination(120)
        assert numbers_in(spark, alone) == list(range(3 * EACH))
        (alone / "held").unlink()
        why = programs.wait_for(program, "ended: ")
        assert re.search("CONCURRENT_STREAM_LOG_UPDATE|Race while writing batch", why), why
        assert numbers_in(spark, alone) == list(range(3 * EACH))
    finally:
        programs.kill(program)

    # the batch that was in hand is another member's in part, when Spark comes back
    assert books.committed() == dict.fromkeys(range(3), FREE)
    asyncio.run(_take_over(books, {0: FREE + 5, 1: EACH}))
    assert books.committed() == {0: FREE + 5, 1: EACH, 2: FREE}
    books.produce(9)
    again = source(spark, books.bootstrap, **books.options())
    assert to_parquet(again, tmp_path / "shared", availableNow=True).awaitTermination(120)
    rows = numbers_in(spark, tmp_path / "shared")
    assert len(books.others) == EACH - FREE + 5
    theirs = [offset * 3 + partition for partition, offset in books.others]
    assert sorted(rows + theirs) == list(range(books.produced)), "overlap, or lost"
    assert books.committed() == dict.fromkeys(range(3), EACH + 3)


async def _miss_the_dead_soon(books: Books) -> None:
    async with Admin(bootstrap_servers=books.bootstrap) as admin:
        await admin.alter_group_configs({books.group: {"consumer.session.timeout.ms": "1500"}})


async def _take_over(books: Books, ends: Mapping[int, int]) -> None:
    """Join when Spark is dead, get all, and work on some of it."""
    consumer: Consumer[Any, Any] = Consumer(
        books.topic,
        bootstrap_servers=books.bootstrap,
        group_id=books.group,
        enable_auto_commit=False,
    )
    async with consumer:
        had: dict[int, int] = {}
        while had != ends:
            for tp, records in (await consumer.getmany(timeout_ms=100)).items():
                for each in records:
                    if each.offset < ends.get(tp.partition, 0):
                        books.others.append((tp.partition, each.offset))
                        had[tp.partition] = each.offset + 1
        await consumer.commit({TopicPartition(books.topic, n): end for n, end in ends.items()})
