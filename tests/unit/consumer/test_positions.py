"""Offsets by time: leaders that move, errors that stay."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from kip848_client import OffsetAndTimestamp, TopicPartition
from kip848_client._ports import ConnectionBroken
from kip848_client.consumer._backoff import Backoff
from kip848_client.consumer._positions import EARLIEST, LATEST, OffsetLookup
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import RequestTimedOut, TopicAuthorizationFailed
from kip848_client.wire.messages.list_offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
)
from tests.unit.consumer.fakes import FakeClock, FakeTopics, FakeTransport

pytestmark = pytest.mark.asyncio

TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def rows(request: ListOffsetsRequest, offset: int, code: int = 0) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=tuple(
            ListOffsetsResponseListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    ListOffsetsResponseListOffsetsPartitionResponse(
                        partition_index=each.partition_index,
                        offset=offset,
                        timestamp=77,
                        error_code=code,
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def lookup(transport: FakeTransport, topics: FakeTopics, clock: FakeClock) -> OffsetLookup:
    return OffsetLookup(
        transport,
        topics,
        clock,
        read_committed=True,
        backoff=Backoff(1, 1),
        request_timeout_ms=500,
    )


async def test_each_leader_is_asked_for_its_own() -> None:
    transport = FakeTransport(lambda where, request: rows(request, int(where[-1])))
    topics = FakeTopics(leaders={TP: 1, OTHER: 2})
    found = await lookup(transport, topics, FakeClock()).find({TP: EARLIEST, OTHER: LATEST}, 9_999)
    assert found == {TP: OffsetAndTimestamp(1, 77), OTHER: OffsetAndTimestamp(2, 77)}
    assert sorted(where for where, _ in transport.asked) == ["broker 1", "broker 2"]
    assert {each.isolation_level for each in transport.requests} == {1}


async def test_an_unknown_leader_is_looked_up() -> None:
    topics = FakeTopics()
    topics.on_refresh = lambda: topics.leaders.update({TP: 3})
    transport = FakeTransport(lambda _, request: rows(request, 5))
    found = await lookup(transport, topics, FakeClock()).find({TP: LATEST}, 9_999)
    assert found[TP].offset == 5
    assert transport.asked == [("broker 3", "ListOffsets")]


async def test_a_leader_that_moved_is_followed() -> None:
    topics = FakeTopics(leaders={TP: 1})
    topics.on_refresh = lambda: topics.leaders.update({TP: 2})

    def answer(where: str, request: Any) -> Any:
        return rows(request, 5, 6 if where == "broker 1" else 0)

    transport = FakeTransport(answer)
    found = await lookup(transport, topics, FakeClock()).find({TP: LATEST}, 9_999)
    assert found[TP].offset == 5
    assert [where for where, _ in transport.asked] == ["broker 1", "broker 2"]


async def test_pauses_grow_while_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        clock.ms += round(seconds * 1000)

    monkeypatch.setattr(anyio, "sleep", sleep)
    search = OffsetLookup(
        FakeTransport(lambda _, request: rows(request, 0, ErrorCode.LEADER_NOT_AVAILABLE)),
        FakeTopics(leaders={TP: 1}),
        clock,
        read_committed=False,
        backoff=Backoff(100, 1_000, jitter=lambda pause_ms: pause_ms),
        request_timeout_ms=500,
    )
    with pytest.raises(RequestTimedOut):
        await search.find({TP: LATEST}, clock.ms + 3_400)
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


async def test_what_no_retry_cures_is_raised() -> None:
    transport = FakeTransport(lambda _, request: rows(request, 0, 29))
    with pytest.raises(TopicAuthorizationFailed, match="ListOffsets"):
        await lookup(transport, FakeTopics(leaders={TP: 1}), FakeClock()).find({TP: LATEST}, 9_999)


async def test_the_deadline_names_partition_and_trouble() -> None:
    clock = FakeClock()

    def answer(_where: str, _request: Any) -> Any:
        clock.ms += 10_000
        raise ConnectionBroken("cable cut")

    with pytest.raises(RequestTimedOut, match=r"t-0.*cable cut"):
        await lookup(FakeTransport(answer), FakeTopics(leaders={TP: 1}), clock).find(
            {TP: LATEST}, 9_999
        )


async def test_nothing_asked_is_nothing_sent() -> None:
    transport = FakeTransport(lambda _, request: rows(request, 5))
    assert await lookup(transport, FakeTopics(), FakeClock()).find({}, 9_999) == {}
    assert transport.asked == []
