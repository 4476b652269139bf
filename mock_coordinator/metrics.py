"""Brokers' metrics for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from kip848_client.observe.metrics_page import Family, as_text
from mock_coordinator.core.groups import CoordinatorMetric

__all__ = ["metrics_text"]

_PREFIX: Final = "kafka_server_group_coordinator_metrics_"
"""As Prometheus' JMX exporter names Kafka's metrics by default, so that a dashboard for Kafka's
group coordinator shows this one."""


def metrics_text(metrics: Iterable[CoordinatorMetric]) -> str:
    """In Prometheus' text format. Metrics of one name must follow each other."""
    return as_text(_families(metrics))


def _families(metrics: Iterable[CoordinatorMetric]) -> Iterator[Family]:
    for name, same in groupby(metrics, key=lambda metric: metric.name):
        samples = [(tags, value) for _, tags, value in same]
        kind = "counter" if name.endswith("-count") and not samples[0][0] else "gauge"
        yield Family(_PREFIX + name.replace("-", "_"), kind, samples)
