"""Who may do what, and what everybody else is told: the same on our broker as on real ones.

Some thirty principals, most with a single right, send every request to a broker with
StandardAuthorizer and to ours; all fields of all answers are compared, the words of errors too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from mock_coordinator.core.authentication.distinguished_names import principal_of
from tests.support.plain_message import message
from tests.support.security.acl_dialogue import acl_answers
from tests.support.security.dialogues import DIALOGUES, USERS, hold
from tests.support.security.play import differences, play
from tests.support.security.prepared import await_transactions
from tests.support.security.principals import PRINCIPALS, Right
from tests.support.security.random_rights import ours, random_acls, theirs
from tests.support.security.regex_members import regex_assignments
from tests.support.security.scram_users import MECHANISMS, scram_upsertions
from tests.support.security.sides import PASSWORD, SecureSide, mock_side, real_side
from tests.support.security.tls import SUBJECTS, Certificates, connect_with_tls
from tests.support.wire_connection import ConnectionLostError, WireConnection

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(240)]

_SHOWN = 40
_SEEDS = 100


def test_every_request_of_every_principal(kafka_version: str, tmp_path: Path) -> None:
    with real_side(kafka_version, PRINCIPALS) as real:
        prepared, theirs = play(real)
    profile = kafka_version.rpartition(".")[0]
    with mock_side(profile, PRINCIPALS, prepared.ids, tmp_path) as mock:
        _, ours = play(mock)
    assert len(theirs) > 3500
    lines = differences(theirs, ours)
    shown = "\n".join(lines[:_SHOWN])
    assert not lines, f"{len(lines)} fields of {len(theirs)} answers differ:\n{shown}"


def _say_everything(side: SecureSide) -> tuple[dict[str, Any], dict[str, Any]]:
    """Conversations about sessions wait for their end, so these are held side by side."""
    said: dict[str, Any] = {}
    with ThreadPoolExecutor(len(DIALOGUES)) as together:
        late: dict[str, Future[list[Any]]] = {}
        for listener, name, dialogue in DIALOGUES:
            key = f"{listener}: {name}"
            if listener == "SHORT":
                late[key] = together.submit(hold, side, listener, dialogue)
            else:
                said[key] = hold(side, listener, dialogue)
        said |= {key: future.result() for key, future in late.items()}
    return said, acl_answers(side)


def test_every_conversation_about_passwords_and_rights(kafka_version: str, tmp_path: Path) -> None:
    ids = {"yes-regex": b"\x01" * 16, "no-regex": b"\x02" * 16}
    with real_side(kafka_version, USERS) as real:
        _add_scram_users(real)
        said, acls = _say_everything(real)
        seen = regex_assignments(real)
    with mock_side(kafka_version.rpartition(".")[0], USERS, ids, tmp_path) as mock:
        our_said, our_acls = _say_everything(mock)
        our_seen = regex_assignments(mock)
    assert seen["alice alone"] == ["yes-regex"]
    assert seen["bob alone"] == ["no-regex", "yes-regex"]
    assert seen == our_seen
    wrong = [name for name in said if said[name] != our_said[name]]
    first = [f"{name}\n  real {said[name]}\n  ours {our_said[name]}" for name in wrong]
    assert not wrong, "\n".join(first)
    wrong = [name for name in acls if acls[name] != our_acls[name]]
    first = [f"{name}\n  real {acls[name]}\n  ours {our_acls[name]}" for name in wrong]
    assert not wrong, "\n".join(first)


def _add_scram_users(side: SecureSide) -> None:
    """A real broker has them in its metadata; ours took them from its options."""
    passwords = {user: PASSWORD.format(user) for user in USERS}
    for mechanism in MECHANISMS:
        with side.connect() as admin:
            some = scram_upsertions(passwords, mechanism)
            altered = message("AlterUserScramCredentials", deletions=(), upsertions=some)
            answer = admin.request(altered, 0)
            assert all(each.error_code == 0 for each in answer.results), answer
    time.sleep(0.5)  # until the broker has heard of it from its controller


def _tls_answers(side: SecureSide, certificates: Certificates) -> dict[str, Any]:
    """Which topics a client sees, each of whose principals-to-be has a topic of its own."""
    names = {
        f"topic-{number}": principal_of(_subject(subject))
        for number, subject in enumerate(SUBJECTS)
    }
    names["topic-anonymous"] = "User:nobody"
    for name in names:
        side.create_topic(name, 1)
    creations = [
        {**Right("TOPIC", "READ", name, prefixed=False).acl(principal)}
        for name, principal in names.items()
    ]
    with side.connect() as admin:
        answer = admin.request(message("CreateAcls", creations=creations), 3)
        assert all(each.error_code == 0 for each in answer.results), answer
    seen: dict[str, Any] = {}
    for number, subject in enumerate(SUBJECTS):
        context = certificates.client(number, subject)
        seen[f"client {number}"] = _topics_seen(connect_with_tls(side, "MUTUAL", context))
    for listener in ("TLS", "MUTUAL"):
        connection = connect_with_tls(side, listener, certificates.anonymous())
        seen[f"anonymous on {listener}"] = _topics_seen(connection)
    connection = connect_with_tls(side, "SASLTLS", certificates.anonymous())
    assert connection is not None
    token = f"\0alice\0{PASSWORD.format('alice')}".encode()
    for request, version in (
        (message("SaslHandshake", mechanism="PLAIN"), 1),
        (message("SaslAuthenticate", auth_bytes=token), 2),
    ):
        assert connection.request(request, version).error_code == 0
    seen["alice on SASLTLS"] = _topics_seen(connection)
    return seen


def _topics_seen(connection: WireConnection | None) -> list[str] | None:
    """``None`` when the broker hung up, during the handshake or after it (TLS 1.3)."""
    if connection is None:
        return None
    try:
        answer = connection.request(message("Metadata", topics=None), 12)
    except (ConnectionLostError, OSError):
        return None
    finally:
        connection.close()
    return sorted(topic.name for topic in answer.topics if topic.name.startswith("topic-"))


def _subject(subject: Mapping[str, str]) -> tuple[tuple[tuple[str, str], ...], ...]:
    """As ``ssl`` shows it: in the order in which trustme writes it."""
    return (
        (("organizationName", subject["organization_name"]),),
        (("organizationalUnitName", subject["organization_unit_name"]),),
        (("commonName", subject["common_name"]),),
    )


def test_the_principals_of_tls_clients(kafka_version: str, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    with real_side(kafka_version, USERS, certificates.pem()) as real:
        theirs = _tls_answers(real, certificates)
    chain, key = certificates.server
    tls = {"certificate": chain, "key": key, "client_ca": certificates.ca}
    ids = {
        f"topic-{name}": str(name).encode().rjust(16, b"\x03") for name in (*range(4), "anonymous")
    }
    with mock_side(kafka_version.rpartition(".")[0], USERS, ids, tmp_path, tls) as mock:
        ours = _tls_answers(mock, certificates)
    assert theirs["client 0"] == ["topic-0"]
    assert theirs["anonymous on MUTUAL"] is None
    assert theirs == ours


def test_random_rights(kafka_version: str) -> None:
    with real_side(kafka_version, USERS) as real, real.connect() as admin:
        await_transactions(admin)
        users = [real.login(user) for user in USERS]
        wrong: list[str] = []
        outcomes: set[str] = set()
        for seed in range(_SEEDS):
            acls = random_acls(seed)
            answers = theirs(real, admin, acls, users)
            expected = [ours(acls, user) for user in USERS]
            outcomes.update(str(answer) for answer in answers)
            if answers != expected:
                wrong.append(f"seed {seed}: real {answers}, ours {expected}: {acls}")
        for user in users:
            user.close()
    assert not wrong, "\n".join(wrong[:5])
    assert len(outcomes) > _SEEDS // 2, "the rights are too much alike to prove anything"
