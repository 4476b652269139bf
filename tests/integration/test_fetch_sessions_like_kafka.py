"""How many fetch sessions there are: the bundled broker beside a real one.

Sessions that give way after two minutes are too slow for a test; what is compared is who gets a
session at all, in which order, and what becomes of the room that is given back.
"""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.wire import api_named
from kip848_client.core.wire.messages.fetch import (
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
)
from mock_coordinator import MockBroker
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.real_kafka, pytest.mark.timeout(120)]

SLOTS = "max.incremental.fetch.session.cache.slots"


class Client:
    """Fetches of topic ``t`` by name, on a real or a bundled broker."""

    def __init__(self, ask: Any) -> None:
        self._ask = ask

    def fetch(self, session_id: int, epoch: int, partitions: int) -> Any:
        wanted = tuple(
            FetchRequestFetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000)
            for index in range(partitions)
        )
        topics = (FetchRequestFetchTopic(topic="t", partitions=wanted),) if wanted else ()
        request = api_named("Fetch").request(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=1000,
            session_id=session_id,
            session_epoch=epoch,
            topics=topics,
        )
        return self._ask(request, 12)


def story(client: Client) -> list[Any]:
    """What happens to many sessions; every line is what a client can see."""
    lines: list[Any] = []
    ids: list[int] = []
    for number in range(20):
        answer = client.fetch(0, 0, 1 + number % 3)
        ids.append(answer.session_id)
        lines.append((answer.error_code, bool(answer.session_id)))
    opened = [session for session in ids if session]
    lines += [client.fetch(session, 1, 0).error_code for session in opened]
    for session in opened[3:6]:  # closed, and nothing opened
        answer = client.fetch(session, -1, 1)
        lines.append((answer.error_code, answer.session_id))
    for number in range(10):
        answer = client.fetch(0, 0, 1 + number % 2)
        lines.append(bool(answer.session_id))
    for session in opened[:3]:  # closed by opening others
        answer = client.fetch(session, 0, 2)
        lines.append((answer.error_code, bool(answer.session_id)))
    lines += [client.fetch(session, 2, 0).error_code for session in opened]
    for _ in range(9):  # an error of a partition does not hinder a session
        answer = client.fetch(0, 0, 9)
        lines.append((answer.error_code, bool(answer.session_id)))
    return lines


@pytest.mark.parametrize("slots", ["16", "7", "13"])
def test_the_same_clients_get_a_session(kafka_version: str, slots: str) -> None:
    with RealKafka.start(kafka_version, {SLOTS: slots}) as kafka, kafka.connect() as connection:
        kafka.create_topic("t", 3)
        real = story(Client(connection.request))
    broker = MockBroker({"t": 3}, profile=kafka.profile, config={SLOTS: slots}, listen=False)
    ours = story(Client(broker.connect().ask))
    assert ours == real
