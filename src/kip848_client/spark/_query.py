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
from kip848_client.spark._control import ask
from kip848_client.spark._listening import listen

__all__ = ["QueryControl"]

_log = logging.getLogger("kip848_client.spark")

_TELL_S: Final = 5.0
_PAUSE_S: Final = 0.05


class QueryControl(StreamingQueryListener):
    """Tells the source of a query at once when Spark has a batch, and stops the query in order.

        query = frame.option("control", path).load().writeStream. ... .start()
        control = QueryControl(spark, query, path)
        ...
        control.stop()

    Without it a group waits for partitions until the query's next trigger. ``path`` is that of the
    source's option ``control``; driver and source run on one machine.
    """

    def __init__(self, spark: SparkSession, query: StreamingQuery, path: str) -> None:
        self._query = query
        self._path = path
        self._end_listening = listen(spark, query, self)

    def status(self, timeout_s: float = 60.0) -> dict[str, Any]:
        """What the source says of itself: ``ownership``, ``batch`` (that Spark has in hand),
        ``partitions``, and for a member ``leaving`` and ``member_epoch``. Raises
        ``TransportError``."""
        return self._ask({"status": True}, timeout_s)

    def stop(self, timeout_s: float = 300.0) -> None:
        """Drain and stop: nothing new is planned, the batch in hand is finished and committed, the
        group is left, the query stopped. A restart repeats nothing.

        Raises ``TransportError`` when the source cannot be reached or is not done in time (the
        query goes on then: ``query.stop()`` ends it, and its batch is repeated).
        """
        self._ask({"drain": True}, timeout_s)
        self._query.stop()
        self.close()

    def close(self) -> None:
        """Listen no more."""
        self._end_listening()

    def _ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """A source listens some seconds after its query has begun: it is waited for."""
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
        """Not needed."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  # Spark's name
        """A batch is in Spark's log of commits."""
        if str(event.progress.id) != str(self._query.id):  # one is a UUID, one a text
            return
        for source in event.progress.sources:
            try:
                done = json.loads(source.endOffset)
                if "ranges" in done:
                    ask(self._path, {"done": done}, _TELL_S)
            except (ValueError, TypeError, Kip848Error) as err:
                _log.info("the source was not told of a batch, and will be at the next: %s", err)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  # Spark's name
        """Not needed."""
