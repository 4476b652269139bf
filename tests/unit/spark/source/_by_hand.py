"""Calls a source as Spark does, without Spark: from one thread, in Spark's order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeAlias

from kip848_client import Admin
from kip848_client.spark.source import _reading
from kip848_client.spark.source._ownership import Ranges
from kip848_client.spark.source._reading import read_ranges
from kip848_client.spark.source._source_driver import SourceDriver
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._options import SourceOptions, source_options
from kip848_client.spark.source.core._ranges import OffsetRange, packed
from kip848_client.spark.source.core._slots import TaskRanges
from mock_coordinator.threaded import BrokerThread

__all__ = ["Begin", "Query", "committed", "options_of", "produce", "rows_of"]


def options_of(bootstrap: str, **said: str | None) -> SourceOptions:
    """Options of a stream that reads topic ``a`` from its begin, and others. ``None`` removes
    one."""
    base = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": "a",
        "startingOffsets": "earliest",
        "kafkaConsumer.pollTimeoutMs": "20000",
    }
    names = {name.replace("_", "."): text for name, text in said.items()}
    chosen = {name: text for name, text in (base | names).items() if text is not None}
    return source_options(chosen, is_stream=True)


def produce(broker: BrokerThread, count: int, first: int = 0) -> None:
    """So many records more in topic ``a``, dealt out to its three partitions."""
    for number in range(first, first + count):
        broker.produce("a", f"v{number}".encode(), partition=number % 3)


def committed(broker: BrokerThread, group: str = "g") -> dict[int, int]:
    """The offsets of a group in topic ``a``."""

    async def ask() -> dict[int, int]:
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            found = await admin.list_group_offsets(group)
        return {tp.partition: each.offset for tp, each in found.items() if tp.topic == "a"}

    return asyncio.run(ask())


def rows_of(options: SourceOptions, batch: Ranges, tasks: int = 2) -> list[tuple[Any, ...]]:
    """What the tasks of a batch read: (partition, offset, value), sorted."""
    ranges = [OffsetRange(tp, *span) for tp, span in sorted(batch.items())]
    found: list[tuple[Any, ...]] = []
    try:
        for task in packed(ranges, tasks):
            for each in read_ranges(TaskRanges(task, options)):
                columns = (each[name].to_pylist() for name in ("partition", "offset", "value"))
                found.extend(zip(*columns, strict=True))
    finally:  # an executor would keep its consumer
        _reading._loop().call(_reading._discard(options), 10_000)
    return sorted(found)


def _stored(manifest: Manifest) -> Manifest:
    """As Spark returns it from its checkpoint, where it is a text."""
    if manifest.version == 1:
        return manifest
    return Manifest.of(json.loads(json.dumps(manifest.to_json())))


class Query:
    """A query with its checkpoint: what was planned, what is in the log of commits."""

    def __init__(self, options: SourceOptions) -> None:
        self.options = options
        self.planned: Manifest | None = None
        self.log: list[Manifest] = []
        self.sink: list[tuple[Any, ...]] = []
        self.runner = self._run()

    def _run(self) -> SourceDriver:
        return SourceDriver(self.options)

    def plan(self, limit: int | None = None) -> bool:
        """Ask for the next batch; whether there is one."""
        if not self.log:
            self.log.append(self.runner.first())
        found = self.runner.next(_stored(self.log[-1]), limit)
        if found == self.log[-1]:
            return False
        self.planned = _stored(found)
        return True

    def read(self) -> None:
        """Read the batch that was planned into the sink, and log it."""
        assert self.planned is not None
        self.sink += rows_of(self.options, self.runner.batch(self.planned))
        self.log.append(self.planned)
        self.planned = None

    def run(self, limit: int | None = None) -> None:
        """Batch after batch until there is nothing more."""
        while self.plan(limit):
            self.read()

    def restart(self) -> None:
        """After a crash, or a stop: a new process, which repeats what was not ended."""
        self.runner.close()
        self.runner = self._run()
        if self.planned is not None:
            self.read()


Begin: TypeAlias = Callable[..., Query]
"""The fixture ``begin``: options in, a query out."""
