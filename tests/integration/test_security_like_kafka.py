"""Who may do what, and what everybody else is told: the same on our broker as on real ones.

Some thirty principals, most with a single right, send every request to a broker with
StandardAuthorizer and to ours; all fields of all answers are compared, the words of errors too.
"""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.plain_message import message
from tests.support.security.acl_dialogue import acl_answers
from tests.support.security.dialogues import DIALOGUES, USERS, hold
from tests.support.security.play import differences, play
from tests.support.security.principals import PRINCIPALS
from tests.support.security.regex_members import regex_assignments
from tests.support.security.sides import PASSWORD, SecureSide, mock_side, real_side

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(240)]

_SHOWN = 40


def test_every_request_of_every_principal(kafka_version: str, tmp_path: Path) -> None:
    with real_side(kafka_version, PRINCIPALS) as real:
        stage, theirs = play(real)
    profile = kafka_version.rpartition(".")[0]
    with mock_side(profile, PRINCIPALS, stage.ids, tmp_path) as mock:
        _, ours = play(mock)
    assert len(theirs) > 3500
    lines = differences(theirs, ours)
    shown = "\n".join(lines[:_SHOWN])
    assert not lines, f"{len(lines)} fields of {len(theirs)} answers differ:\n{shown}"


def _say_everything(side: SecureSide) -> tuple[dict[str, Any], dict[str, Any]]:
    said = {
        f"{listener}: {name}": hold(side, listener, dialogue)
        for listener, name, dialogue in DIALOGUES
    }
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
    salt, iterations = b"grains of salt", 4096
    upsertions = [
        {
            "name": user,
            "mechanism": number,
            "iterations": iterations,
            "salt": salt,
            "salted_password": hashlib.pbkdf2_hmac(
                hash_name, PASSWORD.format(user).encode(), salt, iterations
            ),
        }
        for user in USERS
        for number, hash_name in ((1, "sha256"), (2, "sha512"))
    ]
    for number in (0, 1):
        with side.connect() as admin:
            some = upsertions[number::2]
            altered = message("AlterUserScramCredentials", deletions=(), upsertions=some)
            answer = admin.request(altered, 0)
            assert all(each.error_code == 0 for each in answer.results), answer
    time.sleep(0.5)  # until the broker has heard of it from its controller
