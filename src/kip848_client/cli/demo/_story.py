"""What happens in the demo, and when.

Real brokers let a member wait five seconds between heartbeats, and a partition that changes hands
costs two of them: the last event comes early, so that every member has its partitions before the
end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

__all__ = ["ENDS_S", "PRODUCES_UNTIL_S", "STORY", "Act", "Scene"]


class Act(Enum):
    """What may happen to a member."""

    JOINS = "joins"
    LEAVES = "leaves"
    CRASHES = "is killed: no commit, no farewell"
    RETURNS = "comes back"


@dataclass(frozen=True, slots=True)
class Scene:
    """At this second, this member does that."""

    at_s: float
    member: str
    act: Act


STORY: Final = (
    Scene(0.0, "A", Act.JOINS),
    Scene(0.2, "B", Act.JOINS),
    Scene(2.0, "C", Act.JOINS),
    Scene(4.0, "B", Act.LEAVES),
    Scene(5.5, "A", Act.CRASHES),
    Scene(7.5, "A", Act.RETURNS),
)

PRODUCES_UNTIL_S: Final = 12.0
"""Until then a record is produced every few milliseconds."""

ENDS_S: Final = 18.5
"""A record that no member has seen by then counts as lost."""
