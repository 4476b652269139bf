"""What is not in order yet: every sentence names something that a healthy group would not show.

Asked only when nothing goes wrong any more. Then a group is in order when the coordinator knows
exactly the members that are there, each of them is STABLE at the group's epoch and holds what the
coordinator says, and each partition of each subscribed topic is in the hands of one of them, who
has read it to its end.

Two exceptions are Kafka's own. A member that changes to a pattern which matches nothing gives its
partitions up (4.2 and later; seen on a real 4.4.0), but nothing moves the group epoch, so they stay
in its target, and unused, until something else does. And a target can be blind: see
``blind_targets``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kip848_client.core.member import MemberState
from kip848_client.core.types import TopicIdPartition
from mock_coordinator.core.groups import MemberState as RecordedState
from mock_coordinator.core.topics.catalog import Topic
from mock_coordinator.sim.context import SimContext
from mock_coordinator.sim.process import MemberProcess
from mock_coordinator.sim.processes import Processes
from mock_coordinator.sim.recorded_groups import RecordedGroup
from mock_coordinator.sim.trace import shown_partitions

__all__ = ["pending"]


def pending(
    context: SimContext,
    processes: Processes,
    topics: list[Topic],
    ends: Mapping[TopicIdPartition, int],
) -> Iterator[str]:
    """What is stuck, if anything. ``ends`` are those of the logs."""
    groups: dict[str, list[MemberProcess]] = {g: [] for g in context.checkers.groups.groups}
    for consumer in processes.consumers:
        process = consumer.process
        name = consumer.plan.name
        if process is None:
            if consumer.wanted:
                yield f"{name} has no process"
        elif not consumer.wanted:
            yield f"{name} is still leaving ({process.state.value})"
        elif consumer.subscribed:
            groups.setdefault(consumer.plan.group_id, []).append(process)
        elif process.state is not MemberState.UNSUBSCRIBED or process.held:
            yield f"{name} unsubscribed and is {process.state.value}"
    for group_id, members in groups.items():
        yield from _pending_group(context, group_id, members, topics)
    for process in processes.alive:
        yield from _not_read(process, ends)


def _not_read(process: MemberProcess, ends: Mapping[TopicIdPartition, int]) -> Iterator[str]:
    """All that is held was read to its end."""
    application = process.application
    for partition, tp in application.fetchable.items():
        position = application.records.core.position(tp)
        if position != ends.get(partition):
            at = f"{position} of {ends.get(partition)}"
            yield f"{process.name} is at {at} in {tp.topic}-{tp.partition}"


def _pending_group(
    context: SimContext, group_id: str, processes: list[MemberProcess], topics: list[Topic]
) -> Iterator[str]:
    group = context.checkers.groups.group(group_id)
    known, present = set(group.members), {p.member_id for p in processes}
    for member_id in sorted(known - present):
        yield f"{group_id} has a member that is gone: {member_id}"
    if processes and group.epoch != group.assignment_epoch:
        yield f"{group_id} is at epoch {group.epoch} and its target at {group.assignment_epoch}"
    is_blind = context.checkers.blind_targets.has(group_id, group)
    expected: set[TopicIdPartition] = set()
    orphans: set[TopicIdPartition] = set()
    for process in processes:
        wanted = _subscribed(context, group, process, topics)
        expected |= wanted
        if process.pattern is not None or is_blind:
            orphans |= group.targets.get(process.member_id, frozenset()) - wanted
        yield from _pending_member(group, process, wanted)
    held = {partition for process in processes for partition in process.held}
    if orphans & expected:
        context.probes.reached("orphaned partition")
    missing = expected - held - orphans
    if is_blind:
        missing -= _forgotten(group, expected)
    if missing:
        yield f"{group_id}: nobody has {shown_partitions(missing)}"


def _forgotten(group: RecordedGroup, expected: set[TopicIdPartition]) -> set[TopicIdPartition]:
    """All partitions of the topics that are in no target."""
    assigned = {topic_id for target in group.targets.values() for topic_id, _ in target}
    return {each for each in expected if each[0] not in assigned}


def _subscribed(
    context: SimContext, group: RecordedGroup, process: MemberProcess, topics: list[Topic]
) -> set[TopicIdPartition]:
    """The partitions that this member could be given."""
    names, pattern = process.topics, process.pattern or ""
    recorded = group.members.get(process.member_id)
    if process in context.checkers.overwritten and recorded is not None:
        names = frozenset(recorded.subscription.subscribed_topic_names)
        pattern = recorded.subscription.subscribed_topic_regex
    return {
        (topic.topic_id, partition)
        for topic in topics
        if topic.name in names or re.fullmatch(pattern, topic.name)
        for partition in range(topic.partitions)
    }


def _pending_member(
    group: RecordedGroup, process: MemberProcess, wanted: set[TopicIdPartition]
) -> Iterator[str]:
    name = process.name
    recorded = group.members.get(process.member_id)
    if recorded is None:
        yield f"{name} ({process.state.value}) is not known to the coordinator"
        return
    if process.state is not MemberState.STABLE:
        yield f"{name} is {process.state.value} at epoch {process.core.snapshot().member_epoch}"
    if recorded.epoch != group.epoch or recorded.state is not RecordedState.STABLE:
        yield f"{name} is {recorded.state.name} at epoch {recorded.epoch} of {group.epoch}"
    if process.held != recorded.assigned:
        has, should = shown_partitions(process.held), shown_partitions(recorded.assigned)
        yield f"{name} has {has} and the coordinator says {should}"
    if recorded.assigned - wanted:
        yield f"{name} has unwanted {shown_partitions(recorded.assigned - wanted)}"
    application = process.application
    if frozenset(application.fetchable) != process.held:
        yield f"{name} does not fetch all that it has"
    without = [tp for tp in application.fetchable.values() if application.needs(tp)]
    if without:
        yield f"{name} has no position for {', '.join(f'{t}-{p}' for t, p in without)}"
