"""Metrics for OpenTelemetry (``pip install '.[otel]'``).

::

    from kip848_client import Consumer, Metrics
    from kip848_client.otel import instrument

    metrics = Metrics()
    instrument(metrics)  # with the meter provider that the application has set
    consumer = Consumer("orders", bootstrap_servers="...", group_id="billing", metrics=metrics)

Instruments have the names that OpenTelemetry's Java agent gives Kafka's: ``kafka.consumer.`` or
``kafka.producer.`` and Kafka's name in snake case (``kafka.consumer.rebalance_latency_max``). A
metric that exists both for the whole client and for each topic, partition or broker has two
instruments (``kafka.producer.record_send_total``, ``kafka.producer.topic.record_send_total``). All
of them are observable: values are computed only when the application's reader collects them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from kip848_client.core.extras import installation
from kip848_client.core.short import short
from kip848_client.errors import ConfigError
from kip848_client.observe.core.metrics import TABLE, Metrics, Row, Sample, Statistic

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

__all__ = ["instrument", "otel_name"]

_PREFIX: Final = "kafka."
_ATTRIBUTES: Final = {
    "client-id": "messaging.client.id",
    "group-id": "messaging.consumer.group.name",
    "topic": "messaging.destination.name",
    "partition": "messaging.destination.partition.id",
}
"""Tags that have a name in the semantic conventions for messaging."""
_UNITS: Final = {"ms": "ms", "ns": "ns", "seconds": "s", "bytes": "By"}


def instrument(metrics: Metrics, meter_provider: MeterProvider | None = None) -> None:
    """Make an observable instrument for each metric.

    Call it once for each ``Metrics``.

    Args:
        metrics: What the clients have as their setting ``metrics``.
        meter_provider: Default: the global one.

    Raises:
        ConfigError: opentelemetry-api is not installed, or an argument is of another type.
    """
    api = _library()
    checked = _checked(metrics)
    provider = api.get_meter_provider() if meter_provider is None else meter_provider
    if isinstance(provider, type) or not hasattr(provider, "get_meter"):
        raise ConfigError(f"meter_provider must be a MeterProvider, not {short(provider)}")
    meter = provider.get_meter("kip848_client")
    for row in TABLE:
        for name, statistic in zip(row.names, row.statistics, strict=True):
            observe = _observer(checked, row, statistic, api.Observation)
            is_total = statistic is Statistic.TOTAL
            make: Callable[..., Any] = (
                meter.create_observable_counter if is_total else meter.create_observable_gauge
            )
            make(otel_name(row, name), [observe], _unit(row, statistic), row.meaning)


def otel_name(row: Row, metric: str) -> str:
    """Get the name of a metric in OpenTelemetry. Raises nothing.

    Args:
        row: A row of the table of metrics.
        metric: Kafka's name of a metric of this row.

    Returns:
        Such as ``kafka.consumer.rebalance_latency_max``.
    """
    name = metric.replace("-", "_")
    return _PREFIX + ".".join(part for part in (row.client, row.of, name) if part)


def _unit(row: Row, statistic: Statistic) -> str:
    unit = _UNITS.get(row.unit, "1")
    match statistic:
        case Statistic.RATE:
            return f"{unit}/s"
        case Statistic.HOURLY:
            return f"{unit}/h"
        case _:
            return unit


def _observer(
    metrics: Metrics, row: Row, statistic: Statistic, observation: Callable[..., Observation]
) -> Callable[[CallbackOptions], Iterable[Observation]]:
    def observe(_options: CallbackOptions) -> Iterator[Observation]:
        for sample in metrics.samples():
            wanted = sample.row is row and sample.statistic is statistic
            if wanted and not math.isnan(sample.value):
                yield observation(sample.value, _attributes(sample))

    return observe


def _attributes(sample: Sample) -> dict[str, str]:
    return {_ATTRIBUTES.get(tag, tag): value for tag, value in sample.tags.items() if value}


def _checked(metrics: object) -> Metrics:
    """Check the type of ``metrics``: otherwise each collection would fail."""
    if not isinstance(metrics, Metrics):
        raise ConfigError(f"metrics must be a kip848_client.Metrics, not {short(metrics)}")
    return metrics


def _library() -> Any:
    try:
        import opentelemetry.metrics
    except ImportError as err:
        raise ConfigError(f"opentelemetry-api is not installed: {installation('otel')}") from err
    return opentelemetry.metrics
