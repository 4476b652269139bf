"""The coordinator's log as a reader sees it: records as lines, and the state they add up to.

Both backends give ``StateRecord``s: the bundled coordinator its own, a real broker those decoded
from ``__consumer_offsets``. The state is folded here from the log alone, by keeping the last value
of every key, so that it does not depend on how either of them computes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from kip848_client.core.types import TopicId
from mock_coordinator.core.groups.records.connect_records import (
    ConnectTargetEpoch,
    WorkerSubscription,
)
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import (
    ClassicGeneration,
    ClassicGroupMember,
    CurrentAssignment,
    CurrentMemberAssignment,
    GroupEpoch,
    GroupEpochMetadata,
    GroupMetadata,
    MemberMetadata,
    MemberSubscription,
    OffsetCommit,
    OwnedPartitions,
    PartitionMetadata,
    RegularExpression,
    StateRecord,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TargetEpoch,
)
from tests.scenarios.classic_texts import assignment_text, subscription_text
from tests.scenarios.notation import partitions_text, words
from tests.scenarios.scenario_run import GroupView, MemberView

__all__ = ["fold", "record_lines"]

_DRAFTS = 10480
"""Key types from here on are this project's own."""
TopicName = Callable[[TopicId], str]
V = TypeVar("V")


def record_lines(records: Iterable[StateRecord], topic_name: TopicName) -> list[str]:
    """One line a record. Runs of target assignments are sorted: brokers write them in the order
    of a hash table."""
    lines: list[str] = []
    run: list[str] = []
    for record in records:
        if isinstance(record, TargetAssignmentMember):
            run.append(_line(record, topic_name))
            continue
        lines += sorted(run)
        run = []
        lines.append(_line(record, topic_name))
        if isinstance(record, GroupMetadata) and record.value is not None:
            lines += map(_classic_member, record.value.members)
    return lines + sorted(run)


def _classic_member(member: ClassicGroupMember) -> str:
    instance = "" if member.instance_id is None else f" (instance {member.instance_id})"
    return (
        f"  {member.member_id}{instance}: {subscription_text(member.subscription)}, "
        f"assignment {assignment_text(member.assignment)}, "
        f"session {member.session_timeout_ms} ms, rebalance {member.rebalance_timeout_ms} ms"
    )


def _line(record: StateRecord, topic_name: TopicName) -> str:
    name, described = _described(record, topic_name)
    return f"{name}: {'deleted' if described is None else described}"


def _described(record: StateRecord, topic_name: TopicName) -> tuple[str, str | None]:
    """Kafka's name of the record with its key, and its value in words."""
    whose = "Connect" if record.KEY_TYPE >= _DRAFTS else "Consumer"
    match record:
        case OffsetCommit(topic=topic, partition=partition, value=offset, producer=producer):
            name = f"OffsetCommit {topic}[{partition}]"
            pending = "" if producer is None else ", pending"
            return name, None if offset is None else f"offset {offset.offset}{pending}"
        case GroupMetadata(value=stored):
            return "GroupMetadata", None if stored is None else _generation(stored)
        case GroupEpochMetadata(value=epoch):
            return f"{whose}GroupMetadata", None if epoch is None else f"epoch {epoch.epoch}"
        case PartitionMetadata(value=shapes):
            named = (
                None if shapes is None else words(f"{s.name} has {s.partitions}" for s in shapes)
            )
            return "ConsumerGroupPartitionMetadata", named
        case MemberMetadata(member_id=member, value=subscription):
            said = None if subscription is None else _subscription(subscription)
            return f"{whose}GroupMemberMetadata {member}", said
        case TargetAssignmentMetadata(value=target):
            reached = None if target is None else f"epoch {target.assignment_epoch}"
            if isinstance(target, ConnectTargetEpoch):
                reached = f"{reached}, computed by {target.computed_by}"
                if target.deferred:
                    reached += f", deferred {_named(target.deferred, topic_name)}"
            return f"{whose}GroupTargetAssignmentMetadata", reached
        case TargetAssignmentMember(member_id=member, value=partitions):
            name = f"{whose}GroupTargetAssignmentMember {member}"
            return name, None if partitions is None else _named(partitions, topic_name)
        case CurrentMemberAssignment(member_id=member, value=current):
            name = f"{whose}GroupCurrentMemberAssignment {member}"
            return name, None if current is None else _current(current, topic_name)
        case RegularExpression(regex=regex, value=resolved):
            name = f"ConsumerGroupRegularExpression {regex}"
            return name, None if resolved is None else f"topics {words(resolved.topics)}"
        case _:
            return type(record).__name__, str(record)


def _generation(stored: ClassicGeneration) -> str:
    kind, protocol = stored.protocol_type or "no type", stored.protocol or "no protocol"
    leader = stored.leader or "nobody"
    return f"generation {stored.generation}, {kind}, {protocol}, leader {leader}"


def _subscription(said: MemberSubscription) -> str:
    pieces = [f"instance {said.instance_id}"] if said.instance_id is not None else []
    pieces += [f"rack {said.rack_id}"] if said.rack_id is not None else []
    if isinstance(said, WorkerSubscription):
        reasons = "/".join(
            f"{each.name} {each.minimum_version} to {each.maximum_version}"
            + (f" for reason {each.reason}" if each.reason else "")
            for each in said.client_assignors
        )
        pieces.append(f"offers {reasons}, rebalance timeout {said.rebalance_timeout_ms} ms")
        return ", ".join(pieces)
    pieces.append(f"topics {words(said.subscribed_topic_names)}")
    pieces += [f"regex {said.subscribed_topic_regex}"] if said.subscribed_topic_regex else []
    pieces += [f"assignor {said.server_assignor}"] if said.server_assignor is not None else []
    pieces.append(f"rebalance timeout {said.rebalance_timeout_ms} ms")
    if said.classic is not None:
        offered = "/".join(each.name for each in said.classic.supported_protocols)
        pieces.append(
            f"classic {offered} with session timeout {said.classic.session_timeout_ms} ms"
        )
    return ", ".join(pieces)


def _current(current: CurrentAssignment, topic_name: TopicName) -> str:
    pending = _named(current.pending_revocation, topic_name)
    revoking = f", revoking {pending}" if current.pending_revocation else ""
    return (
        f"epoch {current.member_epoch} after {current.previous_member_epoch}, {current.state.name}"
        f", assigned {_named(current.assigned, topic_name)}{revoking}"
    )


def _named(partitions: Mapping[TopicId, Iterable[int]], topic_name: TopicName) -> str:
    return partitions_text(_by_name(partitions, topic_name))


def _by_name(
    partitions: Mapping[TopicId, Iterable[int]], topic_name: TopicName
) -> dict[str, Sequence[int]]:
    named: dict[str, list[int]] = defaultdict(list)
    for topic_id, numbers in partitions.items():  # a connector has the name of its first tasks
        named[topic_name(topic_id)] += numbers
    return {name: sorted(numbers) for name, numbers in named.items()}


def fold(records: Iterable[StateRecord], group: str, topic_name: TopicName) -> GroupView | None:
    """The state of a consumer group that a log adds up to; ``None`` when there is no group."""
    last = {record.key: record for record in records if record.group_id == group}
    kept = list(last.values())
    epochs = [value for record in kept for value in _values(record, GroupEpoch)]
    targets = [value for record in kept for value in _values(record, TargetEpoch)]
    subscriptions: dict[str, MemberSubscription] = {}
    currents: dict[str, CurrentAssignment] = defaultdict(CurrentAssignment)
    wanted: dict[str, Mapping[TopicId, Iterable[int]]] = defaultdict(dict)
    for record in kept:
        match record:
            case MemberMetadata(member_id=member, value=MemberSubscription() as said):
                subscriptions[member] = said
            case CurrentMemberAssignment(member_id=member, value=CurrentAssignment() as current):
                currents[member] = current
            case TargetAssignmentMember(member_id=member, value=partitions) if partitions:
                wanted[member] = partitions
            case _:
                pass
    if not subscriptions and not epochs:
        return None
    members = tuple(
        _member_view(member, currents[member], wanted[member], topic_name)
        for member in sorted(subscriptions)
    )
    epoch = epochs[0].epoch if epochs else _UNBUMPED_EPOCH
    reached = targets[0].assignment_epoch if targets else _assignment_epoch_without_target(members)
    return GroupView(_state(epoch, reached, members), epoch, reached, members)


_UNBUMPED_EPOCH = 1
"""What a group has from 4.3 on whose members all joined without a topic: nothing was written."""


def _assignment_epoch_without_target(members: Sequence[MemberView]) -> int:
    return max((member.epoch for member in members), default=0)


def _values(record: StateRecord, kind: type[V]) -> list[V]:
    value = getattr(record, "value", None)
    return [value] if isinstance(value, kind) else []


def _member_view(
    member: str,
    current: CurrentAssignment,
    target: Mapping[TopicId, Iterable[int]],
    topic_name: TopicName,
) -> MemberView:
    def owned(partitions: OwnedPartitions) -> dict[str, Sequence[int]]:
        return _by_name(partitions, topic_name)

    return MemberView(
        member_id=member,
        epoch=current.member_epoch,
        previous_epoch=current.previous_member_epoch,
        state=current.state.name,
        assigned=owned(current.assigned),
        revoking=owned(current.pending_revocation),
        target=_by_name(target, topic_name),
    )


def _state(epoch: int, reached: int, members: Sequence[MemberView]) -> str:
    """KIP-848's group states; the first that fits."""
    if not members:
        return "Empty"
    if epoch > reached:
        return "Assigning"
    steady = all(
        member.state == MemberState.STABLE.name and member.epoch == reached for member in members
    )
    return "Stable" if steady else "Reconciling"
