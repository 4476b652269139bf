"""The requests of metrics pushed to brokers (KIP-714)."""

from __future__ import annotations

from typing import Final

from kip848_client.observe.core.telemetry._error_rules import RULES, Reaction, reaction
from tools.docs.errors.columns import Column, Sees, Told

__all__ = ["COLUMNS"]

_VERDICTS: Final = {
    Reaction.ASK_AGAIN: Sees("nothing", "at once; if GetTelemetrySubscriptions is refused, LATER"),
    Reaction.LATER: Sees("nothing", "one interval, or 5 minutes if the broker has not set one"),
    Reaction.SMALLER: Sees(
        "nothing; brokers get the metrics that fit", "until a broker sets another limit"
    ),
    Reaction.STOP: Sees("a warning in the log, once", "until the client is closed"),
}

COLUMNS: Final = (
    Column(
        "Telemetry",
        "GetTelemetrySubscriptions and PushTelemetry, of consumers and producers with `metrics`. "
        "These errors are never raised, and records do not wait for these requests.",
        lambda code: reaction(code).name,
        {each.name: Told(each.value, *told) for each, told in _VERDICTS.items()},
        RULES,
        "While the client closes, any error ends it, without a retry.",
    ),
)
