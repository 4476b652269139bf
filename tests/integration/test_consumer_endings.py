"""The end of a consumer, wanted or not: what ended it is told to everyone."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kip848_client import (
    CallbackError,
    CommitFailed,
    Consumer,
    MemberState,
    OffsetAndMetadata,
    TopicPartition,
)
from kip848_client.core.wire.messages.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from kip848_client.errors import ConsumerClosed, Kip848Error, NotAssigned, TransportError
from tests.integration.cluster import Cluster, eventually, polling
from tests.integration.intercepted import Interceptor, intercepted

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(120)]


def heartbeats(consumer: Consumer[Any, Any]) -> int:
    member = consumer.member
    assert member is not None
    return member.heartbeats_answered


class StopsItsWorker:
    """Cancels a worker and awaits it: out comes a CancelledError."""

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        pass

    async def on_partitions_revoked(self, _revoked: set[TopicPartition]) -> None:
        worker = asyncio.get_running_loop().create_task(asyncio.Event().wait())
        worker.cancel()
        await worker


async def test_a_cancelled_error_of_a_listener_is_its_failure(cluster: Cluster) -> None:
    """A listener that cancels its worker and awaits it lets a CancelledError out: it must not be
    taken for our own cancellation, which would end the membership without a word."""
    topic, group = cluster.unique("worker"), cluster.unique("worker")
    await cluster.create_topic(topic, 2)
    await cluster.fast_group(group)

    consumer = cluster.consumer(group=group)
    consumer.subscribe([topic], listener=StopsItsWorker())
    await consumer.start()
    await consumer.wait_assigned(20_000)
    async with cluster.consumer(topic, group=group) as other, polling(other):
        with pytest.raises(CallbackError, match="let a CancelledError out"):
            await consumer.getone()
        member = consumer.member
        assert member is not None
        await eventually(lambda: heartbeats(consumer) > member.heartbeats_answered + 2)
        assert len(consumer.assignment()) == 2  # it has not agreed to give anything up
        assert len(other.assignment()) == 0
        with pytest.raises(CallbackError):
            await consumer.stop()
        await eventually(lambda: len(other.assignment()) == 2)


async def test_a_dead_membership_is_told_to_every_call(cluster: Cluster) -> None:
    topic, group = cluster.unique("dead"), cluster.unique("dead")
    await cluster.create_topic(topic, 1)
    consumer = cluster.consumer(topic, group=group)
    await consumer.start()
    await consumer.wait_assigned(20_000)
    tp = TopicPartition(topic, 0)
    waiting = [
        asyncio.get_running_loop().create_task(call)
        for call in (consumer.getone(), consumer.getmany(timeout_ms=60_000))
    ]
    await asyncio.sleep(0)
    for task in asyncio.all_tasks():  # what no part of this package does
        if "_run_member" in repr(task):
            task.cancel()
    for each in waiting:
        with pytest.raises(Kip848Error, match="the membership ended without having been stopped"):
            await each
    for call in (
        consumer.getone,
        consumer.getmany,
        consumer.commit,
        consumer.wait_assigned,
        consumer.topics,
        lambda: consumer.committed(tp),
        lambda: consumer.position(tp),
        lambda: consumer.seek_to_end(tp),
        lambda: anext(consumer),
    ):
        with pytest.raises(Kip848Error, match="the membership ended"):
            await call()
    with pytest.raises(Kip848Error, match="the membership ended"):
        consumer.subscribe([topic])
    member = consumer.member
    assert member is not None
    assert member.state is MemberState.FATAL
    assert "the membership ended" in str(member.fatal_error)
    await consumer.stop()
    with pytest.raises(ConsumerClosed):
        await consumer.getone()


# -- an identity provider that is away for a while -----------------------------------------------


class Provider:
    """Gives tokens (no aiokafka class is needed), or answers like a web service that is down."""

    away = False

    async def token(self) -> str:
        if self.away:
            raise RuntimeError("the identity provider answered 503")
        return "token"


def accepts_every_token(door: Interceptor) -> None:
    door.answers["SaslHandshake"] = lambda _: SaslHandshakeResponse(
        error_code=0, mechanisms=("OAUTHBEARER",)
    )
    door.answers["SaslAuthenticate"] = lambda _: SaslAuthenticateResponse(error_code=0)


@pytest.mark.parametrize("which", ["all", "short requests"])
async def test_an_identity_provider_that_is_away_for_a_while_is_survived(which: str) -> None:
    async with intercepted() as (door, cluster):
        await cluster.create_topic("t", 1)
        await cluster.produce("t", {0: [b"1"]})
        accepts_every_token(door)
        provider = Provider()
        consumer = cluster.consumer(
            "t",
            group="g",
            metadata_max_age_ms=100,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="OAUTHBEARER",
            sasl_oauth_token_provider=provider,
        )
        async with consumer:
            assert (await consumer.getone()).value == b"1"
            provider.away = True
            cut(consumer, everything=which == "all")
            asked = door.asked["Metadata"]
            with pytest.raises(TransportError, match=r"token\(\) of .* raised RuntimeError"):
                await consumer.topics()
            await asyncio.sleep(0.3)  # so that everything that is periodic has failed once
            assert door.asked["Metadata"] == asked
            provider.away = False
            await cluster.produce("t", {0: [b"2"]})
            assert (await consumer.getone()).value == b"2"
            assert await consumer.commit() == {TopicPartition("t", 0): OffsetAndMetadata(2, "")}
            seen = door.asked["Metadata"]
            await eventually(lambda: door.asked["Metadata"] > seen + 1)
        assert (await cluster.describe("g")).members == ()


def cut(consumer: Consumer[Any, Any], *, everything: bool) -> None:
    """What ``connections.max.idle.ms`` of a broker does, or its restart."""
    engine = consumer._engine
    assert engine is not None
    connections = [link._connection for link in engine.transport._links._links.values()]
    if everything:
        fetching = engine.transport._fetch_links._links.values()
        connections += [link._connection for link in fetching]
    for each in connections:
        if each is not None:
            each.close()


# -- committing what is not ours any more --------------------------------------------------------


async def test_a_commit_after_the_partitions_were_lost_says_so(cluster: Cluster) -> None:
    topic, group = cluster.unique("late"), cluster.unique("late")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"x"] * 5})
    tp = TopicPartition(topic, 0)
    consumer = cluster.consumer(
        topic, group=group, max_poll_interval_ms=700, enable_auto_commit=False, max_poll_records=3
    )
    async with consumer:
        assert len((await consumer.getmany(timeout_ms=20_000))[tp]) == 3
        await eventually(lambda: consumer.assignment() == frozenset())
        for offsets, expected in ((None, 3), ({tp: 2}, 2)):
            with pytest.raises(CommitFailed, match="no longer assigned to this member") as caught:
                await consumer.commit(offsets)
            assert caught.value.offsets == {tp: OffsetAndMetadata(expected)}
        assert await cluster.committed(group, topic) == {}
        assert (await consumer.getmany(timeout_ms=20_000))[tp][0].offset == 0  # as it says
        assert await consumer.commit() == {tp: OffsetAndMetadata(3)}


async def test_nothing_to_commit_is_only_an_error_when_nothing_is_consumed(
    cluster: Cluster,
) -> None:
    topic = cluster.unique("nothing")
    await cluster.create_topic(topic, 1)
    async with cluster.consumer(group=cluster.unique("nothing")) as consumer:
        with pytest.raises(NotAssigned, match="subscribe"):
            await consumer.commit()
        consumer.subscribe([topic])
        assert await consumer.commit() == {}
        with pytest.raises(NotAssigned):
            await consumer.commit({("other", 0): 1})


async def test_an_automatic_commit_does_not_fall_behind_one_by_hand(cluster: Cluster) -> None:
    topic, group = cluster.unique("behind"), cluster.unique("behind")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"x"] * 5})
    async with cluster.consumer(topic, group=group, auto_commit_interval_ms=50) as consumer:
        for _ in range(3):
            await consumer.getone()
        await consumer.commit()  # the record in hand included: it is done, though not back
        await asyncio.sleep(0.3)
        assert await cluster.committed(group, topic) == {0: 3}


# -- unsubscribing -------------------------------------------------------------------------------


async def test_unsubscribe_commits_what_is_done_before_it_leaves(cluster: Cluster) -> None:
    topic, group = cluster.unique("unsubscribe"), cluster.unique("unsubscribe")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"x"] * 5})
    async with cluster.consumer(topic, group=group, auto_commit_interval_ms=60_000) as consumer:
        for _ in range(3):
            await consumer.getone()
        consumer.unsubscribe()
        await eventually(lambda: consumer.assignment() == frozenset())
        assert await cluster.committed(group, topic) == {0: 3}
        consumer.subscribe([topic])
        assert (await consumer.getone()).offset == 3


async def test_unsubscribe_waits_for_who_is_in_the_middle_of_a_record(cluster: Cluster) -> None:
    topic, group = cluster.unique("middle"), cluster.unique("middle")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"x"] * 5})
    async with cluster.consumer(topic, group=group, auto_commit_interval_ms=60_000) as consumer:
        worker = Worker(consumer)
        await worker.reached(2)
        consumer.unsubscribe()
        await asyncio.sleep(0.3)
        assert len((await cluster.describe(group)).members) == 1
        worker.go_on.set()
        await eventually(lambda: consumer.assignment() == frozenset())
        assert await cluster.committed(group, topic) == {0: 3}
        await worker.cancel()


async def test_what_is_assigned_after_unsubscribe(cluster: Cluster) -> None:
    """As docs/reference/from-aiokafka.md says: until the listener has returned."""
    topic, group = cluster.unique("assigned"), cluster.unique("assigned")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"x"]})
    tps = {TopicPartition(topic, 0)}
    within, is_called, go_on = list[set[TopicPartition]](), asyncio.Event(), asyncio.Event()

    class Listener:
        async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            pass

        async def on_partitions_revoked(self, _revoked: set[TopicPartition]) -> None:
            is_called.set()
            await go_on.wait()
            within.append(set(consumer.assignment()))

    async with cluster.consumer(group=group) as consumer:
        consumer.subscribe([topic], listener=Listener())
        await consumer.getone()
        consumer.unsubscribe()
        assert consumer.assignment() == tps
        await is_called.wait()
        go_on.set()
        await eventually(lambda: consumer.assignment() == frozenset())
        assert within == [tps]
        consumer.assign([*tps])
        assert consumer.assignment() == tps
        consumer.unsubscribe()
        assert consumer.assignment() == frozenset()


@pytest.mark.parametrize("how", ["unsubscribe", "assign", "unsubscribe and assign"])
async def test_partitions_given_up_by_hand_are_committed(how: str) -> None:
    async with intercepted() as (_door, cluster):
        await cluster.create_topic("t", 2)
        await cluster.produce("t", {0: [b"x"] * 5})
        settings = {"auto_commit_interval_ms": 60_000}
        async with cluster.consumer(group="g", **settings) as consumer:
            if how == "unsubscribe and assign":
                consumer.subscribe(["t"])
            else:
                consumer.assign([("t", 0)])
            await consumer.getone()
            if "unsubscribe" in how:
                consumer.unsubscribe()
            if "assign" in how:
                consumer.assign([("t", 1)])

            async def is_committed() -> bool:
                return (await cluster.committed("g", "t")).get(0) == 1

            await eventually(is_committed)


# -- stopping while records are being processed --------------------------------------------------


class Worker:
    """Iterates in a task of its own, and stays in the record at ``stop_at`` until told."""

    def __init__(self, consumer: Consumer[Any, Any]) -> None:
        self.consumer = consumer
        self.done: list[int] = []
        self.go_on = asyncio.Event()
        self.stop_at = -1
        self.holds = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def reached(self, offset: int) -> None:
        """Return when it is in the middle of this record."""
        self.stop_at = offset
        self.task = asyncio.get_running_loop().create_task(self._work())
        await asyncio.wait_for(self.holds.wait(), 25)

    async def _work(self) -> None:
        async for record in self.consumer:
            if record.offset == self.stop_at:
                self.holds.set()
                await self.go_on.wait()
            self.done.append(record.offset)

    async def cancel(self) -> None:
        assert self.task is not None
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@asynccontextmanager
async def in_the_middle(
    cluster: Cluster, name: str, **settings: Any
) -> AsyncGenerator[tuple[Consumer[Any, Any], Worker, str, str]]:
    """A worker with records 0 and 1 behind it and record 2 in its hands; topic and group."""
    topic, group = cluster.unique(name), cluster.unique(name)
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"x"] * 5})
    settings.setdefault("auto_commit_interval_ms", 60_000)
    consumer = cluster.consumer(topic, group=group, **settings)
    await consumer.start()
    worker = Worker(consumer)
    try:
        await worker.reached(2)
        yield consumer, worker, topic, group
    finally:
        await worker.cancel()
        await consumer.stop()


async def test_stop_waits_for_the_task_that_has_a_record(cluster: Cluster) -> None:
    async with in_the_middle(cluster, "drain") as (consumer, worker, topic, group):
        stopping = asyncio.get_running_loop().create_task(consumer.stop())
        await asyncio.sleep(0.2)
        assert not stopping.done()
        assert len((await cluster.describe(group)).members) == 1
        worker.go_on.set()
        await stopping
        assert worker.done == [0, 1, 2]  # its loop has ended
        assert await cluster.committed(group, topic) == {0: 3}
        assert (await cluster.describe(group)).members == ()


async def test_a_record_that_is_not_done_in_time_is_not_committed(cluster: Cluster) -> None:
    async with in_the_middle(cluster, "slow") as (consumer, _worker, topic, group):
        started = time.monotonic()
        await consumer.stop(timeout_ms=600)
        assert time.monotonic() - started < 2
        assert await cluster.committed(group, topic) == {0: 2}
        assert (await cluster.describe(group)).members == ()


async def test_the_listener_hears_of_an_end_that_came_too_early(cluster: Cluster) -> None:
    """As Java's client calls it, whatever time is left."""
    told: list[set[TopicPartition]] = []

    class Listener:
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            told.append(revoked)

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            del assigned

    async with in_the_middle(cluster, "told") as (consumer, _worker, topic, _group):
        consumer.subscribe([topic], listener=Listener())
        await consumer.stop(timeout_ms=600)
        assert told == [{TopicPartition(topic, 0)}]


async def test_a_task_may_commit_while_stop_waits_for_it(cluster: Cluster) -> None:
    async with in_the_middle(cluster, "by-hand", enable_auto_commit=False) as it:
        consumer, worker, topic, group = it
        stopping = asyncio.get_running_loop().create_task(consumer.stop())
        await asyncio.sleep(0)
        await consumer.commit()
        worker.go_on.set()
        await stopping
        assert await cluster.committed(group, topic) == {0: 3}


async def test_a_second_stop_hastens_the_first(cluster: Cluster) -> None:
    async with in_the_middle(cluster, "hasten") as (consumer, _worker, topic, group):
        first = asyncio.get_running_loop().create_task(consumer.stop())
        await asyncio.sleep(0.1)
        started = time.monotonic()
        await asyncio.gather(first, consumer.stop(timeout_ms=300))
        assert time.monotonic() - started < 3
        assert (await cluster.describe(group)).members == ()
        assert await cluster.committed(group, topic) in ({0: 2}, {})


async def test_stop_counts_the_record_of_its_caller_as_done(cluster: Cluster) -> None:
    topic, group = cluster.unique("caller"), cluster.unique("caller")
    await cluster.create_topic(topic, 1)
    await cluster.produce(topic, {0: [b"x"] * 5})
    for how in ("stop", "wait_for", "block"):
        consumer = cluster.consumer(topic, group=group, auto_commit_interval_ms=60_000)
        await consumer.start()
        started = time.monotonic()
        if how == "stop":
            await consumer.getone()
            await consumer.stop()
        elif how == "wait_for":  # both run in tasks of their own, in Python 3.11
            await asyncio.wait_for(consumer.getone(), 25)
            await asyncio.wait_for(consumer.stop(), 25)
        else:
            async with contextlib.aclosing(Stopping(consumer)):
                await asyncio.wait_for(anext(consumer), 25)
        assert time.monotonic() - started < 10
    assert await cluster.committed(group, topic) == {0: 3}


class Stopping:
    """For ``aclosing``: a helper that stops the consumer, in the task that has the record."""

    def __init__(self, consumer: Consumer[Any, Any]) -> None:
        self.consumer = consumer

    async def aclose(self) -> None:
        await self.consumer.stop()
