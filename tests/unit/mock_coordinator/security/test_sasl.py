"""SASL conversations, step by step, at times of the test's choice."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.wire._fields import Message
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.authentication.sasl import (
    SaslAccounts,
    SaslConversation,
    SaslReaction,
    SaslRules,
)
from mock_coordinator.core.inputs import ClientInfo, RequestReceived
from mock_coordinator.core.security.scram_store import ScramStore
from mock_coordinator.security import SecurityOptions
from tests.support.plain_message import message
from tests.support.security.scram_client import ScramClient

PASSWORDS = {"alice": "open sesame", "bob": "b"}
ALICE = b"\0alice\0open sesame"


class Talk:
    """A conversation with a clock and a counter for nonces."""

    def __init__(self, rules: SaslRules | None = None) -> None:
        scram = ScramStore()
        SecurityOptions(users=PASSWORDS).put_scram_credentials(scram, lambda: b"salt")
        self.now_ms = 1000
        self._nonces = 0
        accounts = SaslAccounts(PASSWORDS, scram)
        self.conversation = SaslConversation(rules or SaslRules(), accounts, self._nonce)

    def _nonce(self) -> str:
        self._nonces += 1
        return f"nonce{self._nonces}"

    def say(self, request: Message, version: int) -> SaslReaction:
        received = RequestReceived(1, 7, version, ClientInfo(), request)
        return self.conversation.request(self.now_ms, received)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> SaslReaction:
        return self.say(message("SaslHandshake", mechanism=mechanism), version)

    def token(self, token: bytes, version: int = 2) -> Any:
        return self.say(message("SaslAuthenticate", auth_bytes=token), version)

    def login(self) -> Any:
        self.handshake()
        return self.token(ALICE).response

    def metadata(self) -> SaslReaction:
        return self.say(message("Metadata", topics=()), 12)


def test_nothing_passes_before_authentication() -> None:
    talk = Talk()
    reaction = talk.metadata()
    assert not reaction.passes
    assert reaction.response is None
    assert reaction.close is not None
    assert talk.handshake().close is not None, "closed is closed"


def test_plain_all_the_way() -> None:
    talk = Talk()
    assert talk.say(message("ApiVersions"), 3).passes
    answer: Any = talk.handshake().response
    assert answer.error_code == 0
    assert set(answer.mechanisms) == {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}
    assert talk.conversation.principal is None
    assert talk.token(ALICE).response.error_code == 0
    assert talk.conversation.principal == "User:alice"
    assert talk.metadata().passes
    assert talk.handshake().passes, "the broker itself says that it is too late"


@pytest.mark.parametrize("hash_name", ["sha256", "sha512"])
def test_scram_all_the_way(hash_name: str) -> None:
    talk = Talk()
    talk.handshake(f"SCRAM-{hash_name.upper().replace('SHA', 'SHA-')}")
    client = ScramClient("alice", PASSWORDS["alice"], hash_name)
    first = talk.token(client.first()).response
    assert first.auth_bytes.startswith(b"r=fyko+d2lbbFgONRv9qkxdawLnonce1,s=c2FsdA==,i=4096")
    assert talk.conversation.principal is None
    final = client.final(first.auth_bytes)
    answer = talk.token(final).response
    assert answer.auth_bytes == client.server_signature(first.auth_bytes, final)
    assert talk.conversation.principal == "User:alice"


@pytest.mark.parametrize(
    "mistake", [{"nonce_suffix": "x"}, {"proof": "A" * 43 + "="}, {"proof": "?"}]
)
def test_scram_with_a_mistake(mistake: dict[str, str]) -> None:
    talk = Talk()
    talk.handshake("SCRAM-SHA-256")
    client = ScramClient("alice", PASSWORDS["alice"])
    first = talk.token(client.first()).response
    reaction = talk.token(client.final(first.auth_bytes, **mistake))
    assert reaction.response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert reaction.response.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL "
        "mechanism SCRAM-SHA-256"
    )
    assert reaction.close is not None
    assert talk.conversation.principal is None


def test_the_nonce_of_one_exchange_is_no_good_for_another() -> None:
    talk, other = Talk(), Talk()
    client = ScramClient("alice", PASSWORDS["alice"])
    for each in (talk, other):
        each.handshake("SCRAM-SHA-256")
    other._nonces = 5
    first = talk.token(client.first()).response
    other.token(client.first())
    final = client.final(first.auth_bytes)
    assert other.token(final).response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert talk.token(final).response.error_code == 0


def test_a_mechanism_that_is_not_enabled() -> None:
    talk = Talk(SaslRules(("SCRAM-SHA-512",)))
    reaction = talk.handshake("PLAIN")
    answer: Any = reaction.response
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ("SCRAM-SHA-512",)
    assert reaction.close is not None


@pytest.mark.parametrize("api", ["Metadata", "ListGroups", "SaslHandshake", "ApiVersions"])
def test_whatever_comes_instead_of_a_token_is_34(api: str) -> None:
    talk = Talk()
    talk.handshake()
    reaction = talk.say(message(api), 0)
    code = getattr(reaction.response, "error_code", ErrorCode.ILLEGAL_SASL_STATE)
    assert reaction.response is not None
    assert api == "Metadata" or code == ErrorCode.ILLEGAL_SASL_STATE
    assert reaction.close is not None


def test_bare_tokens() -> None:
    talk = Talk()
    talk.handshake(version=0)
    assert talk.conversation.wants_bare_token
    assert talk.conversation.token(0, ALICE) == SaslReaction(token=b"")
    assert not talk.conversation.wants_bare_token
    assert talk.metadata().passes


def test_a_wrong_bare_token_is_not_answered() -> None:
    talk = Talk()
    talk.handshake(version=0)
    reaction = talk.conversation.token(0, b"\0alice\0wrong")
    assert (reaction.token, reaction.response) == (None, None)
    assert reaction.close is not None


LIMITED = SaslRules(max_reauth_ms=5000)


def test_a_session_ends() -> None:
    talk = Talk(LIMITED)
    assert talk.login().session_lifetime_ms == 5000
    talk.now_ms += 4999
    assert talk.metadata().passes
    talk.now_ms += 1
    assert talk.metadata().close is not None


def test_a_session_is_renewed_even_after_its_end() -> None:
    talk = Talk(LIMITED)
    talk.login()
    talk.now_ms += 6000
    assert talk.login().error_code == 0
    talk.now_ms += 4000
    assert talk.metadata().passes


def test_sessions_are_renewed_once_a_second_at_most() -> None:
    talk = Talk(LIMITED)
    talk.login()
    assert talk.login().error_code == 0
    talk.now_ms += 999
    assert talk.handshake().passes, "left to the broker, which refuses it"
    talk.now_ms += 1
    assert not talk.handshake().passes


def test_a_session_is_renewed_by_the_same_principal() -> None:
    talk = Talk(LIMITED)
    talk.login()
    talk.handshake()
    answer = talk.token(b"\0bob\0b").response
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == (
        "Cannot change principals during re-authentication from User.alice: User.bob"
    )


def test_a_session_is_renewed_with_the_same_mechanism() -> None:
    talk = Talk(LIMITED)
    talk.login()
    assert talk.handshake("SCRAM-SHA-256").response is not None
    reaction = talk.token(ScramClient("alice", PASSWORDS["alice"]).first())
    assert reaction.response is None
    assert reaction.close is not None


def test_old_clients_are_not_told_how_long_their_session_is_and_lose_it_all_the_same() -> None:
    talk = Talk(LIMITED)
    talk.handshake()
    assert talk.token(ALICE, 0).response.session_lifetime_ms == 0
    talk.now_ms += 5000
    assert talk.metadata().close is not None
