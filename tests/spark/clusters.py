"""Pipelines on executors in processes of their own, on which the package is not installed, and what
becomes of records when executors are killed: ``python -m tests.spark.clusters --kills 10``.

Spark's standalone cluster, with workers that are killed and started again; with ``--local`` Spark's
``local-cluster``, whose executors are.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from kip848_client.cli.pipeline._accounting import Verdict
from kip848_client.cli.pipeline._demo import _BROKER, _PARTITIONS, _TOPIC, Demo
from kip848_client.cli.pipeline._driver import Driver
from mock_coordinator import MockBroker
from tests.spark.jvm import SHORT_LIVED
from tests.support.spark_cluster import StandaloneCluster, python_without_package

__all__ = ["LOCAL", "run"]

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "spark-clusters.md"
LOCAL: Final = "local-cluster[2,1,1024]"
_EXECUTOR: Final = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_JAVA_OPTIONS: Final = "spark.executor.defaultJavaOptions"
_PAUSE_S: Final = 4.0
"""A kill comes within so many seconds after the batch that followed the last one."""
_BATCHES: Final = 2
"""So many have to end after a kill before the next."""


class _Lost(Demo):
    """The demo, with machines that are lost."""

    def __init__(self, bootstrap: str, folder: Path, kills: int, seed: int, python: Path) -> None:
        super().__init__(bootstrap, folder, 1)
        self._driver = Driver(folder / "pipeline.toml", self._heard, folder)
        self._kills = kills
        self._random = random.Random(seed)
        self._python = python
        self._is_at_work = asyncio.Event()
        self.master = LOCAL
        self.cluster: StandaloneCluster | None = None

    def _heard(self, said: dict[str, Any]) -> None:
        super()._heard(said)
        if said.get("partitions"):
            self._is_at_work.set()

    async def _produce(self) -> None:
        """Not before it is a member: what has gathered until then would be one long batch."""
        await self._is_at_work.wait()
        await super()._produce()

    def _write_settings(self) -> None:
        super()._write_settings()
        file = self._folder / "pipeline.toml"
        text = file.read_text() + f"master = {json.dumps(self.master)}\n"
        if self.cluster is None:
            spark = {"spark.pyspark.python": str(self._python), "spark.executor.memory": "512m"}
            said = [f"{json.dumps(name)} = {json.dumps(value)}" for name, value in spark.items()]
            text += "\n".join(["[run.spark]", *said, ""])
        else:
            text += _of_the_page()
        # the last section is that of Spark's settings
        text += f"{json.dumps(_JAVA_OPTIONS)} = {json.dumps(' '.join(SHORT_LIVED))}\n"
        file.write_text(text)

    async def _script(self) -> None:
        for number in range(self._kills):
            await asyncio.sleep(self._random.uniform(0, _PAUSE_S))
            self._news(f"loss {number + 1}")
            await asyncio.to_thread(self._lose_one, number)
            ended = self._driver.batches + _BATCHES
            while self._driver.batches < ended:
                await self._pass(0.1)

    def _lose_one(self, number: int) -> None:
        if self.cluster is not None:
            self.cluster.kill_worker(number % 2)
            if number + 1 < self._kills:  # of the last one nothing comes back
                self.cluster.start_worker(number % 2)
            return
        process = self._driver._process
        assert process is not None
        found = [pid for pid in descendants(process.pid) if _EXECUTOR in _command(pid)]
        os.kill(self._random.choice(sorted(found)), signal.SIGKILL)


def _of_the_page() -> str:
    """What the page about clusters says for a standalone one, but for master and checkpoint."""
    [found] = re.findall(r"^```toml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    others = ("[run]", "master", "checkpoint")
    lines = [line for line in str(found).splitlines() if not line.startswith(others)]
    return "\n".join([*lines, ""])


def descendants(pid: int) -> list[int]:
    """All processes below one, as they are now."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (thread / "children").read_text().split()):
            found += [child, *descendants(child)]
    return found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


async def run(folder: Path, kills: int, seed: int, *, is_local: bool) -> Verdict:
    """What the books say in the end."""
    python = await asyncio.to_thread(python_without_package, folder)
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(folder / "environment", ".")
    async with MockBroker({_TOPIC: _PARTITIONS}, config=_BROKER) as broker:
        demo = _Lost(broker.bootstrap, folder, kills, seed, python)
        if is_local:
            return await demo.run()
        cluster = StandaloneCluster(folder / "cluster")
        try:
            await asyncio.to_thread(cluster.start)
            demo.cluster, demo.master = cluster, cluster.url
            return await demo.run()
        finally:
            await asyncio.to_thread(cluster.stop)


def _main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.clusters")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--local", action="store_true")
    arguments: Any = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        verdict = asyncio.run(
            run(Path(folder), arguments.kills, arguments.seed, is_local=arguments.local)
        )
    sys.stdout.write(f"{verdict}\n")
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(_main())
