"""A topic of Apache Kafka that Spark and others read, and who had what of it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from kip848_client import Admin, Consumer, Producer
from kip848_client.records._arrow import pyarrow
from tests.support.real_kafka import RealKafka

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["PARTITIONS", "Books", "until"]

PARTITIONS: Final = 3
_WAIT_S: Final = 100.0
_PAUSE_S: Final = 0.05


def until(is_so: Callable[[], object]) -> None:
    """Wait for something that is to come."""
    deadline = time.monotonic() + _WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(_PAUSE_S)


class Books:
    """One topic and one group, and folders of what queries have written."""

    def __init__(self, kafka: RealKafka, unique: Callable[[str], str], folder: Path) -> None:
        self.kafka = kafka
        self.bootstrap = kafka.bootstrap
        self.topic, self.group = unique("read"), unique("readers")
        self.folder = folder
        self.produced = 0
        self.others: list[tuple[int, int]] = []
        """What a plain consumer had: partitions and offsets."""
        kafka.create_topic(self.topic, PARTITIONS)

    def options(self, **said: str) -> dict[str, str]:
        """Of a query that is a member of the group."""
        names = {name.replace("_", "."): text for name, text in said.items()}
        member = {"kafka_group_id": self.group, "ownership": "shared"}
        return {"subscribe": self.topic, **member, **names}

    def produce(self, count: int, partitions: int = PARTITIONS) -> None:
        """So many records more, numbers as text, dealt out to the partitions."""

        async def send() -> None:
            async with Producer(bootstrap_servers=self.bootstrap) as producer:
                for number in range(self.produced, self.produced + count):
                    await producer.send(self.topic, b"%d" % number, partition=number % partitions)

        asyncio.run(send())
        self.produced += count

    def committed(self, group: str | None = None) -> dict[int, int]:
        """Where the group is, by partition."""

        async def ask() -> dict[int, int]:
            async with Admin(bootstrap_servers=self.bootstrap) as admin:
                found = await admin.list_group_offsets(group or self.group)
            return {tp.partition: each.offset for tp, each in found.items()}

        return asyncio.run(ask())

    def wait_until_all_is_committed(self) -> None:
        """The group has no lag."""
        until(lambda: sum(self.committed().values()) == self.produced)

    def to_batches(
        self, frame: DataFrame, name: str, may_end: Event | None = None, **trigger: str | bool
    ) -> StreamingQuery:
        """Begin to write directories of batches. A batch does not end before it may."""
        folder = self.folder / name

        def write(batch: DataFrame, number: int) -> None:
            batch.select("partition", "offset").write.mode("overwrite").parquet(
                str(folder / "out" / f"batch={number}")
            )
            if may_end is not None:
                assert may_end.wait(_WAIT_S)

        writer = frame.writeStream.foreachBatch(write)
        chosen: Any = trigger  # its overloads take one of them each
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        return writer.trigger(**chosen).start()

    def rows(self, name: str) -> list[tuple[int, int]]:
        """What is in those directories: partitions and offsets."""
        pyarrow()
        import pyarrow.parquet as pq

        found: list[tuple[int, int]] = []
        for file in sorted((self.folder / name / "out").glob("batch=*/*.parquet")):
            table = pq.ParquetFile(file).read()
            columns = (table.column(each).to_pylist() for each in ("partition", "offset"))
            found += zip(*columns, strict=True)
        return found

    def check(self, *names: str) -> None:
        """Each record is in one place, once: in one of the outputs, or with the others."""
        found = Counter(self.others)
        for name in names:
            found.update(self.rows(name))
        overlap = found.total() - len(found)
        lost = self.produced - len(found)
        assert (overlap, lost) == (0, 0), f"overlap {overlap}, lost {lost}"

    async def consume(self, consumer: Consumer[Any, Any]) -> None:
        """What there is in the partitions of a consumer, committed."""
        while True:
            for tp, records in (await consumer.getmany(timeout_ms=100)).items():
                self.others += [(tp.partition, each.offset) for each in records]
            await consumer.commit()
            ends = await consumer.end_offsets(consumer.assignment())
            if all([await consumer.position(tp) >= end for tp, end in ends.items()]):
                return
