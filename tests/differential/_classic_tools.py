"""What others ask about a classic group, and commits of its members: each chooser builds one
request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client.core.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kip848_client.core.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kip848_client.core.wire.messages.offset_commit import OffsetCommitRequest
from kip848_client.core.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from tests.differential._classic_clients import ClassicModel
from tests.differential._model import GroupModel
from tests.differential._offsets import commit_topics
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import Ask

__all__ = ["TOOLS", "ToolChooser"]

ToolChooser = Callable[[SequenceState, ClassicModel], Ask]

_STATES: Final = ("Empty", "preparingrebalance", "CompletingRebalance", "Stable", "Dead", "x")


def describe(state: SequenceState, group: ClassicModel) -> Ask:
    rng = state.rng
    groups = [group.group_id]
    if rng.random() < 0.1:
        groups.append(rng.choice(["", f"{state.prefix}-absent"]))
    version = state.version("DescribeGroups")
    message = DescribeGroupsRequest(groups=tuple(groups))
    if version >= 3:
        message.include_authorized_operations = rng.random() < 0.2
    return state.ask("describe", message, version)


def describe_as_consumer(state: SequenceState, group: ClassicModel) -> Ask:
    return state.ask("describe-848", ConsumerGroupDescribeRequest(group_ids=(group.group_id,)))


def list_groups(state: SequenceState, group: ClassicModel) -> Ask:
    rng = state.rng
    version = state.version("ListGroups")
    message = ListGroupsRequest()
    if version >= 4 and rng.random() < 0.5:
        message.states_filter = tuple(rng.sample(_STATES, rng.choice([1, 1, 2])))
    if version >= 5 and rng.random() < 0.4:
        message.types_filter = (rng.choice(["classic", "Consumer", "CLASSIC"]),)
    return state.ask("list", message, version)


def commit(state: SequenceState, group: ClassicModel) -> Ask:
    """Members and others commit, in every version, with right and wrong generations."""
    rng = state.rng
    members = [each for each in group.clients if each.member_id]
    member_id, generation, instance = "", -1, None
    if members and rng.random() < 0.8:
        member = rng.choice(members)
        member_id, instance = member.member_id, member.instance_id
        generation = member.generation + rng.choice([0, 0, 0, 0, 1, -1])
    elif rng.random() < 0.4:
        member_id = rng.choice(["ghost", *group.gone])
        generation = rng.choice([-1, 0, 1, 3])
    book = GroupModel(group.group_id, committed=group.committed)
    message = OffsetCommitRequest(
        group_id=group.group_id,
        member_id=member_id,
        generation_id_or_member_epoch=generation,
        topics=commit_topics(state, book, None),
    )
    version = state.version("OffsetCommit")
    if version >= 7 and rng.random() < 0.6:
        message.group_instance_id = instance if rng.random() < 0.9 else "i9"
    return state.ask("commit", message, version)


def fetch(state: SequenceState, group: ClassicModel) -> Ask:
    rng = state.rng
    low, high = state.offered["OffsetFetch"]
    if rng.random() < 0.5:
        version = rng.randint(max(2, low), 7)
        topics = tuple(
            OffsetFetchRequestTopic(name=name, partition_indexes=(number,))
            for name, number in sorted(dict(sorted(group.committed)).items())
        )
        message = OffsetFetchRequest(group_id=group.group_id, topics=rng.choice([None, topics]))
        return state.ask("fetch", message, version)
    asked = OffsetFetchRequestGroup(group_id=group.group_id, topics=None)
    version = rng.randint(8, high)
    members = [each for each in group.clients if each.member_id]
    if version >= 9 and members and rng.random() < 0.5:
        member = rng.choice(members)
        asked.member_id = member.member_id
        asked.member_epoch = member.generation + rng.choice([0, 0, 1])
    return state.ask("fetch", OffsetFetchRequest(groups=(asked,)), version)


def delete_offsets(state: SequenceState, group: ClassicModel) -> Ask:
    topics = tuple(
        OffsetDeleteRequestTopic(
            name=name, partitions=(OffsetDeleteRequestPartition(partition_index=number),)
        )
        for name, number in sorted(dict(sorted(group.committed)).items())
    )
    message = OffsetDeleteRequest(group_id=group.group_id, topics=topics)
    return state.ask("delete-offsets", message)


def delete_groups(state: SequenceState, group: ClassicModel) -> Ask:
    names = [group.group_id]
    if state.rng.random() < 0.2:
        names.append(f"{state.prefix}-absent")
    return state.ask("delete-groups", DeleteGroupsRequest(groups_names=tuple(names)))


TOOLS: Final[tuple[tuple[float, ToolChooser], ...]] = (
    (6, describe),
    (0.5, describe_as_consumer),
    (1.5, list_groups),
    (4, commit),
    (2, fetch),
    (1, delete_offsets),
    (0.6, delete_groups),
)
"""(weight, chooser)."""
