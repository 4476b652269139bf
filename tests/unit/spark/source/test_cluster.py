"""What a query asks of brokers for each batch, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from kip848_client.admin import (
    EARLIEST,
    ListedOffset,
    PartitionDescription,
    TopicDescription,
    TopicListing,
)
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import AdminFailed, BrokerError
from kip848_client.spark.source import _cluster
from kip848_client.spark.source._cluster import Cluster
from kip848_client.spark.source.core._options import source_options
from kip848_client.spark.source.core._planning import DataLost, Seen
from tests.unit.spark.source._by_hand import options_of

_TP = TopicPartition("a", 0)


class _Broker:
    """Answers as an ``Admin`` does. What is asked is noted when it is answered."""

    def __init__(self) -> None:
        self.topic_id = "one"
        self.end = 5
        self.names: tuple[str, ...] = ("a",)
        self.forgets = 0
        """How often it does not know topics that exist, as just after a restart."""
        self.answers: list[str] = []
        self.may_describe = asyncio.Event()
        self.may_describe.set()
        self.was_asked_for_offsets = asyncio.Event()

    async def list_topics(self) -> list[TopicListing]:
        if self.forgets:
            self.forgets -= 1
            return []
        return [TopicListing(name, "one", False) for name in self.names]

    async def describe_topics(self, topics: Iterable[str]) -> dict[str, TopicDescription]:
        await self.may_describe.wait()
        self.answers.append("topics")
        if self.forgets:
            self.forgets -= 1
            unknown = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "Metadata")
            raise AdminFailed("no", errors=dict.fromkeys(topics, unknown), done={})
        partition = PartitionDescription(0, 1, 0, (1,), (1,), ())
        return {name: TopicDescription(name, self.topic_id, False, (partition,)) for name in topics}

    async def list_offsets(
        self, times: Mapping[TopicPartition, int], **_: Any
    ) -> dict[TopicPartition, ListedOffset]:
        self.answers.append("offsets")
        self.was_asked_for_offsets.set()
        found = {
            tp: ListedOffset(0 if when == EARLIEST else self.end) for tp, when in times.items()
        }
        await asyncio.sleep(0)
        return found


async def _looked_once(monkeypatch: pytest.MonkeyPatch) -> tuple[_Broker, Cluster]:
    broker = _Broker()
    cluster = Cluster(options_of("localhost:9092"))
    monkeypatch.setattr(cluster, "_admin", broker)
    assert await cluster.seen() == Seen({_TP: (0, 5)}, {"a": "one"}, {_TP: 0})
    broker.answers.clear()
    broker.was_asked_for_offsets.clear()
    broker.may_describe.clear()
    return broker, cluster


@pytest.mark.asyncio
async def test_offsets_are_asked_for_while_it_is_asked_whether_the_topics_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker, cluster = await _looked_once(monkeypatch)
    looking = asyncio.create_task(cluster.seen())
    async with asyncio.timeout(10):
        await broker.was_asked_for_offsets.wait()
    broker.may_describe.set()
    assert await looking == Seen({_TP: (0, 5)}, {"a": "one"}, {_TP: 0})
    assert sorted(broker.answers) == ["offsets", "offsets", "topics"]


@pytest.mark.asyncio
async def test_offsets_of_another_topic_of_the_same_name_are_asked_for_after_it_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker, cluster = await _looked_once(monkeypatch)
    looking = asyncio.create_task(cluster.seen())
    await broker.was_asked_for_offsets.wait()
    broker.topic_id, broker.end = "two", 2
    broker.may_describe.set()
    assert await looking == Seen({_TP: (0, 2)}, {"a": "two"}, {_TP: 0})
    assert broker.answers[-3:] == ["topics", "offsets", "offsets"]


@pytest.mark.asyncio
async def test_whoever_gives_up_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, cluster = await _looked_once(monkeypatch)
    looking = asyncio.create_task(cluster.seen())
    await broker.was_asked_for_offsets.wait()
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.asyncio
@pytest.mark.parametrize("said", [{"subscribe": "a"}, {"subscribePattern": "a"}])
async def test_a_topic_that_a_broker_forgets_for_a_moment_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, str]
) -> None:
    monkeypatch.setattr(_cluster, "_PAUSE_S", 0.0)
    broker = _Broker()
    options = {"kafka.bootstrap.servers": "localhost:9092", **said}
    cluster = Cluster(source_options(options, is_stream=True))
    monkeypatch.setattr(cluster, "_admin", broker)
    await cluster.seen()
    broker.forgets = 2
    assert await cluster.seen() == Seen({_TP: (0, 5)}, {"a": "one"}, {_TP: 0})
    monkeypatch.setattr(_cluster, "_GONE_S", 0.0)
    broker.forgets = 1_000
    with pytest.raises(DataLost, match="topic a was deleted while the query ran"):
        await cluster.seen()


async def _warnings_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, pattern: str, *names: str
) -> list[str]:
    """What the log says of a pattern among these topics, which are looked at three times."""
    broker = _Broker()
    said = {"kafka.bootstrap.servers": "localhost:9092", "subscribePattern": pattern}
    cluster = Cluster(source_options(said, is_stream=True))
    monkeypatch.setattr(cluster, "_admin", broker)
    broker.names = names
    for _ in range(3):
        await cluster.seen()
    return [each.getMessage() for each in caplog.records]


@pytest.mark.asyncio
async def test_a_pattern_that_matches_no_whole_name_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    [told] = await _warnings_of(monkeypatch, caplog, "o2?-", "txo-1", "o2-1")
    assert told == (
        "subscribePattern='o2?-' matches no topic; it must match whole names; "
        ".*(o2?-).* also matches o2-1"
    )


@pytest.mark.asyncio
async def test_a_pattern_that_matches_nothing_at_all_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    [told] = await _warnings_of(monkeypatch, caplog, "orders.*", "invoices")
    assert told == "subscribePattern='orders.*' matches no topic; it must match whole names"


@pytest.mark.asyncio
async def test_a_pattern_that_matches_a_topic_is_not_worth_a_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert await _warnings_of(monkeypatch, caplog, "a", "a", "ab") == []
