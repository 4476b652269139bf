"""Our messages in aiokafka's shape, and aiokafka's errors in ours."""

from __future__ import annotations

import io
from typing import Any

import pytest
from aiokafka import errors as theirs

from kip848_client.core.ports import ConnectionBroken
from kip848_client.core.wire import api_named, read_request, write_response
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.errors import (
    BrokerError,
    Kip848Error,
    RequestTimedOut,
    TopicAuthorizationFailed,
    UnsupportedVersion,
)
from kip848_client.runtime.net._errors import translated
from kip848_client.runtime.net._request import Garbled, WireRequest

API = api_named("ConsumerGroupHeartbeat")
REQUEST = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=3)


def test_the_highest_common_version_is_written() -> None:
    prepared = WireRequest(REQUEST, (0, 32767)).prepare({68: (0, 9)})
    header = prepared.build_request_header(correlation_id=7, client_id="me")
    written = header.encode() + prepared.encode()
    read, message = read_request(written)
    assert (read.api_version, read.correlation_id, read.client_id) == (1, 7, "me")
    assert message == REQUEST


@pytest.mark.parametrize("offered", [{}, {68: (0, 0)}, {68: (2, 3)}])
def test_no_common_version_is_an_error(offered: dict[int, tuple[int, int]]) -> None:
    with pytest.raises(UnsupportedVersion, match="ConsumerGroupHeartbeat"):
        WireRequest(REQUEST, (1, 1)).prepare(offered)


def answer(prepared: Any, frame: bytes) -> Any:
    stream = io.BytesIO(frame)
    header = prepared.parse_response_header(stream)
    return header.correlation_id, prepared.RESPONSE_TYPE.decode(stream)


def test_an_answer_is_read() -> None:
    prepared = WireRequest(REQUEST, (1, 1)).prepare({68: (0, 1)})
    response = ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=4)
    frame = write_response(response, API, 1, 7)[4:]
    assert answer(prepared, frame) == (7, response)


@pytest.mark.parametrize("frame", [b"", b"\0\0", b"\0\0\0\7", b"\0\0\0\7" + b"\xff" * 20])
def test_garbage_is_a_value_and_not_an_exception(frame: bytes) -> None:
    """An exception would end aiokafka's reader with an error that says nothing."""
    prepared = WireRequest(REQUEST, (1, 1)).prepare({68: (0, 1)})
    correlation, read = answer(prepared, frame)
    assert correlation == (7 if len(frame) >= 4 else -1)
    assert isinstance(read, Garbled)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (theirs.KafkaConnectionError("gone"), ConnectionBroken),
        (theirs.NodeNotReadyError("not yet"), ConnectionBroken),
        (OSError("refused"), ConnectionBroken),
        (TimeoutError(), RequestTimedOut),
        (theirs.RequestTimedOutError(), RequestTimedOut),
        (theirs.IncompatibleBrokerVersion("old"), UnsupportedVersion),
        (theirs.TopicAuthorizationFailedError("t"), TopicAuthorizationFailed),
        (theirs.OffsetOutOfRangeError({}), BrokerError),
        (theirs.for_code(4242)("?"), BrokerError),
        (theirs.RecordTooLargeError("%s is larger than %s", "t-0", 5), Kip848Error),
    ],
)
def test_their_errors_are_ours(error: Exception, expected: type[Kip848Error]) -> None:
    result = translated(error, "Fetch of t-0")
    assert isinstance(result, expected)
    assert "Fetch of t-0" in str(result)


def test_a_template_is_filled_in() -> None:
    error = theirs.RecordTooLargeError("%s is larger than %s", "t-0", 5)
    assert "t-0 is larger than 5" in str(translated(error, "Fetch"))


def test_ours_stay_as_they_are() -> None:
    error = Kip848Error("x")
    assert translated(error, "where") is error


def test_a_cause_is_told() -> None:
    error = theirs.KafkaConnectionError("closed")
    error.__cause__ = ValueError("bad bytes")
    assert "bad bytes" in str(translated(error, "Fetch"))
