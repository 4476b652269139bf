"""Too many connections, too long frames, failed authentications: our broker does what Kafka does.

``max.connections`` and ``max.connections.per.ip`` count the connections of all listeners.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.security.limits_dialogue import LIMITS, USERS, said
from tests.support.security.sides import mock_side, real_side

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(180)]


def test_limits_of_connections(kafka_version: str, tmp_path: Path) -> None:
    with real_side(kafka_version, USERS, configs=LIMITS) as real:
        theirs = said(real)
    with mock_side(kafka_version.rpartition(".")[0], USERS, {}, tmp_path, more=LIMITS) as mock:
        ours = said(mock)
    for name, answer in theirs.items():
        assert ours[name] == answer, name
