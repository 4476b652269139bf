"""Requests of one connection: cut out of the bytes, served one at a time, answered in order."""

from __future__ import annotations

import struct

import pytest

from kip848_client.core.wire.messages.metadata import MetadataResponse
from mock_coordinator.connection import Close, ConnectionSettings
from mock_coordinator.core.outputs import NoReply, TornReply
from tests.unit.mock_coordinator.connection.connection_harness import (
    ConnectionHarness,
    metadata,
    reply_to,
    request,
)

LIMIT = 1000


def test_a_request_goes_to_the_broker_and_its_answer_comes_back() -> None:
    line = ConnectionHarness()
    line.feed(metadata(5))
    (received,) = line.submitted
    assert (received.connection, received.correlation, received.version) == (7, 5, 12)
    assert (received.client.client_id, received.client.host) == ("test", "/10.0.0.1")
    assert line.correlations == [5]
    assert line.closed is None


def test_a_thousand_requests_at_once_have_a_turn_each() -> None:
    line = ConnectionHarness()
    line.feed(b"".join(metadata(number) for number in range(1000)))
    assert line.correlations == [0], "the others wait for their turns"
    assert line.turns() == 999
    assert line.correlations == list(range(1000))


def test_nothing_is_served_before_the_answer_to_the_last_is_there() -> None:
    line = ConnectionHarness(is_prompt=False)
    line.feed(metadata(1) + metadata(2))
    assert len(line.submitted) == 1
    line.answer()
    line.turn()
    assert len(line.submitted) == 2


def test_nothing_is_served_before_the_last_answer_is_taken() -> None:
    line = ConnectionHarness(is_greedy=False)
    line.feed(metadata(1) + metadata(2))
    assert line.correlations == [1]
    assert not line.has_turn
    line.take()
    line.turn()
    assert line.correlations == [1, 2]


def test_what_comes_meanwhile_is_kept_and_then_no_more_is_read() -> None:
    line = ConnectionHarness(is_prompt=False)
    line.feed(metadata(1))
    assert line.reads
    line.feed(metadata(2))
    assert not line.reads
    line.feed(metadata(3)[:10])  # a driver may have read it already
    line.answer()
    line.turn()
    line.answer()
    assert not line.reads, "until all that has come is served"
    line.turn()
    assert line.reads
    line.feed(metadata(3)[10:])
    line.answer()
    assert line.correlations == [1, 2, 3]


def test_reading_stops_and_goes_on_each_time() -> None:
    line = ConnectionHarness(is_prompt=False)
    for _ in range(3):
        line.feed(metadata())
        line.feed(metadata())
        assert not line.reads
        line.answer()
        line.turn()
        line.answer()
        line.turn()
        assert line.reads
    assert len(line.correlations) == 6


def test_a_request_without_an_answer_makes_room_for_the_next() -> None:
    line = ConnectionHarness(is_prompt=False)
    line.feed(metadata(1) + metadata(2))
    line.in_hand.clear()
    line.perform(line.core.answered(line.now_ms, NoReply(7, 1)))
    line.turn()
    line.answer()
    assert line.correlations == [2]


def test_an_answer_that_nobody_waits_for_is_dropped() -> None:
    line = ConnectionHarness()
    line.feed(metadata(1))
    reply = reply_to(line.submitted[0])
    assert line.core.answered(line.now_ms, reply) == ()
    assert line.core.torn(line.now_ms, TornReply(reply, 3)) == ()


def test_a_torn_answer_is_the_last_word() -> None:
    line = ConnectionHarness(is_prompt=False, is_greedy=False)
    line.feed(metadata(1) + metadata(2))
    line.perform(line.core.torn(line.now_ms, TornReply(reply_to(line.in_hand.popleft()), 6)))
    assert len(line.written) == 6
    assert line.closed is None, "not before it is taken"
    line.take()
    assert line.closed == Close("a fault, 6 bytes into the response")
    assert not line.has_turn


def test_an_answer_that_its_version_cannot_carry_closes_the_connection() -> None:
    line = ConnectionHarness(is_prompt=False)
    line.feed(metadata())
    line.answer(MetadataResponse(brokers=None))  # type: ignore[arg-type]  # that is the point
    assert line.closed is not None
    assert not line.written


# -- frames that cannot be -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [-1, -(2**31), LIMIT + 1, 2**31 - 1])
def test_a_size_that_cannot_be_closes_before_the_rest_is_there(size: int) -> None:
    line = ConnectionHarness(ConnectionSettings(max_frame_bytes=LIMIT))
    line.feed(struct.pack(">i", size))
    assert line.closed == Close(
        f"a frame of {size} bytes is refused (at most {LIMIT} are accepted)"
    )


def test_a_frame_may_be_as_long_as_the_limit() -> None:
    line = ConnectionHarness(ConnectionSettings(max_frame_bytes=LIMIT))
    frame = metadata()
    line.feed(struct.pack(">i", LIMIT) + frame[4:].ljust(LIMIT, b"\0"))
    assert line.correlations == [1], "and bytes behind the request are ignored, as by Kafka"


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"abc", id="no header"),
        pytest.param(struct.pack(">hhih", 999, 0, 1, -1), id="an unknown API"),
        pytest.param(struct.pack(">hhih", 3, 99, 1, -1), id="an unknown version"),
        pytest.param(struct.pack(">hhih", 3, 1, 1, -1) + b"\x7f\xff\xff\xff", id="a broken body"),
    ],
)
def test_a_frame_that_cannot_be_read_ends_its_connection(payload: bytes) -> None:
    line = ConnectionHarness()
    line.feed(metadata(1) + struct.pack(">i", len(payload)) + payload + metadata(2))
    line.turns()
    assert line.correlations == [1], "what came before is answered, what comes behind is not read"
    assert line.closed is not None
    assert not line.closed.is_expected


# -- the end ---------------------------------------------------------------------------------------


def test_a_client_that_has_said_everything_is_answered_first() -> None:
    line = ConnectionHarness(is_prompt=False, is_greedy=False)
    line.feed(metadata(1) + metadata(2))
    line.end()
    for _ in range(2):
        assert line.closed is None
        line.answer()
        line.take()
        line.turn()
    assert line.correlations == [1, 2]
    assert line.closed == Close(is_expected=True)


def test_a_client_that_leaves_is_worth_no_line_but_half_a_frame_is() -> None:
    line = ConnectionHarness()
    line.end()
    assert line.closed == Close(None, is_expected=True)
    line = ConnectionHarness()
    line.feed(metadata()[:9])
    line.end()
    assert line.closed == Close("the client left 9 bytes of a frame", is_expected=True)


def test_the_broker_closes_once_and_nothing_follows() -> None:
    line = ConnectionHarness(is_prompt=False)
    line.feed(metadata(1) + metadata(2))
    line.perform(line.core.closed_by_broker("the broker restarts"))
    assert line.closed == Close("the broker restarts")
    assert line.core.closed_by_broker("the broker has ended") == ()
    line.answer()
    line.feed(metadata(3))
    line.end()
    line.advance(10**9)
    assert not line.written
    assert len(line.submitted) == 1


def test_a_connection_that_is_gone_wants_nothing() -> None:
    line = ConnectionHarness(is_prompt=False)
    line.feed(metadata(1))
    line.core.lost()
    line.answer()
    line.feed(metadata(2))
    line.perform(line.core.closed_by_broker("too late"))
    assert not line.written
    assert line.closed is None
    assert line.core.deadline_ms is None


def test_a_version_of_api_versions_that_is_not_known_is_for_the_broker() -> None:
    line = ConnectionHarness()
    body = struct.pack(">hhih", 18, 77, 3, -1) + b"\0anything"
    line.feed(struct.pack(">i", len(body)) + body)
    assert line.submitted[0].version == 77
    line = ConnectionHarness()
    line.feed(request("ApiVersions", 4, client_software_name="x", client_software_version="1"))
    assert line.closed is None
