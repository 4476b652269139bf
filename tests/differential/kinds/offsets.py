"""Committed offsets: commits with old and new epochs in every version, fetches of some and of all
partitions with and without an identity, deletion of offsets and of groups, groups that nobody is a
member of, topics that go with what was committed for them.
"""

from __future__ import annotations

from typing import Final

from tests.differential._conversation import Conversation, new_state
from tests.differential._groups import GROUPS
from tests.differential._heartbeats import (
    acknowledge,
    full_request,
    join,
    join_static,
    leave,
    leave_for_a_while,
    old_epoch,
    return_static,
    steady,
)
from tests.differential._offsets import OFFSETS, SIMPLE_GROUPS
from tests.differential._plan import Kind, Plan, Steps

__all__ = ["KIND"]

_MEMBERS: Final = (
    ("join", 3.0, join),
    ("join-static", 1.5, join_static),
    ("return-static", 1.0, return_static),
    ("steady", 3.0, steady),
    ("acknowledge", 5.0, acknowledge),
    ("full", 1.0, full_request),
    ("old-epoch", 1.0, old_epoch),
    ("leave", 2.5, leave),
    ("leave-for-a-while", 1.0, leave_for_a_while),
)


def sequence(plan: Plan) -> Steps:
    """The steps of one seed."""
    often = tuple((name, 3 * weight, chooser) for name, weight, chooser in OFFSETS)
    table = (*_MEMBERS, *often, *SIMPLE_GROUPS, *GROUPS)
    return Conversation(plan, new_state(plan, pattern_share=0.1), table).steps()


KIND: Final = Kind("offsets", 14, sequence)
