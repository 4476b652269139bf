"""Metrics for Prometheus (``pip install '.[prometheus]'``).

::

    from prometheus_client import start_http_server
    from kip848_client import Consumer, Metrics, Producer
    from kip848_client.prometheus import register

    metrics = Metrics()
    register(metrics)
    start_http_server(8000)
    consumer = Consumer("orders", bootstrap_servers="...", group_id="billing", metrics=metrics)
    producer = Producer(bootstrap_servers="...", metrics=metrics)

Names are Kafka's in the style of Prometheus: ``kip848_consumer_``, ``kip848_producer_`` or
``kip848_connect_`` (workers) and the name in snake case, in base units. Times become histograms
(``kip848_consumer_rebalance_latency_seconds``), other sizes summaries, totals counters; rates, the
server computes rates, averages and maxima. Values are computed only during a scrape. A metric that
exists both for the whole client and for each topic, partition or broker has two names
(``kip848_producer_record_send_total``, ``kip848_producer_topic_record_send_total``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kip848_client.core.extras import installation
from kip848_client.core.short import short
from kip848_client.errors import ConfigError
from kip848_client.observe.core.metrics import (
    BUCKETS_MS,
    TABLE,
    ClientMetrics,
    Labels,
    Metrics,
    Row,
    Sensor,
    Statistic,
)

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

__all__ = ["Collector", "kind_of", "prometheus_name", "register"]

_PREFIX: Final = "kip848_"
_SECONDS: Final = {"ms": 1_000, "ns": 1_000_000_000}
"""How many of a unit make a second."""
_BASE: Final = {"ms": "seconds", "ns": "seconds"}
_COMMON: Final = {
    "consumer": ("client_id", "group_id"),
    "producer": ("client_id",),
    "connect": ("client_id", "group_id"),
}
"""Labels that all metrics of a kind of client have."""


def register(metrics: Metrics, registry: CollectorRegistry | None = None) -> Collector:
    """Register metrics for scraping with a registry.

    Args:
        metrics: What the clients have as their setting ``metrics``.
        registry: Default: that of prometheus_client.

    Returns:
        The collector, for ``registry.unregister``.

    Raises:
        ConfigError: prometheus_client is not installed, or an argument is of another type.
        ValueError: From prometheus_client: ``registry`` has such metrics already.
    """
    core = _library()
    collector = Collector(_checked(metrics))
    chosen = core.REGISTRY if registry is None else registry
    if isinstance(chosen, type) or not hasattr(chosen, "register"):
        raise ConfigError(f"registry must be a CollectorRegistry, not {short(chosen)}")
    chosen.register(collector)
    return collector


def prometheus_name(row: Row) -> str:
    """Get the name of a row of the table of metrics in Prometheus. Raises nothing.

    ``heartbeat`` with ``-total`` is ``kip848_consumer_heartbeat``, to which Prometheus adds
    ``_total``.

    Args:
        row: A row of the table.

    Returns:
        The name.
    """
    name = "_".join(part for part in (row.client, row.of, row.name) if part).replace("-", "_")
    unit = _BASE.get(row.unit, row.unit)
    if row.unit == "ns":
        name = name.removesuffix("_ns")
    if unit and unit not in name and not row.is_gauge:
        name = f"{name}_{unit}"
    return _PREFIX + name


def kind_of(row: Row) -> str:
    """Get the kind of metric that a row of the table becomes. Raises nothing.

    Args:
        row: A row of the table.

    Returns:
        ``gauge``, ``histogram``, ``counter`` or ``summary``.
    """
    if row.is_gauge:
        return "gauge"
    if row.is_timing and row.unit == "ms":
        return "histogram"
    return "counter" if Statistic.TOTAL in row.statistics else "summary"


class Collector:
    """A collector of prometheus_client, for your own registry.

    Args:
        metrics: What the clients have as their setting ``metrics``.

    Raises:
        ConfigError: prometheus_client is not installed.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._core = _library()

    def describe(self) -> Iterator[Metric]:
        """List all possible metrics. Raises nothing.

        Returns:
            The metrics by name, without values, because clients may be added later.
        """
        return (self._family(row) for row in TABLE)

    def collect(self) -> Iterator[Metric]:
        """Read all metrics of all clients. Raises nothing.

        Yields:
            Each metric with its values now.
        """
        found: dict[Row, Any] = {}
        for client in self._metrics.clients:
            for row, labels, sensor in client.sensors():
                _add(self._found(found, row), row, _values(client, row, labels), sensor)
            for row, labels, value in client.gauges():
                self._found(found, row).add_metric(_values(client, row, labels), value)
        yield from found.values()

    def _found(self, found: dict[Row, Any], row: Row) -> Any:
        if row not in found:
            found[row] = self._family(row)
        return found[row]

    def _family(self, row: Row) -> Any:
        kind = getattr(self._core, f"{kind_of(row).title()}MetricFamily")
        labels = [*_COMMON[row.client], *(label.replace("-", "_") for label in row.labels)]
        return kind(prometheus_name(row), row.meaning, labels=labels)


def _add(family: Any, row: Row, labels: list[str], sensor: Sensor) -> None:
    scale = _SECONDS.get(row.unit, 1)
    if sensor.buckets is not None:
        buckets: list[tuple[str, float]] = []
        count = 0
        bounds = [*(f"{bound / scale}" for bound in BUCKETS_MS), "+Inf"]
        for bound, here in zip(bounds, list(sensor.buckets), strict=True):
            count += here
            buckets.append((bound, count))
        family.add_metric(labels, buckets, sensor.total / scale)
    elif kind_of(row) == "summary":
        family.add_metric(labels, sensor.count, sensor.total / scale)
    else:
        family.add_metric(labels, sensor.total / scale)


def _values(client: ClientMetrics, row: Row, labels: Labels) -> list[str]:
    common = _COMMON[row.client]
    return [*(client.tags.get(name.replace("_", "-"), "") for name in common), *labels]


def _checked(metrics: object) -> Metrics:
    """Check the type of ``metrics``: otherwise each scrape would fail, including other
    collectors.
    """
    if not isinstance(metrics, Metrics):
        raise ConfigError(f"metrics must be a kip848_client.Metrics, not {short(metrics)}")
    return metrics


def _library() -> Any:
    try:
        import prometheus_client.core
    except ImportError as err:
        raise ConfigError(
            f"prometheus_client is not installed: {installation('prometheus')}"
        ) from err
    return prometheus_client.core
