"""A group that is told how far a query of Spark's own source is, without Spark."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from kip848_client import Admin, Consumer, TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark import GroupOffsets
from kip848_client.spark.control._progress import lag_between, positions_of
from mock_coordinator.threaded import BrokerThread

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
ID = "5f6e"


class FakeStreams:
    """``spark.streams``, which knows its listeners."""

    def __init__(self) -> None:
        self.listeners: list[Any] = []

    def addListener(self, listener: Any) -> None:  # noqa: N802  # Spark's name
        self.listeners.append(listener)

    def removeListener(self, listener: Any) -> None:  # noqa: N802  # Spark's name
        self.listeners.remove(listener)


def progress(end: str | None, latest: str | None = None, query_id: str = ID) -> Any:
    source = SimpleNamespace(endOffset=end, latestOffset=latest)
    return SimpleNamespace(id=query_id, sources=[source])


class FakeQuery:
    """A query that is as far as ``lastProgress`` says."""

    id = ID
    lastProgress: Any = None  # noqa: N815  # Spark's name


def options(broker: BrokerThread, **more: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": broker.bootstrap, "kafka.group.id": "g"} | more


def told(broker: BrokerThread) -> dict[TopicPartition, int]:
    async def ask() -> dict[TopicPartition, int]:
        async with Admin(bootstrap_servers=broker.bootstrap) as admin:
            found = await admin.list_group_offsets("g")
            return {tp: each.offset for tp, each in found.items()}

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "said",
    [
        None,
        "",
        "{",
        "[]",
        "17",
        '{"a": 3}',
        '{"a": {"x": 1}}',
        '{"a": {"0": "1"}}',
        '{"a": {"0": -1}}',
    ],
)
def test_what_is_no_offset_of_a_topic_is_none(said: str | None) -> None:
    assert positions_of(said) == {}


def test_the_lag_is_that_of_partitions_that_were_begun() -> None:
    done = positions_of('{"a": {"1": 7, "0": 3}}')
    assert done == {A0: 3, A1: 7}
    latest = positions_of('{"a": {"0": 10, "1": 5, "2": 9}}')
    assert lag_between(done, latest) == {A0: 7, A1: 0}


@pytest.mark.mock_broker(topics={"a": 2})
def test_a_group_knows_what_was_done(mock_broker: BrokerThread) -> None:
    spark: Any = SimpleNamespace(streams=FakeStreams())
    query: Any = FakeQuery()
    offsets = GroupOffsets(spark, query, options(mock_broker))
    offsets.onQueryProgress(_event(progress('{"a": {"0": 3, "1": 0}}', '{"a": {"0": 5, "1": 0}}')))
    offsets.onQueryProgress(_event(progress('{"a": {"0": 9}}', query_id="another")))
    assert offsets.lag() == {A0: 2, A1: 0}
    query.lastProgress = progress('{"a": {"0": 5, "1": 1}}')  # which no listener has heard of yet
    offsets.close()
    offsets.close()
    assert told(mock_broker) == {A0: 5, A1: 1}
    assert spark.streams.listeners == []
    offsets.onQueryProgress(_event(progress('{"a": {"0": 9}}')))  # it was on its way
    assert told(mock_broker) == {A0: 5, A1: 1}


@pytest.mark.mock_broker(topics={"a": 2, "b": 1})
def test_a_group_knows_what_every_source_of_a_query_has_done(mock_broker: BrokerThread) -> None:
    """One may say nothing of a batch."""
    spark: Any = SimpleNamespace(streams=FakeStreams())
    query: Any = FakeQuery()
    ends = ('{"a": {"0": 3, "1": 1}}', '{"b": {"0": 7}}')
    sources = [SimpleNamespace(endOffset=end, latestOffset=end) for end in ends]
    with GroupOffsets(spark, query, options(mock_broker)) as offsets:
        offsets.onQueryProgress(_event(SimpleNamespace(id=ID, sources=sources)))
        offsets.onQueryProgress(_event(progress('{"a": {"0": 4}}')))
    assert told(mock_broker) == {A0: 4, A1: 1, TopicPartition("b", 0): 7}


@pytest.mark.mock_broker(topics={"a": 2})
def test_a_group_with_members_is_left_alone(
    mock_broker: BrokerThread, caplog: pytest.LogCaptureFixture
) -> None:
    spark: Any = SimpleNamespace(streams=FakeStreams())
    query: Any = FakeQuery()
    query.lastProgress = progress('{"a": {"0": 5}}')

    async def beside_a_member() -> None:
        async with Consumer("a", bootstrap_servers=mock_broker.bootstrap, group_id="g") as member:
            await member.getmany(timeout_ms=1_000)
            with GroupOffsets(spark, query, options(mock_broker)) as offsets:
                await asyncio.to_thread(offsets.close, 0.5)

    with caplog.at_level(logging.WARNING, "kip848_client.spark"):
        asyncio.run(beside_a_member())
    assert "UNKNOWN_MEMBER_ID" in caplog.text
    assert "the progress of the query was not committed" in caplog.text
    assert told(mock_broker)[A0] == 0  # the member's


def test_brokers_that_are_away_hold_nobody_up(caplog: pytest.LogCaptureFixture) -> None:
    spark: Any = SimpleNamespace(streams=FakeStreams())
    query: Any = FakeQuery()
    query.lastProgress = progress('{"a": {"0": 5}}')
    nowhere = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.group.id": "g"}
    with caplog.at_level(logging.WARNING, "kip848_client.spark"):
        GroupOffsets(spark, query, nowhere).close(0.3)
    assert "the progress of the query was not committed" in caplog.text


@pytest.mark.mock_broker(topics={"a": 2})
def test_what_was_heard_is_told_when_spark_is_gone(mock_broker: BrokerThread) -> None:
    class Gone:
        id = ID

        @property
        def lastProgress(self) -> Any:  # noqa: N802  # Spark's name
            raise ConnectionRefusedError("no JVM")

    spark: Any = SimpleNamespace(streams=FakeStreams())
    query: Any = Gone()
    offsets = GroupOffsets(spark, query, options(mock_broker))
    offsets.onQueryProgress(_event(progress('{"a": {"0": 3, "1": 0}}')))
    offsets.close()
    assert told(mock_broker) == {A0: 3, A1: 0}


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"kafka.group.id": "g"}, r"kafka\.bootstrap\.servers is missing"),
        ({"kafka.bootstrap.servers": "x:1"}, r"kafka\.group\.id is missing"),
        (
            {
                "kafka.bootstrap.servers": "x:1",
                "kafka.group.id": "g",
                "kafka.security.protocol": "TLS",
            },
            "TLS",
        ),
    ],
)
def test_what_is_wrong_is_said_at_once(said: dict[str, str], error: str) -> None:
    spark: Any = SimpleNamespace(streams=FakeStreams())
    query: Any = FakeQuery()
    with pytest.raises(ConfigError, match=error):
        GroupOffsets(spark, query, said)
    assert spark.streams.listeners == []


def _event(said: Any) -> Any:
    return SimpleNamespace(progress=said)
