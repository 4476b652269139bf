"""Strategies for records of every type, as a coordinator of a given profile could write them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kip848_client.core.connect import ITSELF, resource_of
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId
from mock_coordinator.core.groups.records.assignor_values import AssignmentMetadata, ClientAssignor
from mock_coordinator.core.groups.records.connect_records import (
    ConnectCurrentAssignment,
    ConnectGroupEpoch,
    ConnectTargetEpoch,
    ConnectTargetMember,
    ConnectTargetMetadata,
    ConnectWorkerMetadata,
    WorkerSubscription,
)
from mock_coordinator.core.groups.records.member_state import MemberState
from mock_coordinator.core.groups.records.state_records import (
    ClassicGeneration,
    ClassicGroupMember,
    ClassicMemberMetadata,
    ClassicProtocol,
    CurrentAssignment,
    CurrentMemberAssignment,
    GroupEpoch,
    GroupEpochMetadata,
    GroupMetadata,
    MemberMetadata,
    MemberSubscription,
    OffsetAndMetadata,
    OffsetCommit,
    PartitionMetadata,
    RegularExpression,
    ResolvedRegex,
    StateRecord,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TargetEpoch,
    TopicShape,
)
from mock_coordinator.core.profile import Profile

__all__ = ["any_draft_record", "any_record"]

TEXT = st.text(max_size=12)
BYTES = st.binary(max_size=20)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TIME = st.integers(0, 2**62)
TOPIC_ID = st.binary(min_size=16, max_size=16).map(TopicId)
PARTITIONS = st.lists(st.integers(0, 2**31 - 1), unique=True, max_size=5)


def _offsets(profile: Profile) -> st.SearchStrategy[StateRecord]:
    plain: dict[str, Any] = {"offset": INT64, "metadata": TEXT, "commit_timestamp_ms": TIME}
    ids = TOPIC_ID if profile.offset_commit_value_version >= 4 else st.just(ZERO_TOPIC_ID)
    values = st.one_of(
        st.none(),
        st.builds(OffsetAndMetadata, leader_epoch=INT32, topic_id=ids, **plain),
        st.builds(OffsetAndMetadata, expire_timestamp_ms=TIME, **plain),
    )
    return st.builds(OffsetCommit, TEXT, TEXT, INT32, values)


def _classic_groups() -> st.SearchStrategy[StateRecord]:
    member = st.builds(
        ClassicGroupMember,
        member_id=TEXT,
        instance_id=st.none() | TEXT,
        client_id=TEXT,
        client_host=TEXT,
        rebalance_timeout_ms=st.integers(0, 2**31 - 1),
        session_timeout_ms=INT32,
        subscription=BYTES,
        assignment=BYTES,
    )
    generation = st.builds(
        ClassicGeneration,
        protocol_type=TEXT,
        generation=INT32,
        protocol=st.none() | TEXT,
        leader=st.none() | TEXT,
        state_timestamp_ms=INT64,
        members=st.lists(member, max_size=3).map(tuple),
    )
    return st.builds(GroupMetadata, TEXT, st.none() | generation)


def _members() -> st.SearchStrategy[StateRecord]:
    protocols = st.lists(st.builds(ClassicProtocol, TEXT, BYTES), max_size=2).map(tuple)
    subscription = st.builds(
        MemberSubscription,
        instance_id=st.none() | TEXT,
        rack_id=st.none() | TEXT,
        client_id=TEXT,
        client_host=TEXT,
        rebalance_timeout_ms=INT32,
        subscribed_topic_names=st.lists(TEXT, max_size=3).map(tuple),
        subscribed_topic_regex=TEXT,
        server_assignor=st.none() | TEXT,
        classic=st.none() | st.builds(ClassicMemberMetadata, INT32, protocols),
    )
    return st.builds(MemberMetadata, TEXT, TEXT, st.none() | subscription)


def _targets() -> st.SearchStrategy[StateRecord]:
    partitions = st.dictionaries(TOPIC_ID, PARTITIONS.map(tuple), max_size=3)
    return st.builds(TargetAssignmentMember, TEXT, TEXT, st.none() | partitions)


@st.composite
def _currents(draw: st.DrawFn, profile: Profile) -> StateRecord:
    epoch = draw(INT32)
    epochs = INT32 if profile.commits_use_assignment_epoch else st.just(max(epoch, 0))
    owned = st.dictionaries(
        TOPIC_ID,
        PARTITIONS.flatmap(lambda ps: st.fixed_dictionaries(dict.fromkeys(ps, epochs))),
        max_size=3,
    )
    current = CurrentAssignment(
        member_epoch=epoch,
        previous_member_epoch=draw(INT32),
        state=draw(st.sampled_from(MemberState)),
        assigned=draw(owned),
        pending_revocation=draw(owned),
    )
    return CurrentMemberAssignment(draw(TEXT), draw(TEXT), draw(st.sampled_from([current, None])))


def any_draft_record() -> st.SearchStrategy[StateRecord]:
    """One record of a Connect group, which no Kafka writes."""
    int8, int16 = st.integers(-128, 127), st.integers(-(2**15), 2**15 - 1)
    names = st.text(min_size=1, max_size=8)
    tasks = st.lists(st.integers(0, 2**31 - 1), unique=True, min_size=1, max_size=4)
    # one generation a connector, so that no task is there twice
    resources = st.dictionaries(
        names, st.tuples(st.integers(0, 2**31 - 1), tasks, st.booleans()), max_size=3
    )

    def items(drawn: dict[str, tuple[int, list[int], bool]]) -> dict[TopicId, tuple[int, ...]]:
        found = {resource_of(name, g): tuple(sorted(ts)) for name, (g, ts, _) in drawn.items()}
        found |= {resource_of(name, ITSELF): (ITSELF,) for name, row in drawn.items() if row[2]}
        return found

    def owned(drawn: dict[TopicId, tuple[int, ...]], epoch: int) -> dict[TopicId, dict[int, int]]:
        return {resource: dict.fromkeys(parts, epoch) for resource, parts in drawn.items()}

    held = resources.map(items)
    metadata = st.builds(AssignmentMetadata, int16, BYTES, int8)
    offer = st.builds(ClientAssignor, TEXT, int16, int16, int8, int16, BYTES)
    worker = st.builds(
        WorkerSubscription,
        instance_id=st.none() | TEXT,
        client_id=TEXT,
        client_host=TEXT,
        rebalance_timeout_ms=INT32,
        client_assignors=st.lists(offer, max_size=2).map(tuple),
        joined_epoch=INT32,
        reason_epoch=INT32,
    )
    current = st.builds(
        CurrentAssignment,
        member_epoch=INT32,
        previous_member_epoch=INT32,
        state=st.sampled_from(MemberState),
        assigned=st.builds(owned, held, INT32),
        pending_revocation=st.builds(owned, held, INT32),
        metadata=metadata,
    )
    target = st.builds(ConnectTargetEpoch, INT32, INT64, int8, held, st.none() | TEXT)
    return st.one_of(
        st.builds(ConnectGroupEpoch, TEXT, st.none() | st.builds(GroupEpoch, INT32)),
        st.builds(ConnectWorkerMetadata, TEXT, TEXT, st.none() | worker),
        st.builds(ConnectTargetMetadata, TEXT, st.none() | target),
        st.builds(ConnectTargetMember, TEXT, TEXT, held, metadata),
        st.builds(ConnectTargetMember, TEXT, TEXT, st.none()),
        st.builds(ConnectCurrentAssignment, TEXT, TEXT, st.none() | current),
    )


def any_record(profile: Profile) -> st.SearchStrategy[StateRecord]:
    """One record of any type that Kafka has."""
    has_hash, has_time = profile.metadata_hash, profile.has_assignment_interval
    hashes = INT64 if has_hash else st.just(0)
    times = INT64 if has_time else st.just(0)
    shape = st.builds(TopicShape, TEXT, TOPIC_ID, INT32)
    shapes = st.lists(shape, max_size=3, unique_by=lambda each: each.name)
    topics = st.lists(TEXT, max_size=3).map(tuple)
    return st.one_of(
        _offsets(profile),
        _classic_groups(),
        st.builds(GroupEpochMetadata, TEXT, st.none() | st.builds(GroupEpoch, INT32, hashes)),
        st.builds(
            PartitionMetadata,
            TEXT,
            st.none() | shapes.map(lambda each: tuple(sorted(each, key=lambda s: s.name))),
        ),
        _members(),
        st.builds(TargetAssignmentMetadata, TEXT, st.none() | st.builds(TargetEpoch, INT32, times)),
        _targets(),
        _currents(profile),
        st.builds(
            RegularExpression,
            TEXT,
            TEXT,
            st.none() | st.builds(ResolvedRegex, topics, INT64, INT64),
        ),
    )
