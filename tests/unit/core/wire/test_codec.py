"""The generated codecs: round trips, versions, tagged fields, and every way bytes can be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.wire import APIS, decode, encode
from kip848_client.core.wire._codec import source
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestClientAssignor,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
)
from kip848_client.core.wire.messages.fetch import (
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponseLeaderIdAndEpoch,
    FetchResponsePartitionData,
)
from kip848_client.core.wire.messages.metadata import MetadataRequest
from kip848_client.core.wire.messages.offset_commit import OffsetCommitRequest
from kip848_client.errors import UnsupportedVersion, WireError

EVERY_CLASS_AND_VERSION = [
    (cls, version)
    for api in APIS.values()
    for cls in (api.request, api.response)
    for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1)
]


def heartbeat(**fields: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", **fields)


@pytest.mark.parametrize(
    ("cls", "version"),
    EVERY_CLASS_AND_VERSION,
    ids=[f"{cls.__name__}-{version}" for cls, version in EVERY_CLASS_AND_VERSION],
)
def test_defaults_survive_a_round_trip(cls: type[Any], version: int) -> None:
    raw = encode(cls(), version)
    assert encode(decode(cls, version, raw), version) == raw


def test_known_bytes_of_a_steady_heartbeat() -> None:
    # written out by hand from the definition: two compact strings, an int32, nulls, no tags
    expected = b"\x02g" + b"\x02m" + b"\0\0\0\x07" + b"\0" + b"\0" + b"\xff\xff\xff\xff"
    expected += b"\0" + b"\0" + b"\0" + b"\0" + b"\0"
    assert encode(heartbeat(member_epoch=7), 1) == expected


def test_null_and_empty_are_different() -> None:
    none = decode(ConsumerGroupHeartbeatRequest, 1, encode(heartbeat(topic_partitions=None), 1))
    empty = decode(ConsumerGroupHeartbeatRequest, 1, encode(heartbeat(topic_partitions=()), 1))
    assert none.topic_partitions is None
    assert empty.topic_partitions == ()


def test_an_empty_assignment_is_not_a_missing_one() -> None:
    answer = ConsumerGroupHeartbeatResponse(assignment=ConsumerGroupHeartbeatResponseAssignment())
    again = decode(ConsumerGroupHeartbeatResponse, 1, encode(answer, 1))
    assert again.assignment == ConsumerGroupHeartbeatResponseAssignment()
    bare = decode(ConsumerGroupHeartbeatResponse, 1, encode(ConsumerGroupHeartbeatResponse(), 1))
    assert bare.assignment is None


def test_a_field_that_the_version_cannot_carry_is_refused_not_dropped() -> None:
    with pytest.raises(UnsupportedVersion, match="subscribed_topic_regex"):
        encode(heartbeat(subscribed_topic_regex="a.*"), 0)


def test_an_ignorable_field_is_dropped_silently() -> None:
    raw = encode(OffsetCommitRequest(group_id="g", group_instance_id=None), 2)
    assert decode(OffsetCommitRequest, 2, raw).group_id == "g"


def test_a_version_that_does_not_exist() -> None:
    with pytest.raises(UnsupportedVersion, match="0 to 1, not 9"):
        encode(heartbeat(), 9)
    with pytest.raises(UnsupportedVersion):
        decode(ConsumerGroupHeartbeatRequest, -1, b"")


def test_null_where_the_version_forbids_it() -> None:
    with pytest.raises(WireError, match="null is not allowed"):
        encode(MetadataRequest(topics=None), 0)
    with pytest.raises(WireError, match="null is not allowed"):
        decode(MetadataRequest, 0, b"\xff\xff\xff\xff")


def test_our_tags_are_skipped_by_a_reader_without_them_and_read_by_us() -> None:
    offered = ConsumerGroupHeartbeatRequestClientAssignor(name="mine", maximum_version=3)
    raw = encode(heartbeat(client_assignors=(offered,)), 1)
    assert decode(ConsumerGroupHeartbeatRequest, 1, raw).client_assignors == (offered,)


def test_unknown_tagged_fields_are_skipped_at_every_level() -> None:
    raw = encode(heartbeat(member_epoch=1), 1)
    tagged = raw[:-1] + b"\x02" + b"\x63\x03abc" + b"\xe4\x01\x00"  # tags 99 and 228
    assert decode(ConsumerGroupHeartbeatRequest, 1, tagged) == heartbeat(member_epoch=1)


def test_every_cut_is_a_wire_error() -> None:
    owned = ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=bytes(16), partitions=(1, 2))
    raw = encode(heartbeat(subscribed_topic_names=("a", "bc"), topic_partitions=(owned,)), 1)
    for cut in range(len(raw)):
        with pytest.raises(WireError):
            decode(ConsumerGroupHeartbeatRequest, 1, raw[:cut])


@pytest.mark.parametrize(
    "bytes_",
    [
        pytest.param(b"\x02g\x02m\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\x0f", id="2^32 topics"),
        pytest.param(b"\x02g\xff\xff\xff\xff\xff\x0f", id="varint of six bytes"),
        pytest.param(b"\x02g\x02m\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x00extra", id="trailing bytes"),
        pytest.param(b"\x02\xff\x02m\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", id="not UTF-8"),
        pytest.param(b"\x02g\x02m\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x7f", id="127 tags in no bytes"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_malformed_bytes(bytes_: bytes) -> None:
    with pytest.raises(WireError):
        decode(ConsumerGroupHeartbeatRequest, 1, bytes_)


def test_a_classic_negative_length_other_than_null_is_refused() -> None:
    with pytest.raises(WireError, match="negative"):
        decode(MetadataRequest, 1, b"\xff\xff\xff\xfe")


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(heartbeat(member_epoch=2**31), id="int32 overflow"),
        pytest.param(heartbeat(rack_id="x" * 40000), id="string too long"),
        pytest.param(heartbeat(rack_id=7), id="not a string"),
        pytest.param(
            heartbeat(
                topic_partitions=(ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=b"short"),)
            ),
            id="short uuid",
        ),
        pytest.param(heartbeat(subscribed_topic_names=(None,)), id="null in an array"),
        pytest.param(heartbeat(rack_id="\ud800"), id="lone surrogate"),
    ],
)
def test_values_that_do_not_fit(message: ConsumerGroupHeartbeatRequest) -> None:
    with pytest.raises(WireError):
        encode(message, 1)


def test_any_bytes_like_object_can_be_read() -> None:
    raw = encode(heartbeat(), 1)
    for form in (bytes(raw), bytearray(raw), memoryview(raw)):
        assert decode(ConsumerGroupHeartbeatRequest, 1, form) == heartbeat()


def test_the_generated_source_can_be_printed() -> None:
    text = source(ConsumerGroupHeartbeatRequest, 1)
    assert "def run(buffer, message):" in text
    assert "def run(data, p, size):" in text


def test_a_struct_that_is_not_there_is_made_once_for_all_rows() -> None:
    """A Fetch answer has three of them in each row, and may have thousands of rows."""
    rows = tuple(FetchResponsePartitionData(partition_index=n) for n in range(3))
    rows[1].current_leader = FetchResponseLeaderIdAndEpoch(leader_id=7, leader_epoch=8)
    topic = FetchResponseFetchableTopicResponse(topic_id=b"t" * 16, partitions=rows)
    raw = encode(FetchResponse(responses=(topic,)), 17)
    first, second, third = decode(FetchResponse, 17, raw).responses[0].partitions
    assert first.current_leader is third.current_leader
    assert first.current_leader == FetchResponseLeaderIdAndEpoch()
    assert second.current_leader == FetchResponseLeaderIdAndEpoch(leader_id=7, leader_epoch=8)
    again = decode(FetchResponse, 17, raw).responses[0].partitions
    assert again[0].current_leader is not first.current_leader
