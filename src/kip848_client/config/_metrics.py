"""The setting that says where a client counts and measures."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from kip848_client.observe.core.metrics import Metrics

__all__ = ["MetricsStore"]


def _checked(value: object) -> object:
    if value is None or isinstance(value, Metrics):
        return value
    raise ValueError("must be a kip848_client.Metrics, or None")


MetricsStore = Annotated[Any, BeforeValidator(_checked)]
"""A ``Metrics``, or ``None``."""
