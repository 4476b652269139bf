"""A query of Spark and other members of its group, on Apache Kafka: each record has one reader."""

from __future__ import annotations

import asyncio
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from kip848_client import Consumer
from tests.spark.books import Books, until
from tests.spark.streams import source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kip848_client.spark import QueryControl
pytestmark = [
    pytest.mark.real_kafka,
    pytest.mark.parametrize("release", ["4.4.0"]),
    pytest.mark.timeout(300),
    # Spark's own: sockets to its JVM are closed by the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

IDLE = "nothing is in hand"
BUSY = "a batch is in hand"
TRIGGER = "the next trigger is far away"
CHANNEL = "the next trigger is further away, and there is a control channel"


@pytest.mark.parametrize("variant", [IDLE, BUSY, TRIGGER, CHANNEL])
def test_a_plain_consumer_joins_and_leaves(
    spark: SparkSession, books: Books, variant: str, tmp_path: Path
) -> None:
    from kip848_client.spark import QueryControl

    triggers = {TRIGGER: "3 seconds", CHANNEL: "1 hour"}
    path = str(tmp_path / "control")
    has_control = variant in (BUSY, CHANNEL)
    options = books.options(control=path) if has_control else books.options()
    frame = source(spark, books.bootstrap, **options)
    may_end = Event()
    books.produce(60)
    trigger = triggers.get(variant, "0 seconds")
    query = books.to_batches(frame, "spark", may_end, processingTime=trigger)
    control = QueryControl(spark, query, path) if has_control else None
    if variant != BUSY:
        may_end.set()
    if variant in (TRIGGER, BUSY):
        until(lambda: len(books.rows("spark")) == 60)
    else:
        books.wait_until_all_is_committed()
    asyncio.run(_be_a_member(books, control if variant == BUSY else None, may_end))
    books.produce(60)
    if variant == CHANNEL:
        assert control is not None
        control.stop()
    else:
        books.wait_until_all_is_committed()
        query.stop()
    assert books.others
    if variant == CHANNEL:
        assert len(books.rows("spark")) == 60
        again = books.to_batches(
            source(spark, books.bootstrap, **options), "spark", availableNow=True
        )
        assert again.awaitTermination(120)
        assert sum(books.committed().values()) == 180
    books.check("spark")


async def _be_a_member(books: Books, busy: QueryControl | None, may_end: Event) -> None:
    """Join, read what there is, and leave."""
    consumer: Consumer[Any, Any] = Consumer(
        books.topic,
        bootstrap_servers=books.bootstrap,
        group_id=books.group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    async with consumer:
        if busy is not None:
            await asyncio.to_thread(until, lambda: busy.status()["leaving"])
            assert not consumer.assignment(), "a partition went while its batch was in hand"
            may_end.set()
        await consumer.wait_assigned(timeout_ms=60_000)
        await asyncio.to_thread(books.produce, 60)
        await books.consume(consumer)


def test_two_drivers_share_their_group(spark: SparkSession, books: Books, tmp_path: Path) -> None:
    from kip848_client.spark import QueryControl

    controls: list[QueryControl] = []
    for name in ("one", "two"):
        books.produce(60)
        path = str(tmp_path / name / "control")
        Path(path).parent.mkdir()
        frame = source(spark, books.bootstrap, **books.options(control=path))
        query = books.to_batches(frame, name, processingTime="0 seconds")
        controls.append(QueryControl(spark, query, path))
        until(lambda: controls[-1].status()["partitions"])
    books.produce(60)
    books.wait_until_all_is_committed()
    assert [bool(control.status()["partitions"]) for control in controls] == [True, True]
    controls[0].stop()
    books.produce(60)
    books.wait_until_all_is_committed()
    controls[1].stop()
    assert books.rows("one")
    assert books.rows("two")
    books.check("one", "two")
