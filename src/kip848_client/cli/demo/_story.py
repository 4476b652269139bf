"""What happens in the demo, and when.

Real brokers let a member wait five seconds between heartbeats, and a partition that changes hands
costs two of them: the last event comes early, so that every member has its partitions before the
end. On a slow machine, where a process takes seconds to start, the story takes longer: nobody
leaves or is killed before all who have begun are in the group.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

__all__ = ["JOINS_WITHIN_S", "PATIENCE_S", "PRODUCES_ON_S", "STORY", "Act", "Scene"]


class Act(Enum):
    """What may happen to a member."""

    JOINS = "joins"
    LEAVES = "leaves"
    CRASHES = "is killed: no commit, no farewell"
    RETURNS = "comes back"


@dataclass(frozen=True, slots=True)
class Scene:
    """At this second, or as soon as it can be, this member does that."""

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

PRODUCES_ON_S: Final = 4.5
"""So long after the last scene records are produced, one every few milliseconds."""

JOINS_WITHIN_S: Final = 20.0
"""The story goes on without a member that is not in the group by then."""

PATIENCE_S: Final = 20.0
"""A record counts as lost that no member has seen when nothing has come for so long."""
