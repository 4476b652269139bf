"""A commit for the group fails once: what the next occasion tells, without Spark."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kip848_client import Consumer, TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import AdminFailed, Kip848Error
from kip848_client.spark import GroupOffsets
from kip848_client.spark._channel import ask
from kip848_client.spark.control import _group_offsets
from kip848_client.spark.source import _shared
from kip848_client.spark.source._exclusive import ExclusiveOwnership
from kip848_client.spark.source._shared import SharedOwnership
from kip848_client.spark.source.core._begin import Lineage
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._planning import Planning
from mock_coordinator import Fault, Match
from mock_coordinator.core.faults import Refuse
from mock_coordinator.threaded import BrokerThread
from tests.unit.spark.source._by_hand import Begin, committed, options_of, produce

pytestmark = pytest.mark.mock_broker(topics={"a": 3})

_A0, _A1 = TopicPartition("a", 0), TopicPartition("a", 1)
_BOTH = pytest.mark.parametrize("ownership", ["exclusive", "shared"])


def _refuse_commits(broker: BrokerThread, times: int = 1) -> None:
    """With an error that a client does not repeat by itself."""
    broker.inject(
        Fault(Refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED), Match(api="OffsetCommit"), times=times)
    )


@_BOTH
def test_a_trigger_without_news_tells_what_the_one_before_could_not(
    mock_broker: BrokerThread, begin: Begin, ownership: str
) -> None:
    query = begin(kafka_group_id="g", ownership=ownership)
    query.run()
    produce(mock_broker, 9)
    assert query.plan()
    query.read()
    _refuse_commits(mock_broker)
    assert not query.plan()
    assert sum(committed(mock_broker).values()) == 0
    assert not query.plan()
    assert committed(mock_broker) == {0: 3, 1: 3, 2: 3}


@_BOTH
def test_a_batch_of_one_partition_does_not_hide_another_that_was_not_told(
    mock_broker: BrokerThread, begin: Begin, ownership: str
) -> None:
    query = begin(kafka_group_id="g", ownership=ownership)
    query.run()
    mock_broker.produce("a", b"x", partition=0)
    assert query.plan()
    query.read()
    _refuse_commits(mock_broker)
    mock_broker.produce("a", b"y", partition=1)
    assert query.plan()
    query.read()
    assert not query.plan()
    found = committed(mock_broker)
    assert (found[0], found[1], found.get(2, 0)) == (1, 1, 0)


@_BOTH
def test_a_query_that_is_drained_tells_what_it_could_not(
    mock_broker: BrokerThread, begin: Begin, ownership: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "control")
    query = begin(kafka_group_id="g", ownership=ownership, control=path)
    query.run()
    produce(mock_broker, 9)
    assert query.plan()
    query.read()
    _refuse_commits(mock_broker)
    ask(path, {"done": query.log[-1].to_json()}, 20)
    assert sum(committed(mock_broker).values()) == 0
    ask(path, {"drain": True}, 20)
    assert committed(mock_broker) == {0: 3, 1: 3, 2: 3}
    produce(mock_broker, 3)
    assert not query.plan(), "a query that is drained plans nothing"


def test_a_partition_that_is_asked_back_is_told_before_it_goes(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    """Else its next owner reads the batch again."""
    query = begin(kafka_group_id="g", ownership="shared")
    query.run()
    produce(mock_broker, 9)
    assert query.plan()
    query.read()
    _refuse_commits(mock_broker)
    assert not query.plan()

    async def join() -> dict[int, int]:
        async with Consumer(
            "a", bootstrap_servers=mock_broker.bootstrap, group_id="g", enable_auto_commit=False
        ) as consumer:
            given = await consumer.wait_assigned(timeout_ms=20_000)
            return {tp.partition: await consumer.position(tp) for tp in given}

    positions = asyncio.run(join())
    assert positions
    assert set(positions.values()) == {3}


def test_where_a_member_begins_is_told_although_it_could_not_be_at_once(
    mock_broker: BrokerThread, begin: Begin
) -> None:
    """Else a restart would begin at the first record of what this run has passed over."""
    produce(mock_broker, 9)
    _refuse_commits(mock_broker)
    query = begin(kafka_group_id="g", ownership="shared", startingOffsets="latest")
    query.run()
    query.run()
    assert committed(mock_broker) == {0: 3, 1: 3, 2: 3}
    query.restart()
    produce(mock_broker, 1, first=9)
    query.run()
    assert query.sink == [(0, 3, b"v9")]


def test_a_commit_that_takes_too_long_is_asked_for_again(
    mock_broker: BrokerThread, begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = begin(kafka_group_id="g", ownership="shared")
    query.run()
    produce(mock_broker, 9)
    assert query.plan()
    query.read()
    monkeypatch.setattr(_shared, "_COMMIT_S", 0.2)
    refusal = Refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)  # which a client repeats by itself
    mock_broker.inject(Fault(refusal, Match(api="OffsetCommit"), times=4))
    assert not query.plan()
    assert sum(committed(mock_broker).values()) == 0
    monkeypatch.setattr(_shared, "_COMMIT_S", 20.0)
    assert not query.plan()
    assert committed(mock_broker) == {0: 3, 1: 3, 2: 3}


class _Cluster:
    """Commits of a query, which end when and as the test says."""

    def __init__(self) -> None:
        self.commits: list[tuple[dict[TopicPartition, int], asyncio.Future[None]]] = []

    async def commit(self, group: str, offsets: Mapping[TopicPartition, tuple[int, Any]]) -> None:
        assert group == "g"
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.commits.append(({tp: at for tp, (at, _) in offsets.items()}, done))
        await done


@pytest.mark.asyncio
async def test_a_commit_that_ends_late_does_not_stand_for_the_next_batch() -> None:
    """The control channel and Spark report batches side by side."""
    cluster: Any = _Cluster()
    first, second = (
        Manifest(1, {_A0: (0, 3), _A1: (0, 3)}),
        Manifest(2, {_A0: (3, 5)}, {}, None, {_A1: 3}),
    )
    query = ExclusiveOwnership(cluster, Planning(), Lineage("token", 1, "g"), second)
    slow = asyncio.create_task(query.is_done(first, 0))
    await asyncio.sleep(0)
    failing = asyncio.create_task(query.is_done(second, 0))
    await asyncio.sleep(0)
    cluster.commits[1][1].set_exception(AdminFailed("no", errors={}, done={}))
    await failing
    cluster.commits[0][1].set_result(None)
    await slow
    again = asyncio.create_task(query.is_done(second, 0))
    await asyncio.sleep(0)
    cluster.commits[2][1].set_result(None)
    await again
    assert [offsets for offsets, _ in cluster.commits] == [
        {_A0: 3, _A1: 3},
        {_A0: 5, _A1: 3},
        {_A0: 5},
    ]


def test_a_group_of_sparks_own_source_is_told_although_nothing_has_changed_since(
    mock_broker: BrokerThread, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(_group_offsets, "_PAUSE_S", 0.05)
    _refuse_commits(mock_broker)
    streams = SimpleNamespace(addListener=lambda _: None, removeListener=lambda _: None)
    source = SimpleNamespace(endOffset='{"a": {"0": 5, "1": 2}}', latestOffset=None)
    progress = SimpleNamespace(id="q", sources=[source])
    spark: Any = SimpleNamespace(streams=streams)
    query: Any = SimpleNamespace(id="q", lastProgress=progress)
    options = {"kafka.bootstrap.servers": mock_broker.bootstrap, "kafka.group.id": "g"}
    event: Any = SimpleNamespace(progress=progress)
    with caplog.at_level(logging.WARNING, "kip848_client.spark"):
        offsets = GroupOffsets(spark, query, options)
        offsets.onQueryProgress(event)
        mock_broker.wait_for(lambda broker: len(broker.requests("OffsetCommit")) == 2)
        offsets.close()
    assert committed(mock_broker) == {0: 5, 1: 2}
    assert "committing to group g failed, and is repeated" in caplog.text


class _Member:
    """The consumer of a member, whose calls fail as the test says."""

    def __init__(self, *failures: Kip848Error) -> None:
        self.config = SimpleNamespace(max_poll_interval_ms=4)
        self.failures = list(failures)
        self.live = True

    async def getmany(self, timeout_ms: int) -> None:
        assert timeout_ms == 0
        if self.failures:
            raise self.failures.pop(0)
        self.live = False
        raise Kip848Error("the membership has ended")

    def health(self) -> Any:
        return SimpleNamespace(live=self.live)


@pytest.mark.asyncio
async def test_a_member_goes_on_polling_after_an_error_that_does_not_end_it() -> None:
    """Else its group takes its partitions after ``max.poll.interval.ms``."""
    options = options_of("h:1", kafka_group_id="g", ownership="shared")
    nothing: Any = None
    me = Lineage("token", 1, "g")
    query: Any = SharedOwnership(options, nothing, Planning(), me, Manifest(0), nothing)
    member = _Member(Kip848Error("one"), Kip848Error("two"))
    async with asyncio.timeout(10):
        await query._poll(member)
    assert member.failures == []
    assert str(query._failure) == "the membership has ended"
