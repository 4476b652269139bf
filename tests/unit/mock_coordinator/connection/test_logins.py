"""Who a client is: what a connection of a SASL listener lets through, and with which principal."""

from __future__ import annotations

import struct
from dataclasses import replace

from kip848_client.core.wire import Framer, api_named, read_response
from mock_coordinator.connection import AuthenticatorFactory, Close, ConnectionSettings
from mock_coordinator.core.authentication.sasl import SaslRules
from tests.support.security.scram_client import ScramClient
from tests.unit.mock_coordinator.connection.connection_harness import (
    SASL,
    ConnectionHarness,
    metadata,
    request,
    token,
)

LOGIN = b"\0alice\0open sesame"


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def shake(mechanism: str = "PLAIN", version: int = 1) -> bytes:
    return request("SaslHandshake", version, mechanism=mechanism)


def logged_in(factory: AuthenticatorFactory = SASL) -> ConnectionHarness:
    line = ConnectionHarness(factory=factory)
    line.feed(shake() + token(LOGIN))
    line.turns()
    return line


def test_a_client_that_is_authenticated_is_who_it_says() -> None:
    line = logged_in()
    assert not line.submitted, "the broker hears nothing of the login"
    line.feed(metadata(2) + metadata(3))
    line.turns()
    assert [each.client.principal for each in line.submitted] == ["User:alice"] * 2
    assert {each.client.listener for each in line.submitted} == {"SASL"}
    assert line.correlations[2:] == [2, 3]


def test_tokens_without_a_frame_of_their_own_are_those_of_handshake_version_0() -> None:
    line = ConnectionHarness(factory=SASL)
    line.feed(shake(version=0) + framed(LOGIN) + metadata(9))
    line.turns()
    _, answer, metadata_answer = Framer().feed(line.written)
    assert answer == b"", "PLAIN's answer has no bytes"
    assert struct.unpack_from(">i", metadata_answer) == (9,)
    assert line.submitted[0].client.principal == "User:alice"


def test_a_wrong_token_of_version_0_has_no_answer() -> None:
    line = ConnectionHarness(factory=SASL)
    line.feed(shake(version=0) + framed(b"\0alice\0no"))
    line.turns()
    line.advance(100)
    assert len(Framer().feed(line.written)) == 1
    assert line.closed is not None


def test_scram_takes_two_tokens() -> None:
    line = ConnectionHarness(factory=SASL)
    line.feed(shake("SCRAM-SHA-256"))
    client = ScramClient("alice", "open sesame")
    line.feed(token(client.first()))
    frames = Framer().feed(line.written)
    _, first = read_response(frames[1], api_named("SaslAuthenticate"), 2)
    line.feed(token(client.final(first.auth_bytes)))
    line.feed(metadata())
    assert line.submitted[0].client.principal == "User:alice"


def test_api_versions_may_be_asked_once_before_the_login() -> None:
    asked = request("ApiVersions", 3, client_software_name="x", client_software_version="1")
    line = ConnectionHarness(factory=SASL)
    line.feed(asked)
    assert line.submitted[0].client.principal == "User:ANONYMOUS"
    line.feed(asked)
    assert line.closed == Close("ApiVersions before authentication")


def test_a_request_before_the_login_closes_without_a_word() -> None:
    line = ConnectionHarness(factory=SASL)
    line.feed(metadata())
    assert line.closed == Close("Metadata before authentication")
    assert not line.submitted
    assert not line.written


def test_a_request_within_the_login_is_refused_late() -> None:
    line = ConnectionHarness(factory=SASL)
    line.feed(shake() + metadata(4))
    line.turns()
    assert line.closed is None
    line.advance(100)
    assert line.closed == Close("Metadata during authentication")
    assert not line.submitted


def test_garbage_behind_a_login_closes() -> None:
    line = logged_in()
    line.feed(framed(b"\xff" * 20))
    assert line.closed is not None
    assert not line.submitted


def test_frames_may_be_long_only_after_the_login() -> None:
    settings = ConnectionSettings(max_frame_bytes=5000, max_sasl_frame_bytes=300)
    line = ConnectionHarness(settings, SASL)
    line.feed(shake() + token(LOGIN))
    line.turns()
    line.feed(framed(metadata()[4:].ljust(5000, b"\0")))
    assert len(line.submitted) == 1
    line = ConnectionHarness(settings, SASL)
    line.feed(shake() + token(LOGIN.ljust(300)))
    line.turns()
    line.advance(100)
    assert line.closed is not None
    assert line.closed.why is not None
    assert "at most 300" in line.closed.why


def test_a_session_that_is_over_closes_with_the_next_request() -> None:
    line = logged_in(replace(SASL, rules=SaslRules(max_reauth_ms=5000)))
    line.advance(4999)
    line.feed(metadata())
    assert len(line.submitted) == 1
    line.advance(1)
    line.feed(metadata())
    assert line.closed == Close("the session is over and was not renewed")


def test_a_session_is_renewed_and_its_frames_are_short_meanwhile() -> None:
    factory = replace(SASL, rules=SaslRules(max_reauth_ms=5000))
    line = logged_in(factory)
    line.advance(3000)
    line.feed(shake() + token(LOGIN))
    line.turns()
    line.advance(4000)
    line.feed(metadata())
    assert len(line.submitted) == 1
    line.feed(shake())
    line.feed((600_000).to_bytes(4, "big"))
    line.advance(100)
    assert line.closed is not None
