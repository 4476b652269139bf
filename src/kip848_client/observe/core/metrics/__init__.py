"""The metrics of clients, with the names of Kafka's Java client. Pure.

::

    metrics = Metrics()
    consumer = Consumer("orders", bootstrap_servers="...", group_id="billing", metrics=metrics)
    ...
    for sample in metrics.samples():
        print(sample.name, sample.tags, sample.value)

docs/reference/metrics.md lists all of them.
"""

from __future__ import annotations

from typing import Final

from kip848_client.observe.core.metrics import connection_rows, producer_rows, rows, worker_rows
from kip848_client.observe.core.metrics._row import Row
from kip848_client.observe.core.metrics._sensors import BUCKETS_MS, Sensor, Statistic
from kip848_client.observe.core.metrics._store import (
    ClientMetrics,
    Labels,
    Metrics,
    Reading,
    Sample,
)

TABLE: Final = (*rows.TABLE, *producer_rows.TABLE, *worker_rows.TABLE, *connection_rows.TABLE)
"""Every row."""

__all__ = [
    "BUCKETS_MS",
    "TABLE",
    "ClientMetrics",
    "Labels",
    "Metrics",
    "Reading",
    "Row",
    "Sample",
    "Sensor",
    "Statistic",
    "connection_rows",
    "producer_rows",
    "rows",
    "worker_rows",
]
