"""Offset messages by name and by id, matched by the table that built them (KAFKA-20040)."""

from __future__ import annotations

import pytest

from kip848_client import TopicPartition
from kip848_client.core.group import CommittedRow
from kip848_client.core.group_wire.offsets import (
    TopicTable,
    commit_request,
    commit_results,
    committed_offsets,
    fetch_request,
)
from kip848_client.core.offsets import CommittableOffset
from kip848_client.core.types import TopicId
from kip848_client.core.wire import decode, encode
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import RemoteProtocolError

A, B = TopicId(b"a" * 16), TopicId(b"b" * 16)
IDS = {"alpha": A, "beta": B}
OFFSETS = {
    TopicPartition("beta", 1): CommittableOffset(5, 2, "text"),
    TopicPartition("alpha", 0): CommittableOffset(7),
}


def test_version_10_only_when_every_id_is_known() -> None:
    assert TopicTable(["alpha", "beta"], IDS.get).versions == (9, 10)
    assert TopicTable(["alpha", "gamma"], IDS.get).versions == (9, 9)


@pytest.mark.parametrize("version", [9, 10])
def test_a_commit_of_a_member(version: int) -> None:
    """KAFKA-19902."""
    table = TopicTable(["alpha", "beta"], IDS.get)
    request = commit_request("g", ("me", 4, "instance"), OFFSETS, table)
    read = decode(OffsetCommitRequest, version, encode(request, version))
    assert (read.group_id, read.member_id, read.generation_id_or_member_epoch) == ("g", "me", 4)
    assert read.group_instance_id == "instance"
    keys = [each.name if version == 9 else each.topic_id for each in read.topics]
    assert keys == (["alpha", "beta"] if version == 9 else [A, B])
    row = read.topics[1].partitions[0]
    assert (row.partition_index, row.committed_offset, row.committed_leader_epoch) == (1, 5, 2)
    assert row.committed_metadata == "text"


def test_a_commit_without_membership() -> None:
    request = commit_request("g", None, OFFSETS, TopicTable(["alpha", "beta"], IDS.get))
    assert (request.member_id, request.generation_id_or_member_epoch) == ("", -1)
    assert request.group_instance_id is None


@pytest.mark.parametrize("by_id", [False, True])
def test_results_of_a_commit(by_id: bool) -> None:
    table = TopicTable(["alpha"], IDS.get)
    rows = tuple(
        OffsetCommitResponsePartition(partition_index=n, error_code=code)
        for n, code in enumerate((0, 113))
    )
    stranger = OffsetCommitResponseTopic(name="gamma", topic_id=b"c" * 16, partitions=rows)
    topic = OffsetCommitResponseTopic(
        name="" if by_id else "alpha", topic_id=A if by_id else bytes(16), partitions=rows
    )
    results = commit_results(OffsetCommitResponse(topics=(topic, stranger)), table)
    assert set(results) == {("alpha", 0), ("alpha", 1)}
    assert results[TopicPartition("alpha", 0)] is None
    refusal = results[TopicPartition("alpha", 1)]
    assert refusal is not None
    assert (refusal.code, refusal.name) == (113, "STALE_MEMBER_EPOCH")


@pytest.mark.parametrize("version", [9, 10])
def test_a_fetch_of_committed_offsets(version: int) -> None:
    table = TopicTable(["alpha", "beta"], IDS.get)
    request = fetch_request("g", ("me", 4), OFFSETS, table)
    read = decode(OffsetFetchRequest, version, encode(request, version))
    (group,) = read.groups
    assert (group.group_id, group.member_id, group.member_epoch) == ("g", "me", 4)
    assert read.require_stable
    assert group.topics is not None
    assert [each.partition_indexes for each in group.topics] == [(0,), (1,)]


def test_without_membership_the_member_is_null() -> None:
    (group,) = fetch_request("g", None, OFFSETS, TopicTable(["alpha", "beta"], IDS.get)).groups
    assert (group.member_id, group.member_epoch) == (None, -1)


def test_what_is_committed() -> None:
    table = TopicTable(["alpha"], IDS.get)
    row = OffsetFetchResponsePartitions(partition_index=0, committed_offset=9)
    topic = OffsetFetchResponseTopics(topic_id=A, partitions=(row,))
    group = OffsetFetchResponseGroup(
        group_id="g", topics=(topic,), error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    )
    code, found = committed_offsets(OffsetFetchResponse(groups=(group,)), table)
    assert code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert found == {TopicPartition("alpha", 0): CommittedRow(9)}
    with pytest.raises(RemoteProtocolError, match="0 groups"):
        committed_offsets(OffsetFetchResponse(), table)
