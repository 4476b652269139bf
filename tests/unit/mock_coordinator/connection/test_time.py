"""How long anything on a connection may take, to the millisecond, and with which words it ends."""

from __future__ import annotations

from mock_coordinator.connection import Close, ConnectionSettings
from tests.unit.mock_coordinator.connection.connection_harness import (
    SASL,
    ConnectionHarness,
    metadata,
    request,
    token,
)

IDLE_MS = 1500
SETTINGS = ConnectionSettings(idle_ms=IDLE_MS, failed_login_delay_ms=400)


def test_a_connection_on_which_nothing_happens_is_idle() -> None:
    line = ConnectionHarness(SETTINGS)
    line.advance(IDLE_MS - 1)
    assert line.closed is None
    line.advance(1)
    assert line.closed == Close("idle for 1.5 s", is_expected=True)
    assert line.core.deadline_ms is None


def test_whatever_the_client_says_counts() -> None:
    line = ConnectionHarness(SETTINGS)
    for byte in metadata() + metadata()[:5]:
        line.advance(IDLE_MS - 1)
        line.feed(bytes([byte]))
    assert len(line.submitted) == 1
    line.advance(IDLE_MS)
    assert line.closed == Close("idle for 1.5 s", is_expected=True), "half a frame or not"


def test_without_a_limit_it_may_be_idle_for_ever() -> None:
    line = ConnectionHarness(ConnectionSettings(idle_ms=None))
    assert line.core.deadline_ms is None
    line.advance(10**12)
    line.feed(metadata())
    assert line.correlations == [1]


def test_a_request_that_is_never_answered_does_not_keep_its_connection() -> None:
    line = ConnectionHarness(SETTINGS, is_prompt=False)
    line.feed(metadata())
    line.advance(IDLE_MS - 1)
    assert line.closed is None
    line.advance(1)
    assert line.closed == Close("its request has waited for 1.5 s")


def test_an_answer_begins_the_time_anew() -> None:
    line = ConnectionHarness(SETTINGS, is_prompt=False)
    line.feed(metadata())
    line.advance(IDLE_MS - 1)
    line.answer()
    line.advance(IDLE_MS - 1)
    assert line.closed is None
    line.advance(1)
    assert line.closed == Close("idle for 1.5 s", is_expected=True)


def test_a_client_that_does_not_read_is_closed() -> None:
    line = ConnectionHarness(SETTINGS, is_greedy=False)
    line.feed(metadata() + metadata())
    line.advance(IDLE_MS - 1)
    line.take()
    line.turn()
    line.advance(IDLE_MS - 1)
    assert line.closed is None
    line.advance(1)
    assert line.closed == Close("did not read its reply for 1.5 s")


def test_a_request_that_is_here_is_served_although_the_time_is_over() -> None:
    line = ConnectionHarness(SETTINGS)
    line.feed(metadata(1) + metadata(2))
    assert line.has_turn
    line.advance(IDLE_MS)
    assert line.closed is None
    line.turn()
    assert line.correlations == [1, 2]
    line.advance(IDLE_MS)
    assert line.closed == Close("idle for 1.5 s", is_expected=True)


def test_ticks_that_come_early_are_harmless() -> None:
    line = ConnectionHarness(SETTINGS)
    assert line.core.tick(0) == ()
    assert line.core.tick(line.now_ms + IDLE_MS - 1) == ()


# -- TLS -------------------------------------------------------------------------------------------


def test_a_tls_handshake_that_is_never_over_is_given_up() -> None:
    line = ConnectionHarness(SETTINGS, is_tls=True)
    line.advance(IDLE_MS - 1)
    assert line.closed is None
    line.advance(1)
    assert line.closed == Close("its TLS handshake was not over after 1.5 s")


def test_a_tls_handshake_in_time_begins_the_time_anew() -> None:
    line = ConnectionHarness(SETTINGS, is_tls=True)
    assert not line.core.is_reading
    line.advance(IDLE_MS - 1)
    line.perform(line.core.secured(line.now_ms, line.authenticator))
    line.advance(IDLE_MS - 1)
    line.feed(metadata())
    assert line.correlations == [1]


def test_tls_that_fails_says_when() -> None:
    line = ConnectionHarness(SETTINGS, is_tls=True)
    line.perform(line.core.broken("HTTP_REQUEST"))
    assert line.closed == Close("the TLS handshake failed: HTTP_REQUEST")
    line.perform(line.core.secured(line.now_ms, line.authenticator))
    line.feed(metadata())
    assert not line.submitted
    line = ConnectionHarness(SETTINGS)
    line.perform(line.core.broken("DECRYPTION_FAILED"))
    assert line.closed == Close("TLS failed: DECRYPTION_FAILED")


# -- failed logins ---------------------------------------------------------------------------------


def test_a_failed_login_is_answered_late_and_then_closed() -> None:
    line = ConnectionHarness(SETTINGS, SASL)
    line.feed(request("SaslHandshake", 1, mechanism="PLAIN"))
    before = len(line.written)
    line.feed(token(b"\0alice\0wrong"))
    line.advance(399)
    assert len(line.written) == before
    assert line.closed is None
    line.advance(1)
    assert len(line.written) > before
    assert line.closed is not None


def test_its_answer_has_as_much_time_as_any_other() -> None:
    line = ConnectionHarness(SETTINGS, SASL, is_greedy=False)
    line.feed(request("SaslHandshake", 1, mechanism="GSSAPI"))
    line.advance(400 + IDLE_MS - 1)
    assert line.written
    assert line.closed is None
    line.advance(1)
    assert line.closed == Close("did not read its reply for 1.5 s")


def test_a_delay_that_is_longer_than_a_connection_may_be_idle_is_kept() -> None:
    line = ConnectionHarness(ConnectionSettings(idle_ms=100, failed_login_delay_ms=5000), SASL)
    line.feed(request("SaslHandshake", 1, mechanism="GSSAPI"))
    line.advance(4999)
    assert line.closed is None
    line.advance(1)
    assert line.closed is not None
    assert line.closed.why == "SASL mechanism 'GSSAPI' is not enabled"


def test_what_the_client_says_during_the_delay_changes_nothing() -> None:
    line = ConnectionHarness(SETTINGS, SASL)
    line.feed(request("SaslHandshake", 1, mechanism="GSSAPI"))
    line.advance(300)
    line.feed(metadata())
    assert not line.reads
    line.end()
    assert line.closed is None
    line.advance(100)
    assert line.closed is not None
    assert not line.submitted


def test_a_frame_that_is_too_long_during_a_login_is_told_late() -> None:
    line = ConnectionHarness(SETTINGS, SASL)
    line.feed((524_289).to_bytes(4, "big"))
    line.advance(399)
    assert line.closed is None
    line.advance(1)
    assert line.closed == Close("a frame of 524289 bytes is refused (at most 524288 are accepted)")
    assert not line.written
