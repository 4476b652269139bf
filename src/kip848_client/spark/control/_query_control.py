"""``QueryControl``: a running query and the control channel of its source."""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from kip848_client.errors import Kip848Error, TransportError
from kip848_client.spark._channel import ask
from kip848_client.spark.control._listening import listen
from kip848_client.spark.source.core._manifest import OURS

__all__ = ["QueryControl"]

_log = logging.getLogger("kip848_client.spark")

_TELL_S: Final = 5.0
_PAUSE_S: Final = 0.05


class QueryControl(StreamingQueryListener):
    """Report a query's batches to its source at once, and stop it in order.

    ::

        query = frame.option("control", path).load().writeStream. ... .start()
        control = QueryControl(spark, query, path)
        ...
        control.stop()

    Without it a group waits for partitions until the query's next trigger. Driver and source run on
    one machine.

    Args:
        spark: The session of the query.
        query: The running query.
        path: That of the source's option ``control``.
    """

    def __init__(self, spark: SparkSession, query: StreamingQuery, path: str) -> None:
        self._query = query
        self._path = path
        self._end_listening = listen(spark, query, self)

    def status(self, timeout_s: float = 60.0) -> dict[str, Any]:
        """Get the state of the source, which is waited for if it does not listen yet.

        Args:
            timeout_s: How long to wait, in seconds.

        Returns:
            ``ownership``, ``batch`` (that Spark works on), ``partitions``, and for a member
            ``leaving`` and ``member_epoch``.

        Raises:
            TransportError: The source cannot be reached in time.
        """
        return self._ask({"status": True}, timeout_s)

    def stop(self, timeout_s: float = 300.0) -> None:
        """Drain the query and stop it: a restart repeats nothing.

        Nothing new is planned, the current batch is finished and committed, the group is left, and
        the query stopped.

        Args:
            timeout_s: How long the source may take, in seconds.

        Raises:
            TransportError: The source cannot be reached, or is not done in time. The query
                continues: ``query.stop()`` ends it, and its batch is repeated.
        """
        self._ask({"drain": True}, timeout_s)
        self._query.stop()
        self.close()

    def close(self) -> None:
        """Stop listening. Raises nothing."""
        self._end_listening()

    def _ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Wait for the source: it listens only some seconds after its query has started."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return ask(self._path, request, max(0.1, deadline - time.monotonic()))
            except TransportError:
                if time.monotonic() > deadline or not self._query.isActive:
                    raise
            time.sleep(_PAUSE_S)

    # -- what Spark calls --------------------------------------------------------------------

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark's name
        """Do nothing. Spark calls it. Raises nothing.

        Args:
            event: Spark's.
        """

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's name
        """Report a batch in Spark's commit log to the source.

        Spark calls it. Raises nothing. If the source cannot be reached, it learns of the batch with
        the next one; that is logged.

        Args:
            event: Spark's.
        """
        if str(event.progress.id) != str(self._query.id):  # one is a UUID, one a text
            return
        for source in event.progress.sources:
            try:
                done = json.loads(source.endOffset)
                if OURS in done:
                    ask(self._path, {"done": done}, _TELL_S)
            except (ValueError, TypeError, Kip848Error) as err:
                _log.info("the source learns of a batch only at the next one: %s", err)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # Spark's name
        """Do nothing. Spark calls it. Raises nothing.

        Args:
            event: Spark's.
        """
