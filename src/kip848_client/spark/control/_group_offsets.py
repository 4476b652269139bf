"""``GroupOffsets``: commits the progress of Spark's own Kafka source to a group."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)
from pyspark.sql.streaming.query import StreamingQuery

from kip848_client.admin import Admin
from kip848_client.config import client_settings
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError, Kip848Error, RequestTimedOut
from kip848_client.spark._loop import LoopThread
from kip848_client.spark.control._listening import listen
from kip848_client.spark.control._progress import lag_between, positions_of

__all__ = ["GroupOffsets"]

_log = logging.getLogger("kip848_client.spark")

_PAUSE_S: Final = 1.0
_PAUSE_MAX_S: Final = 30.0


class GroupOffsets(StreamingQueryListener):
    """Commit to a group what a query of ``format("kafka")`` has processed.

    ::

        options = {"kafka.bootstrap.servers": "...", "kafka.group.id": "billing", ...}
        query = spark.readStream.format("kafka").options(**options) ... .start()
        with GroupOffsets(spark, query, options) as offsets:
            query.awaitTermination()

    Spark's source never commits (SPARK-27549): only its checkpoint has its position, and tools that
    look at groups see no lag. The group must have no members. Nothing is read from it. A commit
    that fails is logged and repeated, and never ends the query. ``format("kip848")`` does not need
    this. Creating the object does not connect yet.

    Args:
        spark: The session of the query.
        query: The running query.
        options: Those of the query's source. ``kafka.bootstrap.servers`` and ``kafka.group.id`` are
            needed.

    Raises:
        ConfigError: One of these two is missing, or a setting of security is wrong.
    """

    def __init__(
        self, spark: SparkSession, query: StreamingQuery, options: Mapping[str, str]
    ) -> None:
        kafka = {
            name.lower().removeprefix("kafka."): str(value)
            for name, value in options.items()
            if name.lower().startswith("kafka.")
        }
        for name in ("bootstrap.servers", "group.id"):
            if not kafka.get(name):
                raise ConfigError(f"option kafka.{name} is missing: GroupOffsets needs it")
        self._group = kafka["group.id"]
        self._settings: Any = {
            **client_settings(kafka),
            "bootstrap_servers": kafka["bootstrap.servers"],
        }
        Admin(**self._settings)  # raise errors of the settings here, not in the loop
        self._query = query
        self._done: Mapping[TopicPartition, int] = {}
        self._latest: Mapping[TopicPartition, int] = {}
        self._committed: Mapping[TopicPartition, int] = {}
        self._loop = LoopThread("kip848-group-offsets")
        self._news = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._committing: asyncio.Task[None] | None = None
        self._is_closed = False
        self._lock = threading.Lock()
        """A thread of Spark's reports the progress."""
        self._loop.begin(self._keep_committing())
        self._end_listening = listen(spark, query, self)

    def __enter__(self) -> GroupOffsets:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def lag(self) -> dict[TopicPartition, int]:
        """Get what the query has not processed, as of its last progress. Raises nothing.

        Returns:
            A number of records by partition.
        """
        return lag_between(self._done, self._latest)

    def close(self, timeout_s: float = 10.0) -> None:
        """Commit what the query has processed so far, and stop listening.

        Call it after the query has ended, or to let it continue without a group. If the commit does
        not succeed in time, that is logged: the next run of the query commits it. A second call
        does nothing. Raises nothing for what brokers do.

        Args:
            timeout_s: How long to wait for the commit, in seconds.
        """
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            with suppress(Py4JError, OSError):  # Spark is gone: commit what it reported
                last = self._query.lastProgress
                if last is not None:  # listeners get it after the query has ended
                    self._take(last)
        with suppress(Py4JError, OSError):
            self._end_listening()
        try:
            self._loop.call(self._settled.wait(), int(timeout_s * 1000))
        except RequestTimedOut:
            _log.warning("the progress of the query was not committed to group %s", self._group)
        self._loop.begin(self._end()).result()
        self._loop.close()

    def _take(self, progress: StreamingQueryProgress) -> None:
        for source in progress.sources:
            self._latest = {**self._latest, **positions_of(source.latestOffset)}
            self._done = {**self._done, **positions_of(source.endOffset)}
        self._loop.begin(self._note())

    # -- in the loop -----------------------------------------------------------------------------

    async def _note(self) -> None:
        if self._done != self._committed:
            self._settled.clear()
            self._news.set()

    async def _end(self) -> None:
        if self._committing is not None:
            self._committing.cancel()
            await asyncio.gather(self._committing, return_exceptions=True)

    async def _keep_committing(self) -> None:
        self._committing = asyncio.current_task()
        pause_s = _PAUSE_S
        while True:
            try:
                async with Admin(**self._settings) as admin:
                    while True:
                        await self._commit_news(admin)
                        pause_s = _PAUSE_S
            except Kip848Error as err:
                _log.warning("committing to group %s failed, and is repeated: %s", self._group, err)
            self._news.set()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)

    async def _commit_news(self, admin: Admin) -> None:
        await self._news.wait()
        self._news.clear()
        done = self._done
        changed = {tp: end for tp, end in done.items() if self._committed.get(tp) != end}
        if changed:
            await admin.alter_group_offsets(self._group, changed)
            self._committed = done
        if self._committed == self._done:
            self._settled.set()

    # -- what Spark calls ------------------------------------------------------------------------

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark's name
        """Do nothing. Spark calls it. Raises nothing.

        Args:
            event: Spark's.
        """

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's name
        """Note the positions of a batch in Spark's commit log.

        Spark calls it. Raises nothing.

        Args:
            event: Spark's.
        """
        if str(event.progress.id) == str(self._query.id):  # one is a UUID, one a text
            with self._lock:
                if not self._is_closed:  # else it was on its way
                    self._take(event.progress)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # Spark's name
        """Do nothing: the code that ends the query calls ``close``.

        Spark calls it. Raises nothing.

        Args:
            event: Spark's.
        """
