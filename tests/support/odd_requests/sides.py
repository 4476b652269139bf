"""A real broker and ours for the same conversations: same settings, same topics, same topic ids."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Final

from kip848_client.core.types import TopicId, format_topic_id
from mock_coordinator.threaded import BrokerThread
from tests.support.odd_requests.talk import Talk
from tests.support.plain_message import message
from tests.support.real_kafka import RealKafka
from tests.support.wire_connection import WireConnection

__all__ = ["Play", "play_on_kafka", "play_on_ours"]

Play = Callable[[Talk], None]
Answers = dict[str, Any]

_CONFIGS: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
_TOPICS: Final = {"two": 2, "one": 1, "strict": 1}
_TOPIC_CONFIGS: Final = {"strict": {"min.insync.replicas": "2"}}
_PATIENCE_S: Final = 30.0


@contextlib.contextmanager
def play_on_kafka(
    version: str,
) -> Generator[Callable[[Iterable[Play]], tuple[Answers, Mapping[str, bytes]]]]:
    """A running broker, as a function that gives its answers and the ids of its topics."""
    with RealKafka.start(version, _CONFIGS) as kafka:

        def connect() -> WireConnection:
            return WireConnection(kafka.host, kafka.port)

        with connect() as connection:
            _warm_up(connection)
        ids = {
            name: bytes(kafka.create_topic(name, count, configs=_TOPIC_CONFIGS.get(name)))
            for name, count in _TOPICS.items()
        }
        yield lambda plays: (_played(Talk(connect, ids), plays), ids)


def play_on_ours(profile: str, ids: Mapping[str, bytes], plays: Iterable[Play]) -> Answers:
    """The answers of a new broker of ours."""
    with BrokerThread(profile=profile, config=_CONFIGS) as broker:
        host, _, port = broker.bootstrap.rpartition(":")

        def connect() -> WireConnection:
            return WireConnection(host, int(port))

        with connect() as connection:
            _warm_up(connection)
            for name, count in _TOPICS.items():
                _create(connection, name, count, ids[name])
        return _played(Talk(connect, ids), plays)


def _played(talk: Talk, plays: Iterable[Play]) -> Answers:
    with contextlib.closing(talk):
        for play in plays:
            play(talk)
        return talk.finish()


def _create(connection: WireConnection, name: str, partitions: int, topic_id: bytes) -> None:
    given = {"mock.topic.id": format_topic_id(TopicId(topic_id)), **_TOPIC_CONFIGS.get(name, {})}
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": [{"name": key, "value": value} for key, value in given.items()],
    }
    answer = connection.request(message("CreateTopics", topics=[topic], timeout_ms=10_000), 7)
    assert answer.topics[0].error_code == 0, answer


def _warm_up(connection: WireConnection) -> None:
    """Return when group and transaction coordinators answer."""
    connection.request(message("FindCoordinator", coordinator_keys=["warm-up"]), 4)
    find = message("FindCoordinator", key_type=1, coordinator_keys=["warm-up"])
    init = message("InitProducerId", transactional_id="warm-up", transaction_timeout_ms=60_000)
    deadline = time.monotonic() + _PATIENCE_S
    while (
        connection.request(find, 4).coordinators[0].error_code
        or connection.request(init, 4).error_code
    ):
        assert time.monotonic() < deadline, "no transaction coordinator"
        time.sleep(0.02)
