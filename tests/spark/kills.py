"""Kills pipelines at random moments, and counts what is in their output:
``python -m tests.spark.kills --kills 20``.

Spark's process alone (the command then has to end by itself, with a sentence), or all of it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kip848_client.cli.pipeline._books import Verdict
from kip848_client.cli.pipeline._demo import _BROKER, _PARTITIONS, _TOPIC, Demo
from kip848_client.errors import Kip848Error
from mock_coordinator import MockBroker

__all__ = ["run"]

_AFTER_S: Final = 4.0
"""The kill comes within so many seconds after the first batch."""


class _Killed(Demo):
    """The demo, with another story."""

    def __init__(self, bootstrap: str, folder: Path, kills: int, seed: int) -> None:
        super().__init__(bootstrap, folder, 0)
        self._kills = kills
        self._random = random.Random(seed)
        self.told: list[str] = []

    async def _story(self) -> None:
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
        await self._driver._heard()
        try:
            await self._driver.check()
        except Kip848Error as err:
            self.told.append(str(err))


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def run(folder: Path, kills: int, seed: int) -> tuple[Verdict, list[str]]:
    """The verdict, and what commands have told whose Spark was killed."""
    async with MockBroker({_TOPIC: _PARTITIONS}, config=_BROKER) as broker:
        demo = _Killed(broker.bootstrap, folder, kills, seed)
        return await demo.run(), demo.told


def _main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.kills")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments: Any = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        verdict, told = asyncio.run(run(Path(folder), arguments.kills, arguments.seed))
    sys.stdout.write("\n".join([*told, str(verdict)]) + "\n")
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(_main())
