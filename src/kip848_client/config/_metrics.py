"""The settings of clients that count and measure."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from kip848_client.config._client import ClientConfig, ClientSettings
from kip848_client.observe.core.metrics import Metrics

__all__ = ["MeasuredConfig", "MeasuredSettings", "MetricsStore"]


def _checked(value: object) -> object:
    if value is None or isinstance(value, Metrics):
        return value
    raise ValueError("must be a kip848_client.Metrics, or None")


MetricsStore = Annotated[Any, BeforeValidator(_checked)]
"""A ``Metrics``, or ``None``."""


class MeasuredSettings(ClientSettings, total=False):
    """The keyword arguments of clients that measure, for type checkers.

    ``MeasuredConfig`` explains each.
    """

    metrics: Metrics | None
    enable_metrics_push: bool


class MeasuredConfig(ClientConfig):
    """The settings of a client that measures. Frozen."""

    metrics: MetricsStore = None
    """A ``kip848_client.Metrics`` for the client's metrics; ``None``: no metrics."""
    enable_metrics_push: bool = True
    """Whether to push these metrics to brokers that request them (KIP-714). Needs the package
    opentelemetry-proto: ``pip install '.[telemetry]'``.
    """
