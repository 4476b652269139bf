"""Metrics that are pushed to brokers which subscribe to some (KIP-714).

``TelemetryCore`` decides when a subscription is asked for and when metrics are pushed, ``Ledger``
what of the metrics, ``_otlp`` writes them down. ``Telemetry`` does what they ask for. Nothing that
goes wrong in here reaches the client: it is told in the log, once.
"""

from __future__ import annotations

from kip848_client.observe.core.telemetry._core import TelemetryCore
from kip848_client.observe.core.telemetry._ledger import Ledger, Point
from kip848_client.observe.core.telemetry._model import Subscription
from kip848_client.observe.core.telemetry._names import telemetry_name
from kip848_client.observe.core.telemetry._verdicts import VERDICTS, Verdict
from kip848_client.runtime.telemetry._reporter import Courier, NoTelemetry, Telemetry, telemetry_of

__all__ = [
    "VERDICTS",
    "Courier",
    "Ledger",
    "NoTelemetry",
    "Point",
    "Subscription",
    "Telemetry",
    "TelemetryCore",
    "Verdict",
    "telemetry_name",
    "telemetry_of",
]
