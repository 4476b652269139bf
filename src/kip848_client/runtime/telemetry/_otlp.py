"""Encodes points in OpenTelemetry's protobuf (``pip install '.[telemetry]'``).

Its libraries are imported with the first push. ``packed`` may run in a thread.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kip848_client.observe.core.telemetry._ledger import Point

if TYPE_CHECKING:
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData

__all__ = ["is_installed", "packed"]

_NS_A_MS: Final = 1_000_000
_ROOM: Final = 0.95
"""Safety margin: the number of points is estimated by their average size, and some are larger."""


def is_installed() -> bool:
    """Whether the libraries for ``packed`` are installed."""
    try:
        return importlib.util.find_spec("opentelemetry.proto.metrics") is not None
    except ModuleNotFoundError:
        return False


def packed(
    points: Sequence[Point],
    labels: Mapping[str, str],
    *,
    time_ms: int,
    origin_ms: int,
    delta: bool,
    max_bytes: int,
) -> tuple[bytes, int]:
    """Return a ``MetricsData`` of at most ``max_bytes``, and the number of points in it: the first
    ones. ``labels`` are the client's. ``origin_ms`` converts other times to ms since 1970."""
    count = len(points)
    while True:
        made = _data(points[:count], labels, time_ms, origin_ms, delta=delta)
        size_bytes = made.ByteSize()
        if size_bytes <= max_bytes:
            return made.SerializeToString(), count
        if count == 0:
            return b"", 0
        count = min(count - 1, int(count * _ROOM * max_bytes / size_bytes))


def _data(
    points: Sequence[Point],
    labels: Mapping[str, str],
    time_ms: int,
    origin_ms: int,
    *,
    delta: bool,
) -> MetricsData:
    from opentelemetry.proto.metrics.v1 import metrics_pb2 as otlp

    made = otlp.MetricsData()
    of_client = made.resource_metrics.add()
    _label(of_client.resource.attributes, labels.items())
    metrics = of_client.scope_metrics.add().metrics
    temporality = (
        otlp.AGGREGATION_TEMPORALITY_DELTA if delta else otlp.AGGREGATION_TEMPORALITY_CUMULATIVE
    )
    by_name: dict[str, Metric] = {}
    time_ns = (origin_ms + time_ms) * _NS_A_MS
    for point in points:
        metric = by_name.get(point.name)
        if metric is None:
            metric = by_name[point.name] = metrics.add(name=point.name)
        if point.is_counter:
            metric.sum.aggregation_temporality = temporality
            metric.sum.is_monotonic = True
            written = metric.sum.data_points.add(as_double=point.value, time_unix_nano=time_ns)
            written.start_time_unix_nano = (origin_ms + point.start_ms) * _NS_A_MS
        else:
            written = metric.gauge.data_points.add(as_double=point.value, time_unix_nano=time_ns)
        _label(written.attributes, point.labels)
    return made


def _label(attributes: Any, labels: Any) -> None:
    for key, value in labels:
        attributes.add(key=key).value.string_value = value
