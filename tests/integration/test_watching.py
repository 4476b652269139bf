"""What can be seen of a consumer: health, events, lag, metrics. On every broker."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from kip848_client import (
    ConfigError,
    Consumer,
    MemberState,
    Metrics,
    Producer,
    TopicPartition,
)
from kip848_client.observe.core.watching import (
    ApplicationStalled,
    EventLoopBlocked,
    MemberEpochChanged,
    MembershipEvent,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    StateChanged,
)
from tests.integration.cluster import Cluster, eventually, kill, polling

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]

BLOCKED_S = 2.2
"""More than the second after which the consumer looks at the clock, and a heartbeat's interval."""


async def collect(consumer: Consumer[Any, Any], into: list[MembershipEvent]) -> None:
    async for event in consumer.events():
        into.append(event)  # noqa: PERF401 - one by one, for others to see as they come


async def test_a_member_that_is_well_says_so(cluster: Cluster) -> None:
    topic, group = cluster.unique("well"), cluster.unique("well")
    await cluster.create_topic(topic, 2)
    consumer = cluster.consumer(topic, group=group)
    assert str(consumer.health().state) == "NOT_STARTED"
    async with consumer, polling(consumer):
        await consumer.wait_stable(20_000)
        await consumer.wait_assigned(20_000)
        await eventually(lambda: consumer.health().poll_age_ms == 0)
        health = consumer.health()
        assert health.state is MemberState.STABLE
        assert health.live
        assert health.ready
        assert health.problems == ()
        assert health.member_epoch > 0
        assert health.assigned == 2
        assert health.coordinator == cluster.bootstrap
        assert health.heartbeat_age_ms is not None
        assert health.heartbeat_age_ms < 10_000
        assert health.unreachable_ms < 10_000
    assert str(consumer.health().state) == "CLOSED"


async def test_events_tell_a_rebalance_with_its_epochs(cluster: Cluster) -> None:
    topic, group = cluster.unique("events"), cluster.unique("events")
    await cluster.create_topic(topic, 2)
    await cluster.fast_group(group)
    consumer, told = cluster.consumer(topic, group=group), list[MembershipEvent]()
    following = asyncio.ensure_future(collect(consumer, told))
    await asyncio.sleep(0)
    before_ms = int(time.time() * 1000)
    async with consumer, polling(consumer):
        await consumer.wait_assigned(20_000)
        async with cluster.consumer(topic, group=group) as other, polling(other):
            await other.wait_assigned(20_000)
        await eventually(lambda: len(consumer.assignment()) == 2)
    await asyncio.wait_for(following, 10)
    assigned = [each for each in told if isinstance(each, PartitionsAssigned) and each.partitions]
    revoked = [each for each in told if isinstance(each, PartitionsRevoked)]
    assert set(assigned[0].partitions) == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    assert len(revoked[0].partitions) == 1, "for the other one"
    assert len(revoked[-1].partitions) == 2, "when it was stopped"
    assert assigned[0].member_epoch <= revoked[0].member_epoch < assigned[-1].member_epoch
    times = [each.time_ms for each in told]
    assert times == sorted(times)
    assert before_ms - 1_000 <= times[0] <= times[-1] <= int(time.time() * 1000) + 1_000
    epochs = [each for each in told if isinstance(each, MemberEpochChanged)]
    assert epochs[0].old_epoch == 0
    assert epochs[-1].member_epoch == 0
    last = [each for each in told if isinstance(each, StateChanged)][-1]
    assert last.new is MemberState.UNSUBSCRIBED


async def test_an_application_that_stalls_is_told_before_and_after(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group = cluster.unique("stall"), cluster.unique("stall")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"a"]})
    consumer, told = (
        cluster.consumer(topic, group=group, max_poll_interval_ms=800, enable_auto_commit=False),
        list[MembershipEvent](),
    )
    following = asyncio.ensure_future(collect(consumer, told))
    await consumer.start()
    await consumer.getone()
    await eventually(lambda: any(isinstance(each, PartitionsLost) for each in told))
    stalls = [each for each in told if isinstance(each, ApplicationStalled)]
    assert stalls[0].left_ms > 0
    assert stalls[-1].left_ms == 0
    health = consumer.health()
    assert health.stalled
    assert not health.live
    assert "has left its group" in health.problems[0]
    (warning, *_) = [each for each in caplog.records if "has not asked for records" in each.message]
    assert warning.levelno == logging.WARNING
    assert warning.__dict__["group_id"] == group
    assert warning.__dict__["left_ms"] > 0
    await kill(consumer)
    following.cancel()


async def test_a_blocked_event_loop_is_told(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic, group = cluster.unique("blocked"), cluster.unique("blocked")
    await cluster.create_topic(topic, 1)
    await cluster.fast_group(group, {"consumer.session.timeout.ms": "20000"})
    consumer, told = cluster.consumer(topic, group=group), list[MembershipEvent]()
    following = asyncio.ensure_future(collect(consumer, told))
    async with consumer, polling(consumer):
        await consumer.wait_assigned(20_000)
        interval_ms = consumer.health().heartbeat_interval_ms or 0
        assert interval_ms <= 500, "the group was told to be fast"
        time.sleep(BLOCKED_S)  # noqa: ASYNC251 - what blocks the loop is what this is about
        await eventually(lambda: any(isinstance(each, EventLoopBlocked) for each in told))
        assert consumer.member is not None
    await asyncio.wait_for(following, 10)
    blocked = next(each for each in told if isinstance(each, EventLoopBlocked))
    assert 500 <= blocked.late_ms < 8_000
    assert "the event loop did not run for at least" in caplog.text
    assert "asyncio.to_thread" in caplog.text


async def test_lag_falls_as_records_are_read(cluster: Cluster) -> None:
    topic, group = cluster.unique("lag"), cluster.unique("lag")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"%d" % number for number in range(5)]})
    tp = TopicPartition(topic, 0)
    async with cluster.consumer(topic, group=group) as consumer:
        await consumer.getone()
        assert consumer.lag() == {tp: 4}
        for _ in range(4):
            await consumer.getone()
        assert consumer.lag() == {tp: 0}


async def test_metrics_have_kafkas_names_and_end_with_the_consumer(cluster: Cluster) -> None:
    topic, group = cluster.unique("metrics"), cluster.unique("metrics")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"%d" % number for number in range(50)]})
    metrics = Metrics()
    consumer = cluster.consumer(topic, group=group, metrics=metrics)
    async with consumer, polling(consumer) as records:
        await eventually(lambda: len(records) == 50)
        await consumer.commit()
        assert metrics.value("records-consumed-total", group_id=group) == 50
        assert metrics.value("bytes-consumed-total") > 0
        assert metrics.value("records-lag", topic=topic, partition="0") == 0
        assert metrics.value("commit-total") >= 1
        assert metrics.value("commit-sync-time-ns-total") >= 0
        assert metrics.value("rebalance-total") >= 1
        assert metrics.value("heartbeat-total") >= 2
        assert metrics.value("fetch-total") >= 1
        assert metrics.value("assigned-partitions") == 1
        assert metrics.value("member-epoch") > 0
        assert metrics.value("fenced-total") == 0
    assert metrics.samples() == []


async def test_wait_stable_does_not_wait_for_partitions(cluster: Cluster) -> None:
    topic, group = cluster.unique("spare"), cluster.unique("spare")
    await cluster.create_topic(topic, 1)
    await cluster.fast_group(group)
    async with cluster.consumer(topic, group=group) as first, polling(first):
        await first.wait_assigned(20_000)
        async with cluster.consumer(topic, group=group) as spare:
            await spare.wait_stable(20_000)
            with pytest.raises(TimeoutError):
                await spare.wait_assigned(0)


async def test_without_a_group_there_is_health_too(cluster: Cluster) -> None:
    topic = cluster.unique("alone")
    await cluster.create_topic(topic, 1)
    async with cluster.consumer(group=None) as consumer:
        consumer.assign([(topic, 0)])
        assert await consumer.wait_stable(1_000) == {TopicPartition(topic, 0)}
        health = consumer.health()
        assert health.state is None
        assert health.ready


async def test_a_stream_of_no_events_is_refused() -> None:
    consumer = Consumer("t", group_id="g")
    with pytest.raises(ConfigError, match="size"):
        consumer.events(size=0)


async def test_a_producer_counts_what_it_sends(cluster: Cluster) -> None:
    topic = cluster.unique("counted")
    await cluster.create_topic(topic, 2)
    metrics = Metrics()
    settings: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap, "metrics": metrics}
    began_s = time.monotonic()
    async with Producer(**settings, transactional_id=cluster.unique("tx")) as producer:
        async with producer.transaction() as txn:
            for number in range(10):
                await txn.send(topic, b"x" * 100, key=b"%d" % number)
        took_ns = (time.monotonic() - began_s + 0.002) * 1e9
        assert metrics.value("record-send-total") == 10
        assert metrics.value("record-send-total", topic=topic) == 10
        assert metrics.value("byte-total", topic=topic) > 1_000
        assert metrics.value("record-error-total") == 0
        assert metrics.value("requests-in-flight") == 0
        assert metrics.value("request-latency-avg") >= 0
        assert metrics.value("buffer-available-bytes") == metrics.value("buffer-total-bytes") > 0
        in_transactions_ns = (
            metrics.value("txn-init-time-ns-total"),
            metrics.value("txn-commit-time-ns-total"),
        )
        # The clock has whole milliseconds: what a broker does in less may count 0.
        assert min(in_transactions_ns) >= 0
        assert sum(in_transactions_ns) <= took_ns
    assert metrics.samples() == [], "its metrics end with it"
