"""Pushes metrics to brokers that subscribe to them (KIP-714).

``TelemetryCore`` decides when to request a subscription and when to push metrics, ``Ledger`` which
metrics, and ``_otlp`` encodes them. ``TelemetryDriver`` performs the core's commands. An error in
here does not reach the client: it is logged once.
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
