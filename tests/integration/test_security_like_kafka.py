"""Who may do what, and what everybody else is told: the same on our broker as on real ones.

Some thirty principals, most with a single right, send every request to a broker with
StandardAuthorizer and to ours; all fields of all answers are compared, the words of errors too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.security.play import differences, play
from tests.support.security.principals import PRINCIPALS
from tests.support.security.sides import mock_side, real_side

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
