"""The Spark task that runs in this process."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from pyspark import TaskContext

from kip848_client.spark.sink.core._transactional_ids import run_of

__all__ = ["RunningTask", "new_run", "running_task"]


@dataclass(frozen=True, slots=True)
class RunningTask:
    """One attempt of a task."""

    query: str
    """Spark's id of the query, which is in its checkpoint; for a batch query, an id of ours."""
    run: str
    """The id of this run of the query: 12 hexadecimal digits."""
    partition: int
    attempt: int


def new_run() -> str:
    """A run id for a batch query, for which Spark has none."""
    return run_of(uuid.uuid4().hex)


def running_task(run: str | None) -> RunningTask:
    """The task that runs in this process. ``run`` is the run id of a batch query, otherwise
    ``None``. Raises ``RuntimeError`` outside a task, and if Spark does not provide the query's
    id."""
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("not in a Spark task: rows can only be written in tasks")
    partition, attempt = context.partitionId(), context.attemptNumber()
    if run is not None:
        return RunningTask(f"batch-{run}", run, partition, attempt)
    query = context.getLocalProperty("sql.streaming.queryId")
    its_run = context.getLocalProperty("spark.jobGroup.id")
    if query is None or its_run is None:
        raise RuntimeError(
            "the Spark task has no query id (sql.streaming.queryId), which is needed to write "
            "exactly once; omit kafka.transactional.id"
        )
    return RunningTask(query, run_of(uuid.UUID(its_run).hex), partition, attempt)
