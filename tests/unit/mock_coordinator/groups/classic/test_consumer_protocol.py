"""The bytes of consumers inside JoinGroup and SyncGroup."""

from __future__ import annotations

import pytest
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from hypothesis import given
from hypothesis import strategies as st

from kip848_client.errors import WireError
from mock_coordinator.core.groups.records.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    TopicPartitions,
    has_impossible_length,
    read_assignment,
    read_subscription,
    subscribed_topics,
    write_assignment,
    write_subscription,
)

OWNED = (TopicPartitions(topic="foo", partitions=(0, 1)),)


@pytest.mark.parametrize("version", range(4))
def test_every_version_comes_back(version: int) -> None:
    said = ConsumerSubscription(
        topics=("foo", "bar"),
        user_data=b"x",
        owned_partitions=OWNED if version >= 1 else (),
        generation_id=7 if version >= 2 else -1,
        rack_id="r" if version >= 3 else None,
    )
    raw = write_subscription(said, version)
    assert read_subscription(raw) == (version, said)
    assert subscribed_topics(raw) == ("foo", "bar")
    given_ = ConsumerAssignment(assigned_partitions=OWNED, user_data=None)
    assert read_assignment(write_assignment(given_, version)) == (version, given_)


def test_aiokafka_and_we_understand_each_other() -> None:
    theirs = ConsumerProtocolMemberMetadata(0, ["foo"], b"data").encode()
    said = ConsumerSubscription(topics=("foo",), user_data=b"data")
    assert read_subscription(theirs) == (0, said)
    assert write_subscription(said, 0) == theirs
    assigned = ConsumerProtocolMemberAssignment(0, [("foo", [0, 1])], b"").encode()
    given_ = ConsumerAssignment(assigned_partitions=OWNED, user_data=b"")
    assert read_assignment(assigned) == (0, given_)
    assert write_assignment(given_, 0) == assigned


def test_what_a_newer_version_adds_is_left_alone() -> None:
    said = ConsumerSubscription(topics=("foo",), rack_id="r")
    raw = (9).to_bytes(2, "big") + write_subscription(said, 3)[2:] + b"more"
    assert read_subscription(raw) == (9, said)
    assert subscribed_topics(raw) == ("foo",)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x00",
        b"\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff",  # version -1
        b"\x00\x00\x00\x00\x00\x01\x00\x09foo",  # cut
        b"\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff",  # no topics at all
        b"\x00\x00\x7f\xff\xff\xff",  # two thousand million topics
    ],
)
def test_what_cannot_be_read_is_an_error(raw: bytes) -> None:
    with pytest.raises(WireError):
        read_subscription(raw)


@pytest.mark.parametrize(
    ("raw", "impossible"),
    [
        (b"", False),
        (b"\0\0", False),
        (b"\0\0\xff\xff\xff\xff\0\0\0\0", True),  # minus one topic
        (b"\0\0\0\0\0\1\0", False),  # cut
        (b"\0\0\0\0\0\x09\0\1a", True),  # nine topics in three bytes
        (b"\0\0\0\0\0\1\0\x09foo", True),  # a name of nine bytes in three
        (b"\0\0\0\0\0\1\xff\xff\xff\xff\xff\xff", True),  # a name of minus one
        (b"\0\0\0\0\0\1\0\1a", False),  # no user data
        (b"\0\0\0\0\0\0\0\0\0\x09ab", True),  # nine bytes of user data in two
        (b"\0\0\0\0\0\0\xff\xff\xff\0", False),  # less than none is none
        (b"\0\0\0\0\0\0\0\0\0\0", False),
    ],
)
def test_cut_short_is_not_nonsense(raw: bytes, impossible: bool) -> None:
    """As brokers 4.0.2 to 4.3.1 were seen to tell one from the other."""
    assert has_impossible_length(raw) is impossible


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    topics = subscribed_topics(raw)
    assert topics is None or all(isinstance(topic, str) for topic in topics)
    for read in (read_subscription, read_assignment):
        try:
            read(raw)
        except WireError:
            continue
