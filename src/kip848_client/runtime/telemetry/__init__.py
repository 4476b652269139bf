"""Metrics that are pushed to brokers which subscribe to some (KIP-714).

``TelemetryCore`` decides when a subscription is asked for and when metrics are pushed, ``Ledger``
which metrics, and ``_otlp`` encodes them. ``TelemetryDriver`` performs what the core decides. An
error in here does not reach the client: it is logged once.
"""

from __future__ import annotations

from kip848_client.observe.core.telemetry._core import TelemetryCore
from kip848_client.observe.core.telemetry._error_rules import RULES, Reaction
from kip848_client.observe.core.telemetry._ledger import Ledger, Point
from kip848_client.observe.core.telemetry._model import Subscription
from kip848_client.observe.core.telemetry._names import telemetry_name
from kip848_client.runtime.telemetry._telemetry_driver import (
    Courier,
    NoTelemetry,
    TelemetryDriver,
    telemetry_of,
)

__all__ = [
    "RULES",
    "Courier",
    "Ledger",
    "NoTelemetry",
    "Point",
    "Reaction",
    "Subscription",
    "TelemetryCore",
    "TelemetryDriver",
    "telemetry_name",
    "telemetry_of",
]
