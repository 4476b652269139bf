"""Choosers of offset requests: commits, fetches and deletes, right and wrong."""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.groups import DeleteGroupsRequest
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.core.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.differential._heartbeats import Chooser
from tests.differential._model import GroupModel, MemberModel
from tests.differential._sequence_state import ABSENT_TOPIC, SequenceState
from tests.differential._steps import Ask

__all__ = ["OFFSETS", "SIMPLE_GROUPS", "commit_topics", "some_epoch"]

_METADATA_MAX: Final = 4096  # offset.metadata.max.bytes
_FETCH_GROUPS_FROM: Final = 8
_TOPIC_IDS_FROM: Final = 10


def some_epoch(state: SequenceState, member: MemberModel) -> int:
    """Mostly the right one, else one of the neighbours that a late client could hold."""
    if state.rng.random() < 0.55:
        return member.epoch
    others = [member.previous_epoch, member.epoch - 1, member.epoch + 1, 0, -1, -2, 1]
    return state.rng.choice(others)


def commit_partition(state: SequenceState, number: int) -> OffsetCommitRequestPartition:
    rng = state.rng
    size = rng.choice([_METADATA_MAX, _METADATA_MAX + 1]) if rng.random() < 0.05 else None
    metadata = rng.choice([None, "", "note", "é"]) if size is None else "x" * size
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=rng.choice([0, 5, rng.randrange(1000), 2**62, -1]),
        committed_leader_epoch=rng.choice([-1, 0, 3]),
        committed_metadata=metadata,
    )


def commit_topics(
    state: SequenceState, group: GroupModel, member: MemberModel | None
) -> tuple[OffsetCommitRequestTopic, ...]:
    """Partitions that the member owns, or any, or ones that do not exist."""
    rng = state.rng
    by_id = {each.topic_id: each for each in state.topics.values()}
    chosen: dict[tuple[str, bytes], list[int]] = {}
    mine = sorted(member.assigned) if member is not None else []
    for topic_id, number in rng.sample(mine, min(len(mine), rng.randrange(4))):
        if topic_id in by_id:
            chosen.setdefault((by_id[topic_id].name, topic_id), []).append(number)
    if not chosen or rng.random() < 0.3:
        topic = state.some_topic()
        number = rng.randrange(topic.partitions) if rng.random() < 0.9 else 999
        numbers = chosen.setdefault((topic.name, topic.topic_id), [])
        if number not in numbers:
            numbers.append(number)
    if rng.random() < 0.08:
        chosen[ABSENT_TOPIC, rng.randbytes(16)] = [0, 1]
    for (name, _), numbers in chosen.items():
        group.committed.update((name, number) for number in numbers)
    return tuple(
        OffsetCommitRequestTopic(
            name=name,
            topic_id=topic_id,
            partitions=tuple(commit_partition(state, number) for number in numbers),
        )
        for (name, topic_id), numbers in chosen.items()
    )


def commit(state: SequenceState) -> Ask | None:
    """A member commits."""
    group = state.main
    member = group.pick(state.rng)
    if member is None:
        return None
    rng = state.rng
    low, high = state.offered["OffsetCommit"]
    version = rng.randint(max(low, 9), high) if rng.random() < 0.85 else rng.randint(low, high)
    message = OffsetCommitRequest(
        group_id=group.group_id,
        member_id=member.member_id,
        generation_id_or_member_epoch=some_epoch(state, member),
        topics=commit_topics(state, group, member),
    )
    if version >= 7 and rng.random() < 0.3:
        message.group_instance_id = rng.choice([member.instance_id, "i9", None])
    return state.ask("commit", message, version)


def commit_late(state: SequenceState) -> Ask | None:
    """What a member owned before its epoch moved on, under the epoch that it had (KIP-1251)."""
    rng = state.rng
    group = state.main
    moved = [each for each in group.members.values() if 0 < each.previous_epoch < each.epoch]
    names = {each.topic_id: each.name for each in state.topics.values()}
    if not moved:
        return None
    member = rng.choice(moved)
    mine = [each for each in sorted(member.assigned | member.owned) if each[0] in names]
    if not mine:
        return None
    topic_id, number = rng.choice(mine)
    numbers = [number]
    same_topic = [other for identity, other in mine if identity == topic_id and other != number]
    if same_topic and rng.random() < 0.3:
        numbers.append(rng.choice(same_topic))
    group.committed.update((names[topic_id], each) for each in numbers)
    message = OffsetCommitRequest(
        group_id=group.group_id,
        member_id=member.member_id,
        generation_id_or_member_epoch=rng.choice([member.previous_epoch, member.epoch - 1]),
        topics=(
            OffsetCommitRequestTopic(
                name=names[topic_id],
                topic_id=topic_id,
                partitions=tuple(commit_partition(state, each) for each in numbers),
            ),
        ),
    )
    low, high = state.offered["OffsetCommit"]
    return state.ask("commit-late", message, rng.randint(max(low, 9), high))


def odd_shape(state: SequenceState) -> Ask:
    """Requests with nothing in them where something is usual."""
    rng = state.rng
    group = state.group()
    topic = state.some_topic()
    if rng.random() < 0.5:
        empty = OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id)
        absent = OffsetCommitRequestTopic(name=ABSENT_TOPIC, topic_id=b"\x01" * 16)
        topics = rng.choice([(), (empty,), (absent,), (absent, empty)])
        message = OffsetCommitRequest(group_id=group.group_id, topics=topics)
        member = group.pick(rng)
        if member is not None and rng.random() < 0.5:
            message.member_id = member.member_id
            message.generation_id_or_member_epoch = member.epoch
        return state.ask("odd-shape", message)
    gone = OffsetDeleteRequestTopic(name=topic.name)
    unknown = OffsetDeleteRequestTopic(name=ABSENT_TOPIC)
    listed = rng.choice([(), (gone,), (unknown,), (unknown, gone)])
    return state.ask("odd-shape", OffsetDeleteRequest(group_id=group.group_id, topics=listed))


def commit_from_outside(state: SequenceState) -> Ask:
    """Without a membership: a tool, a former member, a made-up id."""
    rng = state.rng
    group = rng.choice([state.main, state.side])
    identity = rng.choice(
        [("", -1), ("", -1), ("", 0), ("ghost", 3), ("ghost", -1), *((g, 1) for g in group.gone)]
    )
    message = OffsetCommitRequest(
        group_id=group.group_id if rng.random() < 0.97 else "",
        member_id=identity[0],
        generation_id_or_member_epoch=identity[1],
        topics=commit_topics(state, group, None),
    )
    version = state.version("OffsetCommit")
    if 2 <= version <= 4 and rng.random() < 0.3:
        message.retention_time_ms = 3_600_000
    return state.ask("commit-from-outside", message, version)


def fetch_numbers(state: SequenceState, group: GroupModel) -> dict[str, list[int]]:
    """What to ask for: mostly partitions that were committed once."""
    rng = state.rng
    wanted: dict[str, list[int]] = {}
    known = sorted(group.committed)
    for name, number in rng.sample(known, min(len(known), rng.randint(1, 4))):
        wanted.setdefault(name, []).append(number)
    if not wanted or rng.random() < 0.3:
        topic = state.some_topic()
        wanted.setdefault(topic.name, []).append(rng.randrange(topic.partitions + 1))
    if rng.random() < 0.08:
        wanted[ABSENT_TOPIC] = [0]
    return wanted


def fetch(state: SequenceState) -> Ask:
    version = state.version("OffsetFetch")
    group = state.group()
    everything = version >= 2 and state.rng.random() < 0.35
    stable = version >= 7 and state.rng.random() < 0.4
    if version >= _FETCH_GROUPS_FROM:
        return fetch_groups(state, group, version, everything=everything, stable=stable)
    wanted = fetch_numbers(state, group)
    topics = tuple(
        OffsetFetchRequestTopic(name=name, partition_indexes=tuple(numbers))
        for name, numbers in wanted.items()
    )
    message = OffsetFetchRequest(
        group_id=group.group_id, topics=None if everything else topics, require_stable=stable
    )
    return state.ask("fetch", message, version)


def fetch_groups(
    state: SequenceState, group: GroupModel, version: int, *, everything: bool, stable: bool
) -> Ask:
    rng = state.rng
    groups = [fetch_group(state, group, version, everything=everything)]
    if rng.random() < 0.15:
        groups.append(fetch_group(state, state.side, version, everything=True))
    if rng.random() < 0.05:
        groups.append(OffsetFetchRequestGroup(group_id=f"{state.prefix}-absent", topics=None))
    message = OffsetFetchRequest(groups=tuple(groups), require_stable=stable)
    return state.ask("fetch", message, version)


def fetch_group(
    state: SequenceState, group: GroupModel, version: int, *, everything: bool
) -> OffsetFetchRequestGroup:
    rng = state.rng
    ids = {each.name: each.topic_id for each in state.topics.values()}
    topics = tuple(
        OffsetFetchRequestTopics(
            name=name if version < _TOPIC_IDS_FROM else "",
            topic_id=ids.get(name, rng.randbytes(16)) if version >= _TOPIC_IDS_FROM else bytes(16),
            partition_indexes=tuple(numbers),
        )
        for name, numbers in fetch_numbers(state, group).items()
    )
    asked = OffsetFetchRequestGroup(group_id=group.group_id, topics=None if everything else topics)
    member = group.pick(rng)
    if version >= 9 and member is not None and rng.random() < 0.6:
        asked.member_id = rng.choice([member.member_id, member.member_id, "ghost", ""])
        asked.member_epoch = some_epoch(state, member)
    return asked


def delete_offsets(state: SequenceState) -> Ask:
    group = state.group()
    topics = tuple(
        OffsetDeleteRequestTopic(
            name=name,
            partitions=tuple(OffsetDeleteRequestPartition(partition_index=n) for n in numbers),
        )
        for name, numbers in fetch_numbers(state, group).items()
    )
    return state.ask("delete-offsets", OffsetDeleteRequest(group_id=group.group_id, topics=topics))


OFFSETS: Final[tuple[tuple[str, float, Chooser], ...]] = (
    ("commit", 7, commit),
    ("commit-late", 3, commit_late),
    ("commit-from-outside", 2, commit_from_outside),
    ("odd-shape", 0.7, odd_shape),
    ("fetch", 5, fetch),
    ("delete-offsets", 1, delete_offsets),
)
"""(name, weight, chooser)."""


def commit_simply(state: SequenceState) -> Ask:
    """A consumer without a group membership commits, in every version."""
    group = state.side
    message = OffsetCommitRequest(group_id=group.group_id, topics=commit_topics(state, group, None))
    return state.ask("commit-simply", message, state.some_version("OffsetCommit"))


def fetch_simply(state: SequenceState) -> Ask:
    """It looks at all of its offsets, in every version that can ask for all."""
    low, high = state.offered["OffsetFetch"]
    version = state.rng.randint(max(2, low), high)
    stable = version >= 7 and state.rng.random() < 0.4
    group_id = state.side.group_id
    message = OffsetFetchRequest(group_id=group_id, topics=None, require_stable=stable)
    if version >= _FETCH_GROUPS_FROM:
        asked = OffsetFetchRequestGroup(group_id=group_id, topics=None)
        message = OffsetFetchRequest(groups=(asked,), require_stable=stable)
    return state.ask("fetch-simply", message, version)


def delete_simple(state: SequenceState) -> Ask:
    """Its group is deleted, offsets and all."""
    return state.ask("delete-simple", DeleteGroupsRequest(groups_names=(state.side.group_id,)))


SIMPLE_GROUPS: Final[tuple[tuple[str, float, Chooser], ...]] = (
    ("commit-simply", 3, commit_simply),
    ("fetch-simply", 3, fetch_simply),
    ("delete-simple", 0.5, delete_simple),
)
"""(name, weight, chooser)."""
