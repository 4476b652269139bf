"""The metadata of Kafka Streams as values: what is written is read, and nothing else is."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kip848_client.core.client_assignors.streams import (
    AssignmentError,
    MemberReason,
    StreamsAssignmentMetadata,
    StreamsMemberMetadata,
    TaskId,
)
from kip848_client.core.types import TopicPartition
from kip848_client.errors import WireError

numbers = st.integers(0, 2**31 - 1)
tasks = st.builds(TaskId, numbers, numbers)
partitions = st.lists(st.builds(TopicPartition, st.text(max_size=5), numbers), max_size=3).map(
    tuple
)
members = st.builds(
    StreamsMemberMetadata,
    st.uuids(),
    st.binary(max_size=9),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    st.uuids(),
    st.dictionaries(tasks, st.integers(0, 2**63 - 1), max_size=3),
)
assignments = st.builds(
    StreamsAssignmentMetadata,
    st.lists(tasks, max_size=3).map(tuple),
    st.dictionaries(tasks, partitions, max_size=3),
    st.dictionaries(tasks, partitions, max_size=3),
    st.dictionaries(st.text(max_size=5), partitions, max_size=3),
)


@given(members)
def test_what_a_member_says_is_read_again(said: StreamsMemberMetadata) -> None:
    assert StreamsMemberMetadata.decode(said.encode()) == said


@given(assignments)
def test_what_a_member_is_told_is_read_again(told: StreamsAssignmentMetadata) -> None:
    assert StreamsAssignmentMetadata.decode(told.encode()) == told


@given(st.binary(max_size=40))
def test_other_bytes_are_an_error_and_nothing_worse(raw: bytes) -> None:
    for kind in (StreamsMemberMetadata, StreamsAssignmentMetadata):
        try:
            read = kind.decode(raw)
        except WireError:
            continue
        assert kind.decode(read.encode()) == read


def test_the_same_is_said_in_the_same_bytes() -> None:
    """A change of the bytes asks the group for a new assignment."""
    process = uuid.UUID(int=1)
    one = StreamsMemberMetadata(process, client_tags={"zone": "a", "cluster": "b"})
    other = StreamsMemberMetadata(process, client_tags={"cluster": "b", "zone": "a"})
    assert one.encode() == other.encode()
    with pytest.raises(WireError):
        StreamsMemberMetadata.decode(one.encode() + b"x")


def test_the_numbers_are_those_of_the_kip() -> None:
    assert [each.name for each in MemberReason] == [
        "NONE",
        "SHUTDOWN",
        "WARM_UP_READY",
        "WARM_UP_FAILED",
        "TOPOLOGY_CHANGED",
    ]
    assert list(MemberReason) == list(range(5))
    assert [each.name for each in AssignmentError] == [
        "NONE",
        "SHUTDOWN",
        "ASSIGNMENT_ERROR",
        "INCONSISTENT_TOPOLOGY",
    ]
    assert list(AssignmentError) == list(range(4))
