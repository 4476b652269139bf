"""The requests about the metrics that brokers ask for (KIP-714)."""

from __future__ import annotations

from typing import Final

from kip848_client.observe.core.telemetry._verdicts import VERDICTS, Verdict, verdict_on
from tools.docs.errors.columns import Column, Sees, Told

__all__ = ["COLUMNS"]

_VERDICTS: Final = {
    Verdict.ASK_AGAIN: Sees("nothing", "at once; where it is the question that is refused, LATER"),
    Verdict.LATER: Sees("nothing", "an interval, 5 minutes where the broker has named none"),
    Verdict.SMALLER: Sees(
        "nothing; brokers get the metrics that fit", "until a broker names another limit"
    ),
    Verdict.STOP: Sees("a warning in the log, once", "until the client is closed"),
}

COLUMNS: Final = (
    Column(
        "Telemetry",
        "GetTelemetrySubscriptions and PushTelemetry, of consumers and producers with `metrics`. "
        "Nothing of it is raised, and records do not wait for it.",
        lambda code: verdict_on(code).name,
        {each.name: Told(each.value, *told) for each, told in _VERDICTS.items()},
        VERDICTS,
        "Once the client is being closed, any code ends it: there is no other attempt.",
    ),
)
