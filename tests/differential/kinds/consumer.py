"""Consumer groups as KIP-848 has them: joins, acknowledgements right and wrong, stale and future
epochs, static members, patterns, topics that come, grow and go, settings of the group, answers that
get lost.

``INTERVAL`` is the same with the default of ``group.consumer.assignment.interval.ms``, where target
assignments are put off.
"""

from __future__ import annotations

from typing import Final

from mock_coordinator.core.release_line import ReleaseLine
from tests.differential._conversation import Conversation, new_state
from tests.differential._group_configs import GROUP_CONFIGS
from tests.differential._groups import GROUPS
from tests.differential._heartbeats import HEARTBEATS
from tests.differential._offsets import OFFSETS
from tests.differential._plan import Kind, Plan, Steps

__all__ = ["INTERVAL", "KIND", "sequence"]


def sequence(plan: Plan) -> Steps:
    """The steps of one seed."""
    table = (*HEARTBEATS, *OFFSETS, *GROUPS)
    if not plan.has_interval:
        table = (*table, *GROUP_CONFIGS)
    return Conversation(plan, new_state(plan), table).steps()


KIND: Final = Kind("consumer", 30, sequence)
INTERVAL: Final = Kind(
    "interval",
    4,
    sequence,
    configs={"group.consumer.assignment.interval.ms": "1000"},
    since=ReleaseLine(4, 3),
    has_interval=True,
)
