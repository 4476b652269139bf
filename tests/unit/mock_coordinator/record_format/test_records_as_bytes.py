"""Records to bytes and back, without Kafka at hand: examples that real brokers wrote, and laws."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.types import TopicId
from mock_coordinator.core.groups.record_format import (
    RecordFormatError,
    decode_record,
    encode_record,
)
from mock_coordinator.core.groups.records.assignor_values import AssignmentMetadata, ClientAssignor
from mock_coordinator.core.groups.records.state_records import (
    ClassicGeneration,
    ClassicGroupMember,
    CurrentAssignment,
    CurrentMemberAssignment,
    GroupMetadata,
    MemberMetadata,
    MemberSubscription,
    OffsetAndMetadata,
    OffsetCommit,
    StateRecord,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TargetEpoch,
)
from mock_coordinator.core.profiles import PROFILES, profile_named
from tests.support.examples import examples
from tests.unit.mock_coordinator.record_format.any_record import any_draft_record, any_record

EVERY_PROFILE = pytest.mark.parametrize("profile", tuple(PROFILES))


@EVERY_PROFILE
@settings(max_examples=examples(120))
@given(data=st.data())
def test_what_is_written_is_read_again(profile: str, data: st.DataObject) -> None:
    kafka = profile_named(profile)
    record = data.draw(any_record(kafka) | any_draft_record())
    assert decode_record(*encode_record(kafka, record)) == record


# Bytes of 4.0.2 and 4.4.0, of a commit by name at v9 or v8 with metadata "md" and leader epoch 7.
@pytest.mark.parametrize(
    ("profile", "topic_id", "written"),
    [
        ("4.0", "00" * 16, "000300000000000000050000000700026d64000001a1fcecea6f"),
        ("4.1", "00" * 16, "0004000000000000000500000007036d64000001a1fcecea6f00"),
        (
            "4.4",
            "2e027c2495614fd6b56008c7379ecac1",
            (
                "0004000000000000000500000007036d64000001a1fcecea6f"
                "0100102e027c2495614fd6b56008c7379ecac1"
            ),
        ),
    ],
)
def test_an_offset_as_brokers_write_it(profile: str, topic_id: str, written: str) -> None:
    value = OffsetAndMetadata(
        offset=5,
        leader_epoch=7,
        metadata="md",
        commit_timestamp_ms=0x1A1FCECEA6F,
        topic_id=TopicId(bytes.fromhex(topic_id)),
    )
    key, stored = encode_record(profile_named(profile), OffsetCommit("s8", "foo", 0, value))
    assert key.hex() == "0001000273380003666f6f00000000"
    assert stored is not None
    assert stored.hex() == written


@EVERY_PROFILE
def test_an_offset_with_a_time_of_expiry_is_version_1_without_topic_id(profile: str) -> None:
    value = OffsetAndMetadata(
        offset=5,
        metadata="md",
        commit_timestamp_ms=0x1A1FCEC8212,
        expire_timestamp_ms=0x1A1FCED6C72,
    )
    key, stored = encode_record(profile_named(profile), OffsetCommit("s", "foo", 0, value))
    assert stored is not None
    assert stored.hex() == "0001000000000000000500026d64000001a1fcec8212000001a1fced6c72"
    assert decode_record(key, stored) == OffsetCommit("s", "foo", 0, value)


def test_a_classic_group_as_brokers_write_it() -> None:
    member = ClassicGroupMember(
        member_id="m-1",
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=20_000,
        session_timeout_ms=10_000,
        subscription=b"\0\1xx",
        assignment=b"asg",
    )
    generation = ClassicGeneration(
        protocol_type="consumer",
        generation=1,
        protocol="range",
        leader="m-1",
        state_timestamp_ms=0x1A1FCECEC7E,
        members=(member,),
    )
    key, stored = encode_record(profile_named("4.4"), GroupMetadata("cl", generation))
    assert key.hex() == "00020002636c"
    assert stored is not None
    assert stored.hex() == (
        "00030008636f6e73756d657200000001000572616e676500036d2d31000001a1fcecec7e"
        "0000000100036d2d31ffff000163000a2f3132372e302e302e3100004e200000271000000004000178780000"
        "0003617367"
    )


def test_the_formats_of_kafka_before_0_11_are_read() -> None:
    legacy = bytes.fromhex("0000" + "000167" + "000174" + "00000002")
    value = bytes.fromhex("0000" + "0000000000000009" + "00026d64" + "0000000000000064")
    stored = OffsetAndMetadata(offset=9, metadata="md", commit_timestamp_ms=100)
    assert decode_record(legacy, value) == OffsetCommit("g", "t", 2, stored)
    group = bytes.fromhex("0002000167")
    generation = bytes.fromhex(
        "0000" + "0001780000000200017000016c" + "00000001" + "00016d000163000168"
        "00002710" + "00000000" + "00000000"
    )
    read = decode_record(group, generation)
    assert isinstance(read, GroupMetadata)
    assert read.value is not None
    assert read.value.members[0].rebalance_timeout_ms == 10_000
    assert read.value.state_timestamp_ms == -1


def test_what_client_side_assignors_add_is_kept_and_costs_nothing_when_unset() -> None:
    kafka = profile_named("4.4")
    metadata = AssignmentMetadata(3, b"data", 1)
    records: list[StateRecord] = [
        MemberMetadata(
            "g", "m", MemberSubscription(client_assignors=(ClientAssignor("a", 0, 2, 1, 2, b"x"),))
        ),
        TargetAssignmentMetadata("g", TargetEpoch(5, 7, 2, assignor="a")),
        TargetAssignmentMember("g", "m", {}, metadata),
        CurrentMemberAssignment("g", "m", CurrentAssignment(metadata=metadata)),
    ]
    for record in records:
        assert decode_record(*encode_record(kafka, record)) == record
    _, plain = encode_record(kafka, TargetAssignmentMember("g", "m", {}))
    assert plain == b"\0\0\1\0"
    _, plain = encode_record(kafka, TargetAssignmentMetadata("g", TargetEpoch(5)))
    assert plain == b"\0\0\0\0\0\5\0"


def test_records_of_other_kinds_of_groups_are_skipped() -> None:
    for key_type in (9, 10, 15, 17, 22, 32767):
        assert decode_record(key_type.to_bytes(2, "big") + b"anything", b"\0\0\xff") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", None),
        (b"\0", None),
        (b"\0\3", None),
        (b"\0\3\0\1g", b"\0"),
        (b"\0\3\0\1g", b"\0\7\0\0\0\1\0"),
        (b"\0\3\0\1gx", b"\0\0\0\0\0\1\0"),
        (b"\0\3\0\1g", b"\0\0\0\0\0\1\0\0"),
        (b"\0\3\0\1\xff", None),
        # one epoch for two partitions
        (
            b"\0\x08\0\1g\0\1m",
            bytes.fromhex("0000000000010000000000" + "02" + "11" * 16 + "030000000000000001"
                          + "01000502" + "00000001" + "0100"),
        ),
    ],
)  # fmt: skip
def test_broken_records_are_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(RecordFormatError):
        decode_record(key, value)


@settings(max_examples=examples(300))
@given(
    st.integers(-1, 20) | st.integers(10482, 10489),
    st.binary(max_size=60),
    st.none() | st.binary(max_size=80),
)
def test_bytes_of_any_kind_are_a_record_or_refused(
    key_type: int, key: bytes, value: bytes | None
) -> None:
    with contextlib.suppress(RecordFormatError):
        decode_record(key_type.to_bytes(2, "big", signed=True) + key, value)


def test_a_name_that_does_not_fit_is_refused() -> None:
    with pytest.raises(RecordFormatError):
        encode_record(profile_named("4.4"), GroupMetadata("x" * 40_000))
