"""A consumer's life with a network that fails as told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kip848_client import CommitFailed, LeaveMode, MemberState, TopicPartition
from kip848_client.consumer._fetch_driver import FetchDriver
from kip848_client.core.fetch import Event, FetchAnswered
from kip848_client.core.ports import NotSent
from kip848_client.errors import (
    ConfigError,
    ConsumerClosed,
    Kip848Error,
    LocalProtocolError,
)
from tests.unit.consumer.fake_network import TP, Offline, offline
from tests.unit.waiting import some_rounds, until

pytestmark = pytest.mark.asyncio

Call = Callable[[Offline], Coroutine[Any, Any, Any]]

CALLS: dict[str, Call] = {
    "getone": lambda one: one.consumer.getone(),
    "getmany": lambda one: one.consumer.getmany(timeout_ms=60_000),
    "anext": lambda one: one.consumer.__anext__(),
    "commit": lambda one: one.consumer.commit(),
    "committed": lambda one: one.consumer.committed(TP),
    "position": lambda one: one.consumer.position(TP),
    "wait_assigned": lambda one: one.consumer.wait_assigned(),
    "seek_to_end": lambda one: one.consumer.seek_to_end(TP),
    "topics": lambda one: one.consumer.topics(),
    "end_offsets": lambda one: one.consumer.end_offsets([TP]),
}


def stop(one: Offline) -> Coroutine[Any, Any, None]:
    return one.consumer.stop()


def boom() -> None:
    raise ZeroDivisionError("boom")


async def get(one: Offline, count: int = 1) -> None:
    await one.consumer.start()
    for _ in range(count):
        await asyncio.wait_for(one.consumer.getone(), 10)


async def test_a_start_asks_for_its_topics_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 1,000 partitions each of these answers costs some milliseconds. Leaders are asked for by
    id, once the group has assigned something."""
    async with offline(monkeypatch) as one:
        await get(one)
        await some_rounds()
        asked = one.network.transport.asked
        assert asked[: asked.index("ConsumerGroupHeartbeat")].count("Metadata") == 1


# -- the end that nobody asked for ---------------------------------------------------------------


@pytest.mark.parametrize("name", CALLS)
async def test_a_consumer_that_failed_tells_every_call(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with offline(monkeypatch) as one:
        await get(one)
        one.engine._spawn(boom_later)
        await until(lambda: one.engine.errors.fatal is not None)
        with pytest.raises(Kip848Error, match=r"failed by a bug of its own.*boom"):
            await asyncio.wait_for(CALLS[name](one), 5)
        member = one.consumer.member
        assert member is not None
        assert member.state is MemberState.FATAL
        assert "boom" in str(member.fatal_error)
        with pytest.raises(Kip848Error, match="boom"):
            one.consumer.subscribe(["u"])
        one.consumer.unsubscribe()  # is part of leaving, and does not fail


async def boom_later() -> None:
    boom()


@pytest.mark.parametrize("name", ["getone", "getmany", "commit", "position", "wait_assigned"])
async def test_a_call_that_waits_hears_of_the_end(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with offline(monkeypatch) as one:
        await get(one, 5)
        one.network.transport.before = lambda _name: asyncio.Event().wait()  # no answer any more
        if name == "position":
            one.engine._assign(dict(one.engine._assignment), [TP])
        if name == "wait_assigned":
            one.consumer.subscribe(["t", "u"])
            one.engine.released([TP])
        waiting = asyncio.ensure_future(CALLS[name](one))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        one.engine._spawn(boom_later)
        with pytest.raises(Kip848Error, match="boom"):
            await asyncio.wait_for(waiting, 5)


async def test_a_commit_of_a_dead_consumer_says_what_is_not_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with offline(monkeypatch) as one:
        await get(one, 2)
        one.engine._spawn(boom_later)
        await until(lambda: one.engine.errors.fatal is not None)
        with pytest.raises(CommitFailed) as caught:
            await one.consumer.commit()
        assert [each.offset for each in caught.value.offsets.values()] == [2]


async def test_a_consumer_whose_tasks_were_cancelled_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with offline(monkeypatch) as one:
        await get(one)
        assert one.engine.runtime.task is not None
        one.engine.runtime.task.cancel()
        # the engine hears of the end of its task one turn of the loop after it
        await until(lambda: one.engine.errors.fatal is not None)
        with pytest.raises(Kip848Error, match="was cancelled from outside"):
            await one.consumer.getone()


# -- many partitions ------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [10, 500])
async def test_the_number_of_events_does_not_grow_with_the_partitions(
    partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each event costs a look at all partitions here and there."""
    posted: list[Event] = []
    post = FetchDriver.post

    def count(fetching: FetchDriver, event: Event) -> None:
        posted.append(event)
        post(fetching, event)

    monkeypatch.setattr(FetchDriver, "post", count)
    async with offline(monkeypatch, partitions=partitions) as one:
        await one.consumer.start()
        await asyncio.wait_for(one.consumer.getone(), 10)
        tps = await one.consumer.wait_assigned()
        await until(lambda: all(one.engine.core.position(tp) is not None for tp in tps))
        assert len(tps) == partitions
        assert len([each for each in posted if not isinstance(each, FetchAnswered)]) < 25


# -- stopping ------------------------------------------------------------------------------------


async def test_stop_commits_leaves_and_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    async with offline(monkeypatch) as one:
        await get(one, 3)
        await one.consumer.stop()
        assert (one.committed, one.members) == (3, 0)
        assert one.network.transport.closed == 1
        with pytest.raises(ConsumerClosed):
            await one.consumer.getone()
        with pytest.raises(StopAsyncIteration):
            await anext(one.consumer)


async def test_each_step_runs_whatever_became_of_the_others_and_is_repeated_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with offline(monkeypatch) as one:
        await get(one, 3)
        one.network.transport.closing = boom
        with monkeypatch.context() as patch:
            patch.setattr(one.engine.positions, "close", boom)
            with pytest.raises(ZeroDivisionError) as caught:
                await one.consumer.stop()
        assert "while closing, also: ZeroDivisionError" in "".join(caught.value.__notes__)
        assert one.network.transport.closed == 1
        assert (one.committed, one.members) == (3, 0)
        with pytest.raises(ZeroDivisionError):
            await one.consumer.stop()
        one.network.transport.closing = lambda: None
        await one.consumer.stop()
        assert one.network.transport.closed == 3
        await one.consumer.stop()
        assert one.network.transport.closed == 3


async def test_two_stops_at_a_time_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async with offline(monkeypatch) as one:
        await get(one, 3)
        await asyncio.gather(one.consumer.stop(), one.consumer.stop(), one.consumer.stop())
        assert one.network.transport.closed == 1
        assert one.committed == 3


@pytest.mark.parametrize("wrong", [{"timeout_ms": "x"}, {"timeout_ms": None, "leave": "now"}])
async def test_a_stop_that_cannot_be_meant_changes_nothing(
    wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with offline(monkeypatch) as one:
        await get(one, 1)
        with pytest.raises(ConfigError):
            await one.consumer.stop(**wrong)
        assert (await one.consumer.getone()).offset == 1
        await one.consumer.stop(leave=LeaveMode.DEFAULT, timeout_ms=500)
        assert (one.committed, one.members) == (2, 0)


async def test_another_event_loop_is_refused_and_spoils_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with offline(monkeypatch) as one:
        await get(one, 1)
        refused: list[str] = []

        async def elsewhere() -> None:
            for name, call in (CALLS | {"stop": stop}).items():
                with pytest.raises(LocalProtocolError, match="another event loop"):
                    await asyncio.wait_for(call(one), 5)
                refused.append(name)

        def run() -> None:
            asyncio.run(elsewhere())
            with pytest.raises(LocalProtocolError, match="another event loop"):
                one.consumer.seek(TP, 3)

        await asyncio.to_thread(run)
        assert refused == [*CALLS, "stop"]
        assert (await one.consumer.getone()).offset == 1
        await one.consumer.stop()
        assert (one.committed, one.members) == (2, 0)


async def test_another_event_loop_is_refused_while_ours_is_busy_with_a_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with offline(monkeypatch) as one:
        await get(one, 1)
        refused: list[bool] = []

        async def elsewhere() -> None:
            with pytest.raises(LocalProtocolError, match="another event loop"):
                await anext(one.consumer)
            refused.append(True)

        thread = threading.Thread(target=lambda: asyncio.run(elsewhere()))
        thread.start()
        thread.join()  # the task that has records in its hands stands still here, in our loop
        assert refused


async def test_calls_from_a_thread_go_through_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async with offline(monkeypatch) as one:
        await one.consumer.start()
        loop = asyncio.get_running_loop()

        def run() -> int:
            one_record = asyncio.run_coroutine_threadsafe(one.consumer.getone(), loop).result(10)
            asyncio.run_coroutine_threadsafe(one.consumer.stop(), loop).result(10)
            return int(one_record.offset)

        assert await asyncio.to_thread(run) == 0
        assert one.committed == 1  # the task that got it has returned


@pytest.mark.parametrize("turns", range(0, 60, 3))
async def test_stop_goes_on_wherever_its_caller_is_cancelled(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with offline(monkeypatch) as one:
        await get(one, 3)
        stopping = asyncio.ensure_future(one.consumer.stop())
        for _ in range(turns):
            await asyncio.sleep(0)
        stopping.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        await one.consumer.stop()
        assert (one.committed, one.members, one.network.transport.closed) == (3, 0, 1)


@pytest.mark.parametrize("turns", range(0, 60, 3))
async def test_closing_goes_on_wherever_it_is_itself_cancelled(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As ``asyncio.run`` does to all tasks at the end: the step in progress is given up, what comes
    after it runs."""
    async with offline(monkeypatch) as one:
        await get(one, 3)
        stopping = asyncio.ensure_future(one.consumer.stop())
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in asyncio.all_tasks():
            if task.get_name() == "kip848-close":
                task.cancel()
        await asyncio.gather(stopping, return_exceptions=True)
        assert one.network.transport.closed == 1
        await one.consumer.stop()
        assert one.network.transport.closed == 1


@pytest.mark.parametrize("turns", range(1, 40, 2))
async def test_stop_ends_a_start_wherever_it_is(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with offline(monkeypatch) as one:
        starting = asyncio.ensure_future(one.consumer.start())
        for _ in range(turns):
            await asyncio.sleep(0)
        await one.consumer.stop(timeout_ms=500)
        result = (await asyncio.gather(starting, return_exceptions=True))[0]
        assert result is None or isinstance(result, ConsumerClosed)
        assert one.network.transport.closed >= 1


@pytest.mark.parametrize("name", ["getone", "getmany", "commit", "position", "wait_assigned"])
@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13])
async def test_a_call_may_be_cancelled_anywhere(
    name: str, turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with offline(monkeypatch) as one:
        await get(one, 2)
        call = asyncio.ensure_future(CALLS[name](one))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        left = 3 if call.cancelled() or name not in ("getone", "getmany") else 0
        if name == "getone" and not call.cancelled():
            left = 2
        for offset in range(5 - left, 5):
            assert (await asyncio.wait_for(one.consumer.getone(), 10)).offset == offset
        await one.consumer.stop()
        assert one.committed == 5


async def test_a_commit_under_way_is_answered_before_stop_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with offline(monkeypatch, enable_auto_commit=False) as one:
        await get(one, 3)
        gate = asyncio.Event()

        def slow(name: str) -> Coroutine[Any, Any, bool] | None:
            return gate.wait() if name == "OffsetCommit" else None

        one.network.transport.before = slow
        committing = asyncio.ensure_future(one.consumer.commit())
        await until(lambda: "OffsetCommit" in one.network.transport.asked)
        stopping = asyncio.ensure_future(one.consumer.stop())
        await some_rounds()
        assert one.members == 1  # who has left may not commit any more
        gate.set()
        await stopping
        assert (await committing)[TP].offset == 3


@pytest.mark.parametrize("auto_commit", [True, False])
async def test_stop_keeps_its_time_when_the_coordinator_is_gone(
    auto_commit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with offline(monkeypatch, enable_auto_commit=auto_commit) as one:
        await get(one, 3)

        def gone(name: str) -> None:
            raise NotSent(f"nobody there for {name}")

        one.network.transport.before = gone
        loop = asyncio.get_running_loop()
        started = loop.time()
        await one.consumer.stop(timeout_ms=300)
        assert loop.time() - started < 2
        assert one.network.transport.closed == 1


async def test_a_second_stop_with_less_time_hastens_the_leave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with offline(monkeypatch, enable_auto_commit=False) as one:
        await get(one, 3)
        one.network.transport.before = lambda _name: asyncio.Event().wait()  # no answer any more
        first = asyncio.ensure_future(one.consumer.stop())
        await until(lambda: one.engine._leaving)
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.gather(first, one.consumer.stop(timeout_ms=50))
        assert loop.time() - started < 2
        assert one.network.transport.closed == 1


async def test_unsubscribe_in_the_middle_of_a_rebalance(monkeypatch: pytest.MonkeyPatch) -> None:
    async with offline(monkeypatch) as one:
        inside, go_on = asyncio.Event(), asyncio.Event()

        class Listener:
            async def on_partitions_assigned(self, _assigned: set[TopicPartition]) -> None:
                inside.set()
                await go_on.wait()

            def on_partitions_revoked(self, _revoked: set[TopicPartition]) -> None:
                pass

        one.consumer.subscribe(["t"], listener=Listener())
        await one.consumer.start()
        polling = asyncio.ensure_future(one.consumer.getone())
        await asyncio.wait_for(inside.wait(), 10)
        one.consumer.unsubscribe()
        go_on.set()
        await until(lambda: one.members == 0)
        await until(lambda: one.consumer.assignment() == frozenset())
        assert not polling.done()
        one.consumer.subscribe(["t"])
        assert (await asyncio.wait_for(polling, 10)).offset == 0


async def test_a_listener_that_refuses_to_end_does_not_hold_stop_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with offline(monkeypatch) as one:
        finish = asyncio.Event()

        class Stubborn:
            def on_partitions_assigned(self, _assigned: set[TopicPartition]) -> None:
                pass

            async def on_partitions_revoked(self, _revoked: set[TopicPartition]) -> None:
                while not finish.is_set():
                    try:
                        await finish.wait()
                    except asyncio.CancelledError:
                        continue

        one.consumer.subscribe(["t"], listener=Stubborn())
        await get(one)
        loop = asyncio.get_running_loop()
        started = loop.time()
        await one.consumer.stop(timeout_ms=200)
        assert loop.time() - started < 2
        assert (one.members, one.network.transport.closed) == (0, 1)
        finish.set()
        await until(lambda: not any("Stubborn" in each.get_name() for each in asyncio.all_tasks()))


async def test_what_was_assigned_by_hand_does_not_start_in_the_group_that_has_it_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Metadata for the old assignment comes when the group's listener is not done yet."""
    told, done = asyncio.Event(), asyncio.Event()

    class Listener:
        async def on_partitions_assigned(self, _new: object) -> None:
            await done.wait()

        def on_partitions_revoked(self, _gone: object) -> None:
            """Not looked at."""

    async with offline(monkeypatch) as one:
        await one.consumer.start()
        one.consumer.unsubscribe()
        await until(lambda: not one.members)
        transport = one.network.transport
        transport.before = lambda name: told.wait() if name == "Metadata" else None
        one.consumer.assign([TP])
        await until(lambda: "Metadata" in transport.asked)
        one.consumer.unsubscribe()
        one.consumer.subscribe(["t"], listener=Listener())
        asking = asyncio.create_task(one.consumer.getone())
        await until(lambda: one.engine.core.assigned)
        transport.asked.clear()
        told.set()
        await some_rounds(50)
        assert "OffsetFetch" not in transport.asked, "the listener may have to flush first"
        done.set()
        assert (await asking).offset == 0
