"""Listening to the progress of a query.

On Spark Connect, removing the last listener of a session can deadlock (pyspark 4.2, 4.3;
SPARK-59623): ``removeListener`` holds a lock until the thread that delivers events has ended, and
that thread needs the lock for an event that arrives meanwhile, such as the end of the query that
was just stopped. So on Connect the query is polled.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import QueryProgressEvent, StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["listen"]

_log = logging.getLogger("kip848_client.spark")

_ASK_S: Final = 0.5
_END_S: Final = 10.0


def listen(
    spark: SparkSession, query: StreamingQuery, listener: StreamingQueryListener
) -> Callable[[], None]:
    """Call a listener with the progress of a query (and perhaps of others). Returns a function
    that ends it."""
    if not type(spark).__module__.startswith("pyspark.sql.connect."):
        streams = spark.streams
        streams.addListener(listener)
        return lambda: streams.removeListener(listener)
    has_ended = threading.Event()
    asking = threading.Thread(
        target=_ask, args=(query, listener, has_ended), name="kip848-progress", daemon=True
    )
    asking.start()

    def end() -> None:
        has_ended.set()
        if asking is not threading.current_thread():
            asking.join(_END_S)

    return end


def _ask(query: StreamingQuery, listener: StreamingQueryListener, over: threading.Event) -> None:
    """Poll until ``over`` is set, or once more after the query has ended."""
    last: Any = None
    is_active = True
    try:
        while is_active and not over.wait(_ASK_S):
            is_active = query.isActive
            progress = query.lastProgress
            if progress is not None and progress.json != last:
                last = progress.json
                listener.onQueryProgress(QueryProgressEvent(progress))
    except Exception as err:  # noqa: BLE001  # whatever Connect's client raises
        if not over.is_set():
            _log.warning("the progress of query %s can no longer be read: %s", query.id, err)
