"""Kills pipelines at random moments, and counts what is in their output:
``python -m tests.spark.kills --kills 20 --kafka 4.4.0``.

Spark's process alone (the command then has to end by itself, with a sentence), or all of it. In the
end the numbers in the output have the checksum of what was produced.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kip848_client.cli.pipeline._accounting import Verdict, rows_in
from kip848_client.cli.pipeline._demo import _BROKER, _PARTITIONS, _TOPIC, Demo
from kip848_client.errors import Kip848Error
from mock_coordinator import MockBroker
from tests.support.real_kafka import RealKafka

__all__ = ["BROKER", "TOPICS", "run"]

TOPICS: Final = {_TOPIC: _PARTITIONS}
BROKER: Final = _BROKER
"""What is set of the brokers."""

_AFTER_S: Final = 4.0
"""The kill comes within so many seconds after the first batch."""


class _Killed(Demo):
    """The demo, with another story."""

    def __init__(self, bootstrap: str, folder: Path, kills: int, seed: int) -> None:
        super().__init__(bootstrap, folder, 0)
        self._kills = kills
        self._random = random.Random(seed)
        self.told: list[str] = []

    async def _script(self) -> None:
        for number in range(self._kills):
            await asyncio.sleep(self._random.uniform(0, _AFTER_S))
            is_spark_alone = number % 2 == 0
            if is_spark_alone:
                await self._kill_spark()
            self._news(f"kill {number + 1}: {'Spark' if is_spark_alone else 'all of it'}")
            await self._driver.kill()
            await self._driver.start()
            await self._first_batch()

    async def _kill_spark(self) -> None:
        """The command has to see it."""
        process = self._driver._process
        assert process is not None
        for child in _children(process.pid):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        await asyncio.wait_for(process.wait(), 60)
        await self._driver.read_all()
        try:
            await self._driver.check()
        except Kip848Error as err:
            self.told.append(str(err))


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def run(
    bootstrap: str, folder: Path, kills: int, seed: int
) -> tuple[Verdict, list[str], tuple[str, str]]:
    """The verdict, what commands have told whose Spark was killed, and the checksums of what was
    produced and of what is in the output. Brokers have ``TOPICS`` and are set as ``BROKER``."""
    demo = _Killed(bootstrap, folder, kills, seed)
    verdict = await demo.run()
    rows = [(*place, number) for place, number in demo._accounting.produced.items()]
    checksums = _checksum(rows), _checksum(rows_in(folder / "output"))
    return verdict, demo.told, checksums


def _checksum(rows: Iterable[tuple[int, int, int]]) -> str:
    return hashlib.sha256(repr(sorted(rows)).encode()).hexdigest()[:16]


async def _run_on_the_bundled_one(
    folder: Path, kills: int, seed: int
) -> tuple[Verdict, list[str], tuple[str, str]]:
    async with MockBroker(TOPICS, config=BROKER) as broker:
        return await run(broker.bootstrap, folder, kills, seed)


def _main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.kills")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kafka", help="a release, such as 4.4.0; default: the bundled broker")
    said: Any = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if said.kafka is None:
            found = asyncio.run(_run_on_the_bundled_one(folder, said.kills, said.seed))
        else:
            with RealKafka.start(said.kafka, BROKER) as kafka:
                for topic, partitions in TOPICS.items():
                    kafka.create_topic(topic, partitions)
                found = asyncio.run(run(kafka.bootstrap, folder, said.kills, said.seed))
    verdict, told, (produced, written) = found
    sums = f"checksum of what was produced {produced}, of what is in Parquet {written}"
    sys.stdout.write("\n".join([*told, str(verdict), sums]) + "\n")
    return 0 if verdict.is_good and produced == written else 1


if __name__ == "__main__":
    sys.exit(_main())
