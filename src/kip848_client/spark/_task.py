"""Which task of which batch runs in this process: Spark tells its own tasks."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from pyspark import TaskContext

__all__ = ["RunningTask", "new_run", "running_task"]


@dataclass(frozen=True, slots=True)
class RunningTask:
    """One attempt of a task."""

    query: str
    """Spark's id of the query, which is its checkpoint's; a batch query has one of ours."""
    run: str
    """Of this run of the query: 12 hexadecimal digits."""
    partition: int
    attempt: int


def new_run() -> str:
    """For a batch query, which has none of Spark's."""
    return uuid.uuid4().hex[:12]


def running_task(run: str | None) -> RunningTask:
    """The one that runs here; ``run`` is a batch query's. Raises ``RuntimeError`` where none
    does, and where Spark does not tell the query."""
    context = TaskContext.get()
    if context is None:
        raise RuntimeError("this is no task of Spark's: rows are written in tasks")
    partition, attempt = context.partitionId(), context.attemptNumber()
    if run is not None:
        return RunningTask(f"batch-{run}", run, partition, attempt)
    query = context.getLocalProperty("sql.streaming.queryId")
    its_run = context.getLocalProperty("spark.jobGroup.id")
    if query is None or its_run is None:
        raise RuntimeError(
            "Spark does not tell its task which query it belongs to (sql.streaming.queryId), "
            "which is needed to write exactly once; leave kafka.transactional.id out"
        )
    return RunningTask(query, uuid.UUID(its_run).hex[:12], partition, attempt)
