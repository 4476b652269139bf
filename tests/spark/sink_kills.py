"""A query that writes exactly once, killed again and again: ``python -m tests.spark.sink_kills``.

A JVM reads topic ``a`` and writes topic ``b`` exactly once, and is killed with SIGKILL at random
moments, and with it its Python workers. At the end readers of committed records have what was
produced, each record once: number and checksum are compared.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kip848_client import Producer
from mock_coordinator.threaded import BrokerThread
from tests.unit.spark._committed import committed_values

__all__ = ["play"]

_QUERY = """
import sys
from pyspark.sql import SparkSession
bootstrap, checkpoint, mode = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("OFF")
to = {"kafka.bootstrap.servers": bootstrap}
frame = (
    spark.readStream.format("kip848").options(**to, subscribe="a", startingOffsets="earliest")
    .option("maxOffsetsPerTrigger", "500").load()
)
writer = (
    frame.selectExpr("key", "value", "'b' topic").writeStream.format("kip848").options(**to)
    .option("kafka.transactional.id", "kills").option("checkpointLocation", checkpoint)
)
chosen = {"availableNow": True} if mode == "end" else {"processingTime": "0 seconds"}
query = writer.trigger(**chosen).start()
print("started", flush=True)
query.awaitTermination()
"""
_PRODUCED_A_ROUND = 6_000


def play(bootstrap: str, kills: int, seed: int) -> str:
    """Kill the query so often, then let it end. Returns what was compared; raises
    ``AssertionError`` where rows are missing or there twice. Topics ``a`` and ``b`` are there."""
    chance = random.Random(seed)
    produced = 0
    with tempfile.TemporaryDirectory() as folder:
        for kill in range(kills):
            asyncio.run(_produce(bootstrap, range(produced, produced + _PRODUCED_A_ROUND)))
            produced += _PRODUCED_A_ROUND
            with _query(bootstrap, folder, "on") as process:
                _wait(process)
                time.sleep(chance.uniform(1, 9))
                _kill(process)
            print(f"kill {kill + 1}", flush=True)
        with _query(bootstrap, folder, "end") as process:
            assert process.wait(300) == 0
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


def _query(bootstrap: str, folder: str, mode: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    return subprocess.Popen(
        [sys.executable, "-c", _QUERY, bootstrap, str(Path(folder) / "checkpoint"), mode],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def _wait(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("started"):
            return
    raise AssertionError(f"the query ended by itself: {process.wait()}")


def _kill(process: subprocess.Popen[str]) -> None:
    """All processes of its session: the program, its JVM, the workers."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for each in _of_session(process.pid):  # Spark's daemon has a group of its own
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    process.wait()


def _of_session(session: int) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session:
                    found.append(int(entry.name))
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bootstrap", help="a Kafka with topics a and b; default: the bundled one")
    said = parser.parse_args()
    if said.bootstrap:
        print(play(said.bootstrap, said.kills, said.seed))
        return
    with BrokerThread(topics={"a": 3, "b": 2}) as broker:
        print(play(broker.bootstrap, said.kills, said.seed))


if __name__ == "__main__":
    main()
