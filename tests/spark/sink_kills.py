"""A query that writes exactly once, killed again and again: ``python -m tests.spark.sink_kills``.

A JVM reads topic ``a`` and writes topic ``b`` exactly once, and is killed with SIGKILL at random
moments, and with it its Python workers. At the end readers of committed records have what was
produced, each record once: number and checksum are compared. ``--kafka 4.4.0``: on Apache Kafka.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import random
import tempfile
import time
from typing import TYPE_CHECKING

from kip848_client import Producer
from mock_coordinator.threaded import BrokerThread
from tests.spark import programs
from tests.support.real_kafka import FAST_CONFIGS, RealKafka
from tests.unit.spark.sink._committed import committed_values

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["play"]

_PRODUCED_A_ROUND = 6_000
_END_S = 900
_TOPICS = {"a": 3, "b": 2}


def play(spark: SparkSession, bootstrap: str, kills: int, seed: int) -> str:
    """Kill the query so often, then let it end, in ``spark``. Returns what was compared; raises
    ``AssertionError`` where rows are missing or there twice. Topics ``a`` and ``b`` are there."""
    chance = random.Random(seed)
    produced = 0
    with tempfile.TemporaryDirectory() as folder:
        for kill in range(kills):
            asyncio.run(_produce(bootstrap, range(produced, produced + _PRODUCED_A_ROUND)))
            produced += _PRODUCED_A_ROUND
            with programs.start(
                "tests.spark.sink_kills", "--query", bootstrap, folder, "on"
            ) as process:
                programs.wait_for(process, "started")
                time.sleep(chance.uniform(1, 9))
                programs.kill(process)
            print(f"kill {kill + 1}", flush=True)
        assert _begin(spark, bootstrap, folder, "end").awaitTermination(_END_S)
    found = committed_values(bootstrap, "b", 2)
    wanted = sorted(b"%d" % number for number in range(produced))
    assert len(found) == len(set(found)), f"{len(found) - len(set(found))} rows are there twice"
    assert found == wanted, f"{len(wanted) - len(found)} of {len(wanted)} rows are missing"
    checksum = hashlib.sha256(b"\n".join(found)).hexdigest()[:16]
    return f"{kills} kills, {len(found)} rows, each once, checksum {checksum}"


async def _produce(bootstrap: str, numbers: range) -> None:
    async with Producer(bootstrap_servers=bootstrap) as producer:
        for number in numbers:
            await producer.send("a", b"%d" % number)
        await producer.flush()


def _begin(spark: SparkSession, bootstrap: str, folder: str, mode: str) -> StreamingQuery:
    to = {"kafka.bootstrap.servers": bootstrap}
    frame = (
        spark.readStream.format("kip848")
        .options(**to, subscribe="a", startingOffsets="earliest")
        .option("maxOffsetsPerTrigger", "10000" if mode == "end" else "500")
        .load()
    )
    writer = (
        frame.selectExpr("key", "value", "'b' topic")
        .writeStream.format("kip848")
        .options(**to)
        .option("kafka.transactional.id", "kills")
        .option("checkpointLocation", f"{folder}/checkpoint")
    )
    return (writer.trigger(availableNow=True) if mode == "end" else writer).start()


def _be_the_query(bootstrap: str, folder: str, mode: str) -> None:
    """The program that is killed."""
    query = _begin(programs.session(), bootstrap, folder, mode)
    print("started")
    query.awaitTermination()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kafka", help="a release, such as 4.4.0; default: the bundled broker")
    parser.add_argument("--query", nargs=3, help="be the program that is killed")
    said = parser.parse_args()
    if said.query is not None:
        _be_the_query(*said.query)
        return
    if said.kafka is not None:
        with RealKafka.start(said.kafka, FAST_CONFIGS) as kafka:
            for topic, partitions in _TOPICS.items():
                kafka.create_topic(topic, partitions)
            print(play(programs.session(), kafka.bootstrap, said.kills, said.seed))
        return
    with BrokerThread(topics=_TOPICS) as broker:
        print(play(programs.session(), broker.bootstrap, said.kills, said.seed))


if __name__ == "__main__":
    main()
