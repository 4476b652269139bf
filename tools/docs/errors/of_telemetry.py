"""The requests about the metrics that brokers ask for (KIP-714)."""

from __future__ import annotations

from typing import Final

from kip848_client.observe.core.telemetry._error_rules import RULES, Reaction, reaction
from tools.docs.errors.columns import Column, Sees, Told

__all__ = ["COLUMNS"]

_VERDICTS: Final = {
    Reaction.ASK_AGAIN: Sees("nothing", "at once; where it is the question that is refused, LATER"),
    Reaction.LATER: Sees("nothing", "an interval, 5 minutes where the broker has named none"),
    Reaction.SMALLER: Sees(
        "nothing; brokers get the metrics that fit", "until a broker names another limit"
    ),
    Reaction.STOP: Sees("a warning in the log, once", "until the client is closed"),
}

COLUMNS: Final = (
    Column(
        "Telemetry",
        "GetTelemetrySubscriptions and PushTelemetry, of consumers and producers with `metrics`. "
        "Nothing of it is raised, and records do not wait for it.",
        lambda code: reaction(code).name,
        {each.name: Told(each.value, *told) for each, told in _VERDICTS.items()},
        RULES,
        "Once the client is being closed, any code ends it: there is no other attempt.",
    ),
)
