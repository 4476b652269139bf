"""Names of pushed metrics.

Kafka's own metrics are named ``org.apache.kafka.``, then the group without ``-metrics`` and the
name, with dots for hyphens: ``org.apache.kafka.consumer.coordinator.commit.latency.avg``. Metrics
that Kafka's client lacks begin with ``kip848.``, because the other prefix is Kafka's; a
subscription to everything includes them.
"""

from __future__ import annotations

import functools
from typing import Final

from kip848_client.observe.core.metrics import Row

__all__ = ["OURS", "STANDARD", "telemetry_label", "telemetry_name"]

STANDARD: Final = "org.apache.kafka."
OURS: Final = "kip848."


@functools.cache
def telemetry_name(row: Row, metric: str) -> str:
    """Return the pushed name of a row's metric; ``metric`` is its name in Kafka's client."""
    prefix = OURS if row.ours else STANDARD
    return prefix + f"{row.group.removesuffix('-metrics')}-{metric}".replace("-", ".")


def telemetry_label(label: str) -> str:
    """Return the pushed name of a label: ``node_id`` for ``node-id``."""
    return label.replace("-", "_")
