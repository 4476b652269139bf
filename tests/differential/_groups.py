"""Choosers of requests about groups: describe, list, find, delete."""

from __future__ import annotations

from typing import Final

from kip848_client.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from tests.differential._heartbeats import Chooser
from tests.differential._scene import Scene
from tests.differential._steps import Ask

__all__ = ["GROUPS", "describe"]

_STATES: Final = ("Empty", "assigning", "RECONCILING", " Stable ", "Dead", "bogus", "")
_TYPES: Final = ("consumer", "Classic", "CONSUMER", "share", "streams", "bogus")


def describe(scene: Scene) -> Ask:
    rng = scene.rng
    groups = [scene.group().group_id]
    if rng.random() < 0.15:
        groups.append(rng.choice([scene.side.group_id, f"{scene.prefix}-absent", ""]))
    message = ConsumerGroupDescribeRequest(
        group_ids=tuple(groups), include_authorized_operations=rng.random() < 0.3
    )
    return scene.ask("describe", message)


def describe_classic(scene: Scene) -> Ask:
    rng = scene.rng
    groups = [rng.choice([scene.main.group_id, scene.side.group_id, f"{scene.prefix}-absent"])]
    if rng.random() < 0.1:
        groups.append("")
    version = scene.version("DescribeGroups")
    message = DescribeGroupsRequest(groups=tuple(groups))
    if version >= 3:
        message.include_authorized_operations = rng.random() < 0.3
    return scene.ask("describe-classic", message, version)


def list_groups(scene: Scene) -> Ask:
    rng = scene.rng
    version = scene.version("ListGroups")
    message = ListGroupsRequest()
    if version >= 4 and rng.random() < 0.5:
        message.states_filter = tuple(rng.sample(_STATES, rng.choice([1, 1, 2])))
    if version >= 5 and rng.random() < 0.4:
        message.types_filter = tuple(rng.sample(_TYPES, rng.choice([1, 1, 2])))
    return scene.ask("list", message, version)


def find(scene: Scene) -> Ask:
    rng = scene.rng
    version = scene.version("FindCoordinator")
    keys = [scene.main.group_id, f"{scene.prefix}-absent", ""]
    kind = rng.choice([0, 0, 0, 7]) if version >= 1 else 0
    message = FindCoordinatorRequest(key_type=kind)
    if version >= 4:
        message.coordinator_keys = tuple(rng.sample(keys, rng.choice([0, 1, 1, 2])))
    else:
        message.key = rng.choice(keys)
    return scene.ask("find", message, version)


def delete_groups(scene: Scene) -> Ask:
    rng = scene.rng
    groups = [rng.choice([scene.main.group_id, scene.side.group_id])]
    if rng.random() < 0.3:
        groups.append(f"{scene.prefix}-absent")
    return scene.ask("delete-groups", DeleteGroupsRequest(groups_names=tuple(groups)))


GROUPS: Final[tuple[tuple[str, float, Chooser], ...]] = (
    ("describe", 8, describe),
    ("describe-classic", 1, describe_classic),
    ("list", 2, list_groups),
    ("find", 0.5, find),
    ("delete-groups", 1, delete_groups),
)
"""(name, weight, chooser)."""
