"""``Running``: a pipeline that was started."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from py4j.protocol import Py4JError
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from kip848_client.errors import Kip848Error
from kip848_client.spark.control._group_offsets import GroupOffsets
from kip848_client.spark.control._progress import lag_between, positions_of
from kip848_client.spark.control._query_control import QueryControl
from kip848_client.spark.pipeline._config import PipelineConfig
from kip848_client.spark.pipeline._errors import PipelineFailed
from kip848_client.spark.pipeline._sink import BatchSink
from kip848_client.spark.pipeline.core._causes import cause_of
from kip848_client.spark.pipeline.core._status import PipelineStatus, Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Running"]

_TURN_S: Final = 1
_SOURCE_S: Final = 60.0
_STATUS_S: Final = 1.0
_LOOK_S: Final = 0.02

State = Literal["starting", "running", "stopping", "stopped", "failed"]


class Running:
    """A running pipeline. Leaving its ``with`` block stops it cleanly.

    ``Pipeline.start`` makes it.

    Args:
        config: The settings.
        spark: The session.
        control: Path of the source's control channel; ``None`` for Spark's own source.
        options: Those of the source.
    """

    def __init__(
        self,
        config: PipelineConfig,
        spark: SparkSession,
        control: str | None,
        options: Mapping[str, str],
    ) -> None:
        self._config = config
        self._spark = spark
        self._path = control
        """``None`` for Spark's own source, which has no control channel."""
        self._options = options
        self._offsets: GroupOffsets | None = None
        self._progress = Progress()
        self._query: StreamingQuery | None = None
        self._control: QueryControl | None = None
        self._listener = _Listener(self._progress)
        self._held = ExitStack()
        self._state: State = "starting"
        self._failure: PipelineFailed | None = None
        self._source: dict[str, Any] = {}
        self.sink: BatchSink | None = None
        """Writes the batches; ``None`` if Spark itself does."""

    # -- for ``Pipeline`` ------------------------------------------------------------------------

    def follow(self, query: StreamingQuery) -> None:
        """Follow a query that has begun; for ``Pipeline``. Raises nothing.

        Args:
            query: Spark's query.
        """
        self._query = query
        self._listener.query_id = str(query.id)
        if self._path is not None:
            self._control = QueryControl(self._spark, query, self._path)
        elif self._config.source.group is not None:
            self._offsets = GroupOffsets(self._spark, query, self._options)
        self._spark.streams.addListener(self._listener)

    def ends_with(self, held: ExitStack) -> None:
        """Keep the resources to release at the end; for ``Pipeline``. Raises nothing.

        Args:
            held: What to close.
        """
        self._held = held

    def in_hand(self) -> dict[str, Any]:
        """Get the source's state for the current batch; for ``Pipeline``.

        Returns:
            What ``QueryControl.status`` returns.

        Raises:
            TransportError: The source cannot be reached within 60 s.
        """
        while self._control is None:  # the first batch may come before ``start`` has returned
            time.sleep(0.01)
        return self._control.status(_SOURCE_S)

    # -- for users -------------------------------------------------------------------------------

    @property
    def query(self) -> StreamingQuery:
        """Spark's query."""
        assert self._query is not None
        return self._query

    def status(self) -> PipelineStatus:
        """Get the state of the pipeline. Raises nothing for what the pipeline does.

        Returns:
            A snapshot.
        """
        if self._state in ("starting", "running", "stopping") and self._control is not None:
            # it does not listen yet, or has ended: keep its last answer
            with suppress(Kip848Error, Py4JError, OSError):
                self._source = self._control.status(_STATUS_S if self._source else 0.05)
        elif self._state in ("starting", "running", "stopping"):
            self._read_progress()
        if self._state == "starting" and self._source:
            self._state = "running"
        said, sink, now_ms = self._source, self.sink, int(time.monotonic() * 1000)
        is_over = self._state in ("stopped", "failed")
        return PipelineStatus(
            state=self._state,
            ownership="shared" if self._config.source.is_shared else "exclusive",
            batches=self._progress.batches,
            last_batch=self._progress.last_batch,
            last_batch_ms=self._progress.last_batch_ms,
            records=self._progress.records,
            records_per_second=self._progress.rate(now_ms),
            rows=None if sink is None else sink.rows,
            bad=None if sink is None else sink.bad,
            lag=said.get("lag"),
            partitions=0 if is_over else said.get("partitions"),
            leaving=0 if is_over else said.get("leaving"),
            member_epoch=None if is_over else said.get("member_epoch"),
        )

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the pipeline has ended.

        Args:
            timeout_s: How long to wait, in seconds; ``None``: without limit.

        Returns:
            Whether it has ended.

        Raises:
            PipelineFailed: It ended with an error.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self._state not in ("stopped", "failed"):
            left_s = _TURN_S if deadline is None else min(_TURN_S, deadline - time.monotonic())
            if left_s <= 0:
                return False
            try:
                # Spark needs whole milliseconds, at least one
                wait: Any = max(0.001, left_s)  # any number, though its type says int
                if self.query.awaitTermination(wait):
                    self._end("stopped")
            except StreamingQueryException as err:
                self._fail(self._reason(err), err)
            except (Py4JError, OSError) as err:
                self._fail(f"Spark's process (the JVM) has ended: {type(err).__name__}: {err}", err)
        if self._failure is not None:
            raise self._failure
        return True

    def stop(self, *, drain: bool = True, timeout_s: float = 300.0) -> None:
        """End the pipeline.

        Args:
            drain: Finish and commit the current batch and leave the group, so that a restart
                repeats nothing. Without it the batch is repeated at the next start.
            timeout_s: How long draining may take, in seconds.

        Raises:
            TransportError: It is not done in time, and still runs.
            PipelineFailed: The pipeline has failed before.
        """
        if self._state in ("stopped", "failed"):
            if self._failure is not None:
                raise self._failure
            return
        self._state = "stopping"
        try:
            if not self.query.isActive:
                self._state = "running"
                self.wait()
            elif drain and self._control is not None:
                self._control.stop(timeout_s)
            else:
                self._let_it_end(timeout_s if drain else 0)
                self.query.stop()
        except (Py4JError, OSError) as err:
            self._fail(f"Spark's process (the JVM) has ended: {type(err).__name__}: {err}", err)
        except Kip848Error:
            if not self._is_active():
                self.wait()
            raise
        if self._failure is not None:
            raise self._failure
        self._end("stopped")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._failure is None:
            self.stop(drain=err is None)

    # -- the end -----------------------------------------------------------------------------------

    def _read_progress(self) -> None:
        """Read the state of Spark's own source from the progress of its query."""
        with suppress(Py4JError, OSError):
            if self._path is None:
                self._source = _by_progress(self.query.lastProgress)

    def _let_it_end(self, timeout_s: float) -> None:
        """Wait for the end of the current batch. If another one starts just then, it is
        repeated."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self.query.status["isTriggerActive"]:
            time.sleep(_LOOK_S)

    def _is_active(self) -> bool:
        try:
            return bool(self.query.isActive)
        except (Py4JError, OSError):
            return False

    def _reason(self, err: StreamingQueryException) -> str:
        mine = None if self.sink is None else self.sink.error
        if isinstance(mine, Kip848Error | OSError):
            return str(mine)
        return cause_of(str(err) if mine is None else f"{err}\n{mine}")

    def _fail(self, told: str, err: BaseException) -> None:
        mine = None if self.sink is None else self.sink.error
        failure = mine if isinstance(mine, PipelineFailed) else PipelineFailed(told)
        failure.__cause__ = failure.__cause__ or err
        self._failure = failure
        self._end("failed")

    def _end(self, state: State) -> None:
        self._state = state
        self._read_progress()
        with suppress(Py4JError, OSError):
            if self._offsets is not None:
                self._offsets.close()
        for each in (self._control, self._listener):
            with suppress(Py4JError, OSError):  # with the JVM they are gone
                if each is not None:
                    self._spark.streams.removeListener(each)
        with suppress(Py4JError, OSError):
            self._held.close()


def _by_progress(progress: StreamingQueryProgress | None) -> dict[str, Any]:
    """The state of Spark's own source, from the progress of a query."""
    if progress is None:
        return {}
    done = positions_of(progress.sources[0].endOffset)
    lag = lag_between(done, positions_of(progress.sources[0].latestOffset))
    return {"lag": sum(lag.values()), "partitions": len(done), "leaving": 0}


class _Listener(StreamingQueryListener):
    """Counts the batches that Spark has committed."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.query_id = ""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark's name
        """Not needed."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's name
        """Count a batch, if there was one."""
        found = event.progress
        if str(found.id) != self.query_id or "addBatch" not in found.durationMs:
            return
        now_ms = int(time.monotonic() * 1000)
        took_ms = int(found.durationMs.get("triggerExecution", 0))
        self._progress.ended(found.batchId, found.numInputRows, took_ms, now_ms)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # Spark's name
        """Not needed."""
