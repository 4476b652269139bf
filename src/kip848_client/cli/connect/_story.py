"""What happens in the demo, in which order.

Nothing has a time of its own: a scene begins when the group has come to rest after the one before,
and the audience had a moment to look. Only who bounces comes back at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

__all__ = ["CONNECTORS", "PATIENCE_S", "PAUSE_S", "STORY", "Act", "Scene"]

CONNECTORS: Final = {"clicks": 2, "orders": 5, "payments": 4}
"""What is configured: how many tasks each connector has."""


class Act(Enum):
    """What may happen to a worker."""

    JOINS = "joins"
    IS_KILLED = "is killed: no farewell, and nobody is told"
    LEAVES = "leaves, to be restarted"
    RETURNS = "comes back, before its items are given to others"


@dataclass(frozen=True, slots=True)
class Scene:
    """This worker does that; ``waits`` for the group to come to rest before."""

    worker: str
    act: Act
    waits: bool = True


STORY: Final = (
    Scene("W1", Act.JOINS),
    # W1 has computed by then and goes on to; who computes knows whom items wait for, and must not
    # be killed, or nobody knows
    Scene("W2", Act.JOINS),
    Scene("W3", Act.JOINS),
    Scene("W2", Act.IS_KILLED),
    Scene("W3", Act.LEAVES),
    Scene("W3", Act.RETURNS, waits=False),
)

PAUSE_S: Final = 0.7
"""What the audience gets to look at a group that is at rest."""

PATIENCE_S: Final = 20.0
"""A group that has not come to rest after so long, and the delay, does not."""
