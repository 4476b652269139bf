"""Fetch sessions of clients that name topics by id (version 13 and newer), as real brokers were
seen to keep them: in which order they serve, what they say of topics that are gone, what ends them.
"""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestForgottenTopic,
    FetchResponse,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator import InProcessConnection
from tests.unit.mock_coordinator.broker_harness import BrokerHarness

OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE
ZERO = bytes(16)
Told = list[tuple[str, int, int, int]]
"""Topic, partition, error code, bytes."""


class Client:
    """Fetches from a broker with topics ``a`` and ``b`` of three partitions."""

    def __init__(self, profile: str = "4.4", **config: str) -> None:
        self.harness = BrokerHarness({"a": 3, "b": 3}, profile=profile, **config)
        self.names = {self.id_of("a"): "a", self.id_of("b"): "b"}
        self.size = len(self.harness.batch(b"v0", b"v1"))
        self.session_id = 0

    def id_of(self, topic: str) -> bytes:
        return bytes(self.harness.broker.core.broker.catalog.topics[topic].topic_id)

    def write(self, topic: str, partition: int) -> None:
        self.harness.produce_bytes(topic, self.harness.batch(b"v0", b"v1"), partition=partition)

    def create_again(self, topic: str, partitions: int = 3) -> None:
        self.harness.broker.delete_topic(topic)
        self.harness.broker.create_topic(topic, partitions)

    def request(
        self,
        epoch: int,
        *asked: tuple[bytes, int, int],
        forget: tuple[tuple[bytes, int], ...] = (),
        session_id: int | None = None,
        **more: Any,
    ) -> FetchRequest:
        """``asked`` are (topic id, partition, offset)."""
        limits: dict[str, Any] = {"max_wait_ms": 0, "max_bytes": 1_000_000, **more}
        return FetchRequest(
            session_id=self.session_id if session_id is None else session_id,
            session_epoch=epoch,
            topics=tuple(
                FetchRequestFetchTopic(
                    topic_id=topic_id,
                    partitions=(
                        FetchRequestFetchPartition(
                            partition=number, fetch_offset=offset, partition_max_bytes=1_000_000
                        ),
                    ),
                )
                for topic_id, number, offset in asked
            ),
            forgotten_topics_data=tuple(
                FetchRequestForgottenTopic(topic_id=topic_id, partitions=(number,))
                for topic_id, number in forget
            ),
            **limits,
        )

    def ask(self, *args: Any, version: int = 17, **more: Any) -> FetchResponse:
        response: FetchResponse = self.harness.ask(self.request(*args, **more), version)
        return response

    def told(self, *args: Any, **more: Any) -> Told:
        response = self.ask(*args, **more)
        assert response.error_code == 0
        return self.read(response)

    def read(self, response: FetchResponse) -> Told:
        return [
            (
                self.names.get(topic.topic_id, "?"),
                each.partition_index,
                each.error_code,
                len(each.records or b""),
            )
            for topic in response.responses
            for each in topic.partitions
        ]

    def open(self, *asked: tuple[bytes, int, int], **more: Any) -> Told:
        response = self.ask(0, *asked, session_id=0, **more)
        self.session_id = response.session_id
        assert self.session_id
        return self.read(response)


@pytest.fixture
def client() -> Client:
    return Client()


class TestOrder:
    def test_the_first_answer_decides(self, client: Client) -> None:
        """What is not there comes last in it, unknown topics before unknown partitions."""
        a, b = client.id_of("a"), client.id_of("b")
        client.write("a", 0)
        first = client.open((a, 9, 0), (b"?" * 16, 0, 0), (a, 0, 0), (a, 1, -1), (b, 0, 0))
        assert [each[:3] for each in first] == [
            ("a", 0, 0),
            ("a", 1, OUT_OF_RANGE),
            ("b", 0, 0),
            ("?", 0, ErrorCode.UNKNOWN_TOPIC_ID),
            ("a", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ]
        client.harness.broker.add_partitions("a", 10)
        client.write("a", 1)
        client.write("b", 0)
        assert [each[:2] for each in client.told(1, (a, 1, 0), (a, 0, 0))] == [
            ("a", 0),
            ("a", 1),
            ("b", 0),
            ("a", 9),
            ("?", 0),
        ]

    def test_who_delivered_in_the_first_answer_stays_where_it_is(self, client: Client) -> None:
        a = client.id_of("a")
        for number in range(3):
            client.write("a", number)
        first = client.open((a, 0, 0), (a, 1, 0), (a, 2, 0), max_bytes=10)
        served = [number for _, number, _, size in first if size]
        session = [
            [number for _, number, _, size in client.told(epoch, max_bytes=10) if size]
            for epoch in range(1, 7)
        ]
        served += [number for numbers in session for number in numbers]
        assert served == [0, 0, 1, 2, 0, 1, 2]


class TestEnds:
    def test_the_last_forgotten_partition_ends_it_with_an_answer(self, client: Client) -> None:
        """An answer without a session, of what the request named."""
        a = client.id_of("a")
        client.write("a", 0)
        client.open((a, 0, 2), (a, 1, 0))
        response = client.ask(1, (a, 0, 0), forget=((a, 0), (a, 1)))
        assert (response.error_code, response.session_id) == (0, 0)
        assert client.read(response) == [("a", 0, 0, client.size)]
        assert client.ask(2).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    def test_forgotten_wins(self, client: Client) -> None:
        a = client.id_of("a")
        client.open((a, 0, 0), (a, 1, 0))
        client.write("a", 1)
        assert client.told(1, (a, 1, 0), forget=((a, 1),)) == []

    def test_the_epoch_is_looked_at_before_the_version(self, client: Client) -> None:
        client.open((client.id_of("a"), 0, 0))
        assert client.ask(7, version=12).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        assert client.ask(1, version=12).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
        assert client.told(1) == []

    @pytest.mark.parametrize("session_id", [2**31 - 1, 2**31 - 8, -(2**31), -268_435_455])
    @pytest.mark.parametrize("epoch", [0, -1, 1, -2])
    def test_an_id_that_no_shard_gives_out(
        self, client: Client, session_id: int, epoch: int
    ) -> None:
        response = client.ask(epoch, (client.id_of("a"), 0, 0), session_id=session_id)
        assert response == FetchResponse(
            error_code=ErrorCode.UNKNOWN_SERVER_ERROR, session_id=session_id
        )

    @pytest.mark.parametrize("session_id", [2**31 - 9, -1, -268_435_454])
    def test_an_id_that_one_could_give_out(self, client: Client, session_id: int) -> None:
        response = client.ask(1, session_id=session_id)
        assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    def test_ids_are_given_out_by_shards(self) -> None:
        client = Client(max_incremental_fetch_session_cache_slots="800")
        a = client.id_of("a")
        for number in range(40):
            client.open((a, 0, 0))
            assert client.session_id // ((2**31 - 1) // 8) == number % 8


class TestZeroIds:
    """Topics with neither name nor id, which no client should send."""

    @pytest.fixture(params=["4.0", "4.1", "4.2"])
    def old(self, request: pytest.FixtureRequest) -> Client:
        return Client(request.param)

    def test_forgetting_one_fails_the_request(self, old: Client) -> None:
        """The broker fails after it has added what is new, and before it moves on."""
        a = old.id_of("a")
        old.open((a, 0, 0))
        response = old.ask(1, (a, 1, 0), forget=((ZERO, 0),))
        assert (response.error_code, response.session_id) == (
            ErrorCode.UNKNOWN_SERVER_ERROR,
            old.session_id,
        )
        assert old.told(1) == [("a", 1, 0, 0)]

    def test_but_not_when_nothing_is_left_to_forget(self, old: Client) -> None:
        a = old.id_of("a")
        old.open((a, 0, 0))
        response = old.ask(1, forget=((a, 0), (ZERO, 0)))
        assert (response.error_code, response.session_id) == (0, 0)

    def test_fetching_one_fails_the_request(self, old: Client) -> None:
        a = old.id_of("a")
        failed = FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        assert old.ask(0, (a, 0, 0), (ZERO, 0, 0)) == failed
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
        assert old.told(-1, (ZERO, 0, 0)) == [("?", 0, unknown, 0)]
        old.open((a, 0, 0))
        # what comes before it is added, what comes after it is not
        response = old.ask(1, (a, 1, 0), (ZERO, 0, 0), (a, 2, 0), forget=((a, 0),))
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        old.write("a", 0)
        assert old.told(1) == [("a", 0, 0, old.size), ("a", 1, 0, 0)]

    @pytest.mark.parametrize("profile", ["4.3", "4.4"])
    def test_later_it_is_unknown(self, profile: str) -> None:
        client = Client(profile)
        a = client.id_of("a")
        unknown = ("?", 0, ErrorCode.UNKNOWN_TOPIC_ID, 0)
        assert client.open((ZERO, 0, 0), (a, 0, 0)) == [("a", 0, 0, 0), unknown]
        assert client.told(1, forget=((ZERO, 1),)) == [unknown]
        assert client.told(2, forget=((ZERO, 0),)) == []


class TestTopicsThatAreGone:
    def test_a_session_remembers_the_name(self, client: Client) -> None:
        a, b = client.id_of("a"), client.id_of("b")
        client.open((a, 0, 0), (b, 0, 0), (a, 2, 0))
        client.harness.broker.delete_topic("a")
        gone = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert client.told(1) == [("a", 0, gone, 0), ("a", 2, gone, 0)]
        client.harness.broker.create_topic("a", 2)
        assert client.told(2) == [
            ("a", 0, ErrorCode.INCONSISTENT_TOPIC_ID, 0),
            ("a", 2, gone, 0),
        ]
        # naming it again changes nothing; whoever did not know it before has no name for it
        answer = client.told(3, (a, 0, 0), (a, 1, 0))
        assert [each[1:3] for each in answer] == [
            (0, ErrorCode.INCONSISTENT_TOPIC_ID),
            (1, ErrorCode.UNKNOWN_TOPIC_ID),
            (2, gone),
        ]

    def test_a_new_session_does_not(self, client: Client) -> None:
        a = client.id_of("a")
        client.create_again("a")
        assert client.open((a, 0, 0)) == [("a", 0, ErrorCode.UNKNOWN_TOPIC_ID, 0)]

    def test_an_id_may_become_known(self, client: Client) -> None:
        soon = b"soon" * 4
        client.open((client.id_of("a"), 0, 0), (soon, 0, 0))
        client.harness.broker.create_topic("c", 1, topic_id=soon)
        assert [each[1:] for each in client.told(1)] == [(0, 0, 0)]

    def test_by_name_the_new_topic_goes_on(self, client: Client) -> None:
        request = client.harness.fetch_request
        partition = FetchRequestFetchPartition(partition=0, fetch_offset=0, partition_max_bytes=99)
        opening = request(partition, topic="a", session_id=0, session_epoch=0)
        session_id = client.harness.ask(opening, 12).session_id
        client.create_again("a")
        client.write("a", 0)
        going_on = request(session_id=session_id, session_epoch=1)
        answer = client.harness.ask(going_on, 12)
        assert [len(each.records) for each in answer.responses[0].partitions] == [client.size]


def test_an_old_version_cannot_be_told_where_the_logs_differ() -> None:
    """Versions below 13 share sessions. The broker fails to write the answer, and goes on."""
    client = Client()
    client.write("a", 0)
    partition = FetchRequestFetchPartition(
        partition=0, fetch_offset=9, last_fetched_epoch=0, partition_max_bytes=99
    )
    request = client.harness.fetch_request
    opening = request(partition, topic="a", session_id=0, session_epoch=0)
    session_id = client.harness.ask(opening, 12).session_id
    other = FetchRequestFetchPartition(partition=1, fetch_offset=0, partition_max_bytes=99)
    old = client.harness.ask(request(other, topic="a", session_id=session_id, session_epoch=1), 11)
    assert (old.error_code, old.session_id) == (ErrorCode.UNSUPPORTED_VERSION, session_id)
    assert [(each.partition_index, each.error_code) for each in old.responses[0].partitions] == [
        (1, ErrorCode.UNSUPPORTED_VERSION)
    ]
    newer = client.harness.ask(request(session_id=session_id, session_epoch=2), 12)
    assert newer.responses[0].partitions[0].diverging_epoch.end_offset == 2


class TestWaiting:
    """``parked`` is a request that waits; ``answer`` its answer."""

    def parked(self, client: Client, *args: Any) -> tuple[InProcessConnection, Any]:
        request = client.request(*args, max_wait_ms=500, min_bytes=1)
        connection = client.harness.broker.connect()
        sent = connection._submit(request, 17)
        assert client.harness.broker.core.parked_requests == 1
        return connection, (request, *sent)

    def answer(self, waiting: tuple[InProcessConnection, Any]) -> FetchResponse:
        connection, sent = waiting
        found: FetchResponse = connection._take(*sent)
        return found

    def test_a_session_that_went_on_meanwhile(self, client: Client) -> None:
        """The request that waited is out of step then, and its answer has the session's id."""
        a = client.id_of("a")
        client.open((a, 0, 0))
        waiting = self.parked(client, 1)
        assert client.told(2, (a, 1, 0)) == [("a", 1, 0, 0)]
        client.harness.broker.advance(500)
        assert self.answer(waiting) == FetchResponse(
            error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id=client.session_id
        )

    def test_a_session_that_was_closed_meanwhile(self, client: Client) -> None:
        a = client.id_of("a")
        client.open((a, 0, 0))
        waiting = self.parked(client, 1)
        client.ask(-1)
        client.write("a", 0)
        response = self.answer(waiting)
        assert (response.error_code, response.session_id) == (0, client.session_id)
        assert client.read(response) == [("a", 0, 0, client.size)]

    def test_a_session_that_was_emptied_meanwhile(self, client: Client) -> None:
        """What is in the session no more is not told of. (Brokers before 4.3 never answer.)"""
        a = client.id_of("a")
        client.open((a, 0, 0))
        waiting = self.parked(client, 1)
        assert client.ask(2, forget=((a, 0),)).session_id == 0
        client.write("a", 0)
        response = self.answer(waiting)
        assert (response.error_code, response.session_id) == (0, client.session_id)
        assert client.read(response) == []
