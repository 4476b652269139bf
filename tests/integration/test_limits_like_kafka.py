"""Too many connections, too long frames and batches, failed logins: as on a real Kafka.

``max.connections`` and ``max.connections.per.ip`` count the connections of all listeners.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client.error_codes import ErrorCode
from mock_coordinator import MockBroker, NewRecord
from mock_coordinator.batches import encode_batch
from tests.support.plain_message import message
from tests.support.real_kafka import RealKafka
from tests.support.security.limits_dialogue import LIMITS, PARTS, USERS
from tests.support.security.play import plain
from tests.support.security.sides import mock_side, real_side
from tests.support.wire_connection import Requester

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(180)]


_TRIES: Final = 3
"""Late or at once is a question of tenths of a second, which a busy machine may answer wrongly."""


def test_limits_of_connections(kafka_version: str, tmp_path: Path) -> None:
    profile = kafka_version.rpartition(".")[0]
    with (
        real_side(kafka_version, USERS, configs=LIMITS) as real,
        mock_side(profile, USERS, {}, tmp_path, more=LIMITS) as mock,
        ThreadPoolExecutor() as both,  # each waits for half a minute
    ):
        for name, part in PARTS.items():
            theirs, ours = both.map(part, (real, mock))
            for _ in range(_TRIES - 1):
                if ours != theirs:
                    theirs, ours = both.map(part, (real, mock))
            assert ours == theirs, name


_SIZES: Final = {
    "small": ({"max.message.bytes": "1000"}, (800, 1070, 1_200_000)),
    "short": (
        {"max.message.bytes": "5000000", "segment.bytes": "1048576"},
        (900_000, 1_048_576, 1_048_577, 1_200_000, 5_000_001),
    ),
    "nowhere": (None, (1_200_000,)),
}


def _produced(requester: Requester) -> list[Any]:
    """What becomes of batches of these sizes."""
    rows = [
        {
            "name": name,
            "num_partitions": 1,
            "replication_factor": 1,
            "configs": [{"name": key, "value": value} for key, value in configs.items()],
        }
        for name, (configs, _) in _SIZES.items()
        if configs is not None
    ]
    created = requester.request(message("CreateTopics", timeout_ms=10_000, topics=rows), 7)
    assert [topic.error_code for topic in created.topics] == [0, 0]
    return [
        (name, size, version, _answer_to(requester, name, size, version))
        for version in (7, 9)
        for name, (_, sizes) in _SIZES.items()
        for size in sizes
    ]


def _answer_to(requester: Requester, topic: str, size: int, version: int) -> Any:
    room = size - len(encode_batch([NewRecord(bytes(size))], 0))
    batch = encode_batch([NewRecord(bytes(size + room))], 1_750_000_000_000)
    data = [{"index": 0, "records": batch}]
    rows = [{"name": topic, "partition_data": data}]
    asked = message("Produce", acks=-1, timeout_ms=10_000, topic_data=rows)
    while True:
        answer = requester.request(asked, version).responses[0].partition_responses[0]
        if topic == "nowhere" or answer.error_code not in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ):
            return plain(answer)
        time.sleep(0.05)  # a topic that was just created has no leader yet


def test_limits_of_batches(kafka_version: str) -> None:
    with RealKafka.start(kafka_version) as kafka, kafka.connect() as connection:
        theirs = _produced(connection)
    broker = MockBroker(profile=kafka_version.rpartition(".")[0], listen=False)

    class Local:
        def request(self, message: Any, version: int) -> Any:
            return broker.connect().ask(message, version)

    assert _produced(Local()) == theirs
    assert {row[3]["error_code"] for row in theirs} == {0, 3, 10, 18}
