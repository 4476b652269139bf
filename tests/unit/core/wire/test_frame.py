"""Frames and headers: cutting streams, refusing sizes, header versions."""

from __future__ import annotations

import struct

import pytest

from kip848_client.core.wire import (
    APIS,
    Framer,
    api_named,
    negotiate,
    read_request,
    read_request_header,
    read_response,
    write_request,
    write_response,
)
from kip848_client.core.wire.messages.api_versions import ApiVersionsResponse
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kip848_client.core.wire.messages.offset_delete import OffsetDeleteRequest
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import UnsupportedVersion, WireError

HEARTBEAT = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)


def test_a_request_survives_its_frame() -> None:
    frame = write_request(HEARTBEAT, 1, 42, "me")
    header, message = read_request(Framer().feed(frame)[0])
    assert (header.api_key, header.api_version, header.correlation_id) == (68, 1, 42)
    assert header.client_id == "me"
    assert message == HEARTBEAT


def test_a_null_client_id_is_not_an_empty_one() -> None:
    for client_id in (None, "", "ü"):
        header, _ = read_request(write_request(HEARTBEAT, 1, 1, client_id)[4:])
        assert header.client_id == client_id


def test_a_classic_header_has_no_tags() -> None:
    request = OffsetDeleteRequest(group_id="g")
    frame = write_request(request, 0, 5, "c")
    assert frame[4:] == struct.pack(">hhih", 47, 0, 5, 1) + b"c" + b"\0\x01g" + b"\0\0\0\0"
    assert read_request(frame[4:])[1] == request


def test_a_response_survives_its_frame() -> None:
    api = APIS[68]
    answer = ConsumerGroupHeartbeatResponse(member_id="m", member_epoch=3)
    frame = write_response(answer, api, 1, 7)
    assert read_response(frame[4:], api, 1) == (7, answer)


def test_api_versions_answers_under_the_old_header() -> None:
    api = APIS[18]
    frame = write_response(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), api, 3, 9)
    assert frame[4:8] == b"\0\0\0\x09"
    assert read_response(frame[4:], api, 3)[1].error_code == ErrorCode.UNSUPPORTED_VERSION
    assert api.response_header_version(3) == 0


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 1000])
def test_the_framer_does_not_mind_where_a_stream_is_split(step: int) -> None:
    stream = b"".join(write_request(HEARTBEAT, 1, n, "c") for n in range(5))
    framer = Framer()
    frames = []
    for start in range(0, len(stream), step):
        frames += framer.feed(stream[start : start + step])
    assert [read_request(frame)[0].correlation_id for frame in frames] == [0, 1, 2, 3, 4]
    assert framer.buffered_bytes == 0


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 1025])
def test_a_size_out_of_bounds_is_refused_before_anything_is_read(size: int) -> None:
    framer = Framer(max_bytes=1024)
    assert framer.feed(struct.pack(">i", size)[:3]) == []
    with pytest.raises(WireError, match="refused"):
        framer.feed(struct.pack(">i", size)[3:])


def test_an_empty_frame_is_a_frame_but_not_a_request() -> None:
    assert Framer().feed(b"\0\0\0\0") == [b""]
    with pytest.raises(WireError):
        read_request(b"")


def test_unknown_key_and_unknown_version_still_give_their_header() -> None:
    payload = struct.pack(">hhih", 9999, 3, 17, -1)
    assert read_request_header(payload)[0].correlation_id == 17
    with pytest.raises(UnsupportedVersion):
        read_request(payload)
    payload = struct.pack(">hhih", 18, 77, 18, -1) + b"whatever"
    assert read_request_header(payload)[0].api_version == 77
    with pytest.raises(UnsupportedVersion):
        read_request(payload)


@pytest.mark.parametrize(
    "payload",
    [
        struct.pack(">hhih", 68, 1, 1, -2),
        struct.pack(">hhih", 68, 1, 1, 100) + b"short",
        struct.pack(">hhih", 68, 1, 1, 1) + b"\xff\0",
        struct.pack(">hhih", 68, 1, 1, -1) + b"\x05",
        struct.pack(">hhih", 68, 1, 1, -1) + b"\x01\x01\x7fx",
        struct.pack(">hhih", 68, 1, 1, -1),
    ],
)
def test_broken_headers(payload: bytes) -> None:
    with pytest.raises(WireError):
        read_request(payload)


def test_unknown_tags_of_a_header_are_skipped() -> None:
    frame = write_request(HEARTBEAT, 1, 1, None)[4:]
    header = struct.pack(">hhih", 68, 1, 1, -1)
    assert frame.startswith(header + b"\0")
    tagged = header + b"\x01\x05\x02ab" + frame[len(header) + 1 :]
    assert read_request(tagged)[1] == HEARTBEAT


def test_negotiation_names_both_ranges() -> None:
    api = api_named("ConsumerGroupHeartbeat")
    assert negotiate(api, (0, 1)) == 1
    assert negotiate(api, (0, 9)) == 1
    assert negotiate(api, (0, 1), at_most=0) == 0
    with pytest.raises(UnsupportedVersion, match="does not offer ConsumerGroupHeartbeat"):
        negotiate(api, None)
    with pytest.raises(UnsupportedVersion, match=r"offers 0 to 0, this client needs 1 to 1"):
        negotiate(api, (0, 0), at_least=1)


def test_the_registry_pairs_requests_and_responses() -> None:
    for key, api in APIS.items():
        assert api.key == key == api.request.API_KEY == api.response.API_KEY
        assert api.request.VERSIONS == api.response.VERSIONS
        assert api.request.__name__ == f"{api.name}Request"
