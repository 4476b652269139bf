"""The configuration and the steps of the demo.

No step has a time: it is performed when the group has been stable for a moment after the step
before. Only a worker that restarts comes back at once.
"""

from __future__ import annotations

from typing import Final

from kip848_client.cli._demo._demo import Action, Step

__all__ = ["CONNECTORS", "PATIENCE_S", "PAUSE_S", "SCRIPT"]

CONNECTORS: Final = {"clicks": 2, "orders": 5, "payments": 4}
"""The number of tasks of each connector."""

SCRIPT: Final = (
    # W1 computes the first assignment, and all that follow: the worker that does so knows which
    # worker the items wait for, and must not be killed
    Step("W1", Action.START, "joins"),
    Step("W2", Action.START, "joins"),
    Step("W3", Action.START, "joins"),
    Step("W2", Action.KILL, "is killed: it does not leave the group"),
    Step("W3", Action.STOP, "leaves, to be restarted"),
    Step("W3", Action.START, "comes back, before its items are given to others", waits=False),
)

PAUSE_S: Final = 0.7
"""How long a stable group is shown before the next step."""

PATIENCE_S: Final = 20.0
"""A group that is not stable after this time, plus the delay, will not become so."""
