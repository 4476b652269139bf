"""Nothing that a client sends before it is known gets past the authenticator."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from kip848_client.core.wire import write_request
from kip848_client.errors import WireError
from mock_coordinator.connection import ConnectionAuthenticator
from mock_coordinator.connection.authenticator import FrameOutcome
from mock_coordinator.core.authentication.sasl import SaslAccounts, SaslConversation, SaslRules
from mock_coordinator.core.inputs import ClientInfo
from mock_coordinator.core.security.scram_store import ScramStore
from mock_coordinator.security import SecurityOptions
from tests.support.plain_message import message
from tests.support.security.scram_client import ScramClient

PASSWORDS = {"alice": "open sesame"}
STORE = ScramStore()
SecurityOptions(users=PASSWORDS).put_scram_credentials(STORE, lambda: b"salt")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

tokens = st.one_of(
    st.binary(max_size=40),
    st.text(st.sampled_from("n,yp=ar:cbiws\0fyko+/é"), max_size=40).map(str.encode),
    st.builds(
        lambda a, b, c: f"n,{a}n={b},r={c}".encode(),
        st.sampled_from(["", "a=x,", ","]),
        st.text(max_size=8),
        st.text(max_size=8),
    ),
)


def authenticator() -> ConnectionAuthenticator:
    accounts = SaslAccounts(PASSWORDS, STORE)
    talk = SaslConversation(SaslRules(max_reauth_ms=1000), accounts, lambda: "nonce")
    return ConnectionAuthenticator(ClientInfo(), talk)


def frame(request: object, version: int) -> bytes:
    return write_request(request, version, 1, "c")[4:]  # type: ignore[arg-type]  # any request


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_garbage_frames(frames: list[bytes]) -> None:
    opened = authenticator()
    with contextlib.suppress(WireError):
        for each in frames:
            assert isinstance(opened.take(0, 1, each), FrameOutcome)


@given(st.sampled_from(MECHANISMS), st.integers(0, 1), st.lists(tokens, min_size=1, max_size=4))
def test_garbage_tokens(mechanism: str, version: int, sent: list[bytes]) -> None:
    opened = authenticator()
    opened.take(0, 1, frame(message("SaslHandshake", mechanism=mechanism), version))
    with contextlib.suppress(WireError):
        for token in sent:
            payload = token
            if version:
                payload = frame(message("SaslAuthenticate", auth_bytes=token), 2)
            outcome = opened.take(0, 1, payload)
            assert isinstance(outcome, FrameOutcome)
            if outcome.close is not None:
                return


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_garbage_proofs(proof: bytes) -> None:
    opened = authenticator()
    opened.take(0, 1, frame(message("SaslHandshake", mechanism="SCRAM-SHA-256"), 1))
    first = ScramClient("alice", "x").first()
    opened.take(0, 1, frame(message("SaslAuthenticate", auth_bytes=first), 2))
    nonce = b"c=biws,r=fyko+d2lbbFgONRv9qkxdawLnonce,p="
    outcome = opened.take(0, 1, frame(message("SaslAuthenticate", auth_bytes=nonce + proof), 2))
    assert isinstance(outcome, FrameOutcome)
    assert outcome.close is not None
