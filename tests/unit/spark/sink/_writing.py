"""Calls writers that write exactly once as Spark does, without Spark."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructType

from kip848_client.admin._transactions import TransactionAdmin
from kip848_client.spark._data_source import Kip848DataSource
from kip848_client.spark.sink import _transaction_committer, _writers
from kip848_client.spark.sink._running_task import RunningTask
from tests.unit.spark.sink._committed import committed_values

__all__ = ["NAME", "SCHEMA", "Died", "Query", "arrow", "open_transactions", "time_out"]

SCHEMA = StructType().add("value", BinaryType())
NAME = "billing"


class Died(BaseException):
    """A driver was killed."""


class Query:
    """A query of Spark's: batches of two tasks, in runs."""

    def __init__(
        self, bootstrap: str, patch: pytest.MonkeyPatch, *, topic: str = "a", name: str = NAME
    ) -> None:
        self.bootstrap = bootstrap
        self._patch = patch
        self.said = {
            "kafka.bootstrap.servers": bootstrap,
            "kafka.transactional.id": name,
            "kafka.linger.ms": "0",
            "kafka.max.block.ms": "40000",
            "topic": topic,
        }
        self.runs = 0
        self.query = "the query"
        self.restart()

    def restart(self) -> None:
        self.runs += 1
        self.run = f"{self.runs:012x}"

    def writer(self) -> Any:
        return Kip848DataSource(self.said).streamWriter(SCHEMA, overwrite=False)

    def write(self, *tasks: list[bytes], attempt: int = 0) -> list[Any]:
        """The messages of tasks that write these rows."""
        messages: list[Any] = []
        for partition, values in enumerate(tasks):
            task = RunningTask(self.query, self.run, partition, attempt)
            self._patch.setattr(_writers, "running_task", lambda _, task=task: task)
            batches = [arrow(values)] if values else []
            messages.append(self.writer().write(iter(batches)))
        return messages

    def batch(self, number: int, *tasks: list[bytes]) -> None:
        self.writer().commit(self.write(*tasks), number)

    def values(self, partitions: int = 2) -> list[bytes]:
        return committed_values(self.bootstrap, self.said["topic"], partitions)

    def dies_before(self, command: type) -> Callable[[], None]:
        """Let the driver die before that command; what is returned lets it live on."""
        perform = _transaction_committer._TransactionCommitter.perform

        async def dying(committer: Any, due: Any) -> Any:
            if isinstance(due, command):
                raise Died
            return await perform(committer, due)

        self._patch.setattr(_transaction_committer._TransactionCommitter, "perform", dying)
        return lambda: self._patch.setattr(
            _transaction_committer._TransactionCommitter, "perform", perform
        )


def arrow(values: list[bytes]) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.binary())})


def open_transactions(bootstrap: str) -> list[str]:
    async def ask() -> list[str]:
        async with TransactionAdmin(bootstrap_servers=bootstrap) as admin:
            return await admin.open_transactions()

    return asyncio.run(ask())


def time_out(bootstrap: str, name: str) -> None:
    """As a time-out would."""

    async def fence() -> None:
        async with TransactionAdmin(bootstrap_servers=bootstrap) as admin:
            [found] = (await admin.describe_transactions([name])).values()
            assert found is not None
            assert not await admin.fence({name: found})

    asyncio.run(fence())
