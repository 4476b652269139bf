"""Choosers of requests about groups: describe, list, find, delete."""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.core.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from tests.differential._heartbeats import Chooser
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import Ask

__all__ = ["GROUPS", "describe"]

_STATES: Final = ("Empty", "assigning", "RECONCILING", " Stable ", "Dead", "bogus", "")
_TYPES: Final = ("consumer", "Classic", "CONSUMER", "share", "streams", "bogus")


def describe(state: SequenceState) -> Ask:
    rng = state.rng
    groups = [state.group().group_id]
    if rng.random() < 0.15:
        groups.append(rng.choice([state.side.group_id, f"{state.prefix}-absent", ""]))
    message = ConsumerGroupDescribeRequest(
        group_ids=tuple(groups), include_authorized_operations=rng.random() < 0.3
    )
    return state.ask("describe", message)


def describe_classic(state: SequenceState) -> Ask:
    rng = state.rng
    groups = [rng.choice([state.main.group_id, state.side.group_id, f"{state.prefix}-absent"])]
    if rng.random() < 0.1:
        groups.append("")
    version = state.version("DescribeGroups")
    message = DescribeGroupsRequest(groups=tuple(groups))
    if version >= 3:
        message.include_authorized_operations = rng.random() < 0.3
    return state.ask("describe-classic", message, version)


def list_groups(state: SequenceState) -> Ask:
    rng = state.rng
    version = state.version("ListGroups")
    message = ListGroupsRequest()
    if version >= 4 and rng.random() < 0.5:
        message.states_filter = tuple(rng.sample(_STATES, rng.choice([1, 1, 2])))
    if version >= 5 and rng.random() < 0.4:
        message.types_filter = tuple(rng.sample(_TYPES, rng.choice([1, 1, 2])))
    return state.ask("list", message, version)


def find(state: SequenceState) -> Ask:
    rng = state.rng
    version = state.version("FindCoordinator")
    keys = [state.main.group_id, f"{state.prefix}-absent", ""]
    kind = rng.choice([0, 0, 0, 7]) if version >= 1 else 0
    message = FindCoordinatorRequest(key_type=kind)
    if version >= 4:
        message.coordinator_keys = tuple(rng.sample(keys, rng.choice([0, 1, 1, 2])))
    else:
        message.key = rng.choice(keys)
    return state.ask("find", message, version)


def delete_groups(state: SequenceState) -> Ask:
    rng = state.rng
    groups = [rng.choice([state.main.group_id, state.side.group_id])]
    if rng.random() < 0.3:
        groups.append(f"{state.prefix}-absent")
    return state.ask("delete-groups", DeleteGroupsRequest(groups_names=tuple(groups)))


GROUPS: Final[tuple[tuple[str, float, Chooser], ...]] = (
    ("describe", 8, describe),
    ("describe-classic", 1, describe_classic),
    ("list", 2, list_groups),
    ("find", 0.5, find),
    ("delete-groups", 1, delete_groups),
)
"""(name, weight, chooser)."""
