"""Each command of the fetch core becomes a request, or a word; each end of it an event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from kip848_client import TopicPartition
from kip848_client.consumer._fetch_driver import FetchDriver
from kip848_client.core.cluster import Endpoint, LeadersNotLearnt, LearnLeaders
from kip848_client.core.fetch import (
    CloseRequested,
    CloseSession,
    Command,
    CommittedFailed,
    CommittedFound,
    Event,
    FetchAnswered,
    FetchIntent,
    FetchLost,
    FoundOffset,
    ListedOffset,
    ListOffsets,
    LookUpCommitted,
    Notice,
    OffsetsAsked,
    OffsetsFound,
    OffsetsListed,
    OffsetsNotFound,
    OffsetsNotListed,
    OffsetsWithdrawn,
    Paused,
    Positioned,
    Readable,
    Resumed,
    SendFetch,
    StoredOffset,
    TimerFired,
    UseEndpoints,
    Wanted,
)
from kip848_client.core.offsets import CommittableOffset
from kip848_client.core.ports import ConnectionBroken, NotSent
from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.fetch import FetchResponse
from kip848_client.core.wire.messages.list_offsets import (
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    ConsumerClosed,
    Kip848Error,
    LocalProtocolError,
    RemoteProtocolError,
    RequestTimedOut,
    TopicAuthorizationFailed,
    UnsupportedVersion,
    WireError,
    broker_error,
)
from tests.unit.consumer.fakes import FakeClock, FakeTransport
from tests.unit.waiting import some_rounds, until

pytestmark = pytest.mark.asyncio

T = TopicId(b"t" * 16)
TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
START = Resumed(())
"""An event for which the core's script is played."""
FETCH = SendFetch(7, 1, FetchIntent(0, 0, (Wanted(T, 0, 5, 1, 0, 9),), (), 1, 1, 1, False, ""), 900)
LOST: list[tuple[Kip848Error, bool, bool]] = [
    # what the transport raises; whether it may have been sent; whether the user must know
    (NotSent("refused"), False, False),
    (ConnectionBroken("cut"), True, False),
    (RequestTimedOut("late"), True, False),
    (RemoteProtocolError("garbage"), True, False),
    (broker_error(ErrorCode.SASL_AUTHENTICATION_FAILED, "SASL_AUTHENTICATION_FAILED"), True, True),
    (UnsupportedVersion("v13"), True, True),
]


class ScriptedCore:
    """``script`` gives what follows from an event."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.script: dict[type[Event], list[Command]] = {}
        self.assigned = frozenset({TP})
        self.changes = 0
        self.rows_a_step = 500
        self.deadline_ms: int | None = None

    def step(self, _now_ms: int, event: Event) -> tuple[Command, ...]:
        self.events.append(event)
        if isinstance(event, TimerFired):
            self.deadline_ms = None
        return tuple(self.script.pop(type(event), ()))

    def topic_id(self, _tp: TopicPartition) -> TopicId:
        return T


class Commits:
    def __init__(self) -> None:
        self.result: Any = {}

    async def fetch_committed(self, partitions: Collection[TopicPartition], _by_ms: int) -> Any:
        assert partitions == (TP, OTHER)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


class Topics:
    async def look_up(self, wanted: LearnLeaders) -> LeadersNotLearnt:
        return LeadersNotLearnt(wanted.number, "nobody")


class FetchingHarness:
    def __init__(self) -> None:
        self.told: list[object] = []
        self.core = ScriptedCore()
        self.clock = FakeClock()
        self.transport = FakeTransport(lambda *_: FetchResponse())
        self.commits = Commits()
        core: Any = self.core
        topics: Any = Topics()
        commits: Any = self.commits
        self.fetching = FetchDriver(
            core,
            self.transport,
            topics,
            commits,
            self,
            self.clock,
            patience_ms=60_000,
            request_timeout_ms=30_000,
            fields={"group_id": "g"},
        )

    def positioned(self, told: Positioned) -> None:
        self.told.append(told)

    def readable(self) -> None:
        self.told.append("readable")

    def changed(self) -> None:
        self.told.append("changed")

    async def play(self, *commands: Command) -> list[Event]:
        """What the core hears of these commands."""
        self.core.script[type(START)] = list(commands)
        self.fetching.post(START)
        await some_rounds()
        return self.core.events[self.core.events.index(START) + 1 :]


@asynccontextmanager
async def harness() -> AsyncGenerator[FetchingHarness]:
    it = FetchingHarness()
    task = asyncio.get_running_loop().create_task(it.fetching.run())
    await it.fetching.begun()
    try:
        yield it
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


# -- requests ------------------------------------------------------------------------------------


async def test_a_fetch_goes_out_on_its_own_connection_and_its_answer_comes_back() -> None:
    async with harness() as it:
        (event,) = await it.play(FETCH)
        assert isinstance(event, FetchAnswered)
        assert event.fetch == 7
        assert it.transport.asked == [("fetch 1", "Fetch")]
        assert it.transport.versions == [(13, 18)]
        assert it.transport.timeouts == [900]
        assert it.fetching.answered_ms(TP) == it.clock.ms
        assert it.fetching.answered_ms(OTHER) is None


async def test_a_broker_that_forgets_what_another_is_asked_by_now_is_not_the_last_asked() -> None:
    """The new leader is asked at once, the old one told to forget when its request has ended."""
    async with harness() as it:
        await it.play(FETCH)
        await it.play(replace(FETCH, node=2))
        forgets = replace(FETCH.intent, add=(), forget=((T, 0),))
        await it.play(replace(FETCH, intent=forgets))
        assert it.fetching.answered_ms(TP) == it.clock.ms
        await it.play(replace(FETCH, node=2, intent=forgets))
        assert it.fetching.answered_ms(TP) is None


async def test_where_partitions_were_asked_that_are_gone_is_forgotten() -> None:
    async with harness() as it:
        for number in range(50):
            wanted = Wanted(TopicId(bytes([number]) * 16), 0, 5, 1, 0, 9)
            await it.play(replace(FETCH, intent=replace(FETCH.intent, add=(wanted,))))
        assert len(it.fetching._asked_at) <= 17


@pytest.mark.parametrize(("error", "sent", "to_tell"), LOST, ids=str)
async def test_what_becomes_of_a_fetch_that_is_lost(
    error: Kip848Error, sent: bool, to_tell: bool
) -> None:
    async with harness() as it:
        it.transport.answer = raising(error)
        assert await it.play(FETCH) == [FetchLost(7, str(error), sent, error if to_tell else None)]


async def test_a_request_that_cannot_be_written_ends_it() -> None:
    it = FetchingHarness()
    it.transport.answer = raising(WireError("no such field"))
    task = asyncio.get_running_loop().create_task(it.fetching.run())
    await it.fetching.begun()
    await it.play(FETCH)
    with pytest.raises(ExceptionGroup) as caught:
        await task
    assert caught.group_contains(WireError)


async def test_offsets_are_asked_of_the_leader() -> None:
    row = ListOffsetsResponseListOffsetsPartitionResponse(
        partition_index=0, error_code=0, timestamp=4, offset=5, leader_epoch=6
    )
    answer = ListOffsetsResponse(
        topics=(ListOffsetsResponseListOffsetsTopicResponse(name="t", partitions=(row,)),)
    )
    command = ListOffsets(3, 2, {TP: (-1, 1), OTHER: (-1, 1)}, read_committed=True)
    async with harness() as it:
        it.transport.answer = lambda *_: answer
        assert await it.play(command) == [OffsetsListed(3, {TP: ListedOffset(0, 5, 4, 6)})]
        assert it.transport.asked == [("broker 2", "ListOffsets")]
        assert it.transport.requests[0].isolation_level == 1


@pytest.mark.parametrize(("error", "sent", "to_tell"), LOST, ids=str)
async def test_what_becomes_of_offsets_that_are_not_told(
    error: Kip848Error, sent: bool, to_tell: bool
) -> None:
    del sent
    async with harness() as it:
        it.transport.answer = raising(error)
        events = await it.play(ListOffsets(3, 2, {TP: (-1, 1)}, read_committed=False))
        assert events == [OffsetsNotListed(3, str(error), error if to_tell else None)]


async def test_metadata_is_the_directorys() -> None:
    async with harness() as it:
        events = await it.play(LearnLeaders(4, frozenset({T}), frozenset(), "why"))
        assert events == [LeadersNotLearnt(4, "nobody")]


async def test_addresses_are_passed_on() -> None:
    async with harness() as it:
        await it.play(UseEndpoints((Endpoint(5, "h", 9, None),)))
        assert it.transport.brokers == {5: ("h", 9)}


async def test_committed_offsets_come_with_their_epochs() -> None:
    async with harness() as it:
        it.commits.result = {TP: CommittableOffset(5, 2, "text"), OTHER: None}
        events = await it.play(LookUpCommitted(6, (TP, OTHER)))
        assert events == [CommittedFound(6, {TP: StoredOffset(5, 2), OTHER: None})]


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (broker_error(ErrorCode.UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID"), True),
        (RequestTimedOut("late"), True),
        (ConsumerClosed("closed"), True),
        (broker_error(ErrorCode.GROUP_AUTHORIZATION_FAILED, "GROUP_AUTHORIZATION_FAILED"), False),
    ],
    ids=str,
)
async def test_what_is_told_of_committed_offsets_that_are_not_found(
    error: Kip848Error, passing: bool
) -> None:
    async with harness() as it:
        it.commits.result = error
        events = await it.play(LookUpCommitted(6, (TP, OTHER)))
        assert events == [CommittedFailed(6, error, passing)]


# -- words ---------------------------------------------------------------------------------------


async def test_the_application_hears_within_the_step() -> None:
    positioned = Positioned(TP, 5, 1, committed=False)
    async with harness() as it:
        it.core.script[type(START)] = [Readable(), positioned]
        it.core.changes += 1
        it.fetching.post(START)
        assert it.told == ["changed", "readable", positioned]


@pytest.mark.parametrize(("warning", "level"), [(True, logging.WARNING), (False, logging.INFO)])
async def test_notices_are_logged(
    warning: bool, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kip848_client")
    async with harness() as it:
        await it.play(Notice("100 % lost", warning=warning))
    assert [(each.levelno, each.getMessage()) for each in caplog.records] == [(level, "100 % lost")]
    assert caplog.records[0].__dict__["group_id"] == "g"


async def test_the_timer_is_given_when_it_is_due() -> None:
    async with harness() as it:
        it.core.deadline_ms = it.clock.ms + 1
        it.fetching.post(START)
        await until(lambda: TimerFired() in it.core.events)


# -- offsets by time -----------------------------------------------------------------------------


def asked(it: FetchingHarness) -> OffsetsAsked:
    found = it.core.events[-1]
    assert isinstance(found, OffsetsAsked)
    return found


async def test_offsets_are_found_for_who_asked() -> None:
    async with harness() as it:
        one = asyncio.ensure_future(it.fetching.offsets({TP: -1}, 9_999))
        await some_rounds()
        first = asked(it)
        two = asyncio.ensure_future(it.fetching.offsets({OTHER: 77}, 9_999))
        await some_rounds()
        second = asked(it)
        error = TopicAuthorizationFailed(29, "TOPIC_AUTHORIZATION_FAILED")
        found = {OTHER: FoundOffset(5, 77)}
        await it.play(OffsetsNotFound(first.ticket, error), OffsetsFound(second.ticket, found))
        assert await two == found
        with pytest.raises(TopicAuthorizationFailed):
            await one


async def test_who_gave_up_is_not_looked_for() -> None:
    async with harness() as it:
        waiting = asyncio.ensure_future(it.fetching.offsets({TP: -1}, 9_999))
        await some_rounds()
        ticket = asked(it).ticket
        waiting.cancel()
        await some_rounds()
        assert it.core.events[-1] == OffsetsWithdrawn(ticket)
        await it.play(OffsetsFound(ticket, {}))


async def test_nothing_asked_is_nothing_sent() -> None:
    async with harness() as it:
        assert await it.fetching.offsets({}, 9_999) == {}
        assert it.core.events == []


@pytest.mark.parametrize("error", [None, Kip848Error("boom")])
async def test_the_end_ends_every_wait(error: Kip848Error | None) -> None:
    async with harness() as it:
        waiting = asyncio.ensure_future(it.fetching.offsets({TP: -1}, 9_999))
        await some_rounds()
        it.fetching.end_waits(error)
        for each in (waiting, it.fetching.offsets({TP: -1}, 9_999)):
            with pytest.raises(ConsumerClosed if error is None else Kip848Error):
                await each


async def test_the_first_end_says_why() -> None:
    async with harness() as it:
        it.fetching.end_waits(Kip848Error("a bug"))
        it.fetching.end_waits(Kip848Error("what came of it"))
        with pytest.raises(Kip848Error, match="a bug"):
            await it.fetching.offsets({TP: -1}, 9_999)


# -- the end -------------------------------------------------------------------------------------


async def test_sessions_are_closed_beside_the_fetches() -> None:
    async with harness() as it:
        it.core.script[CloseRequested] = [CloseSession(1, 11), CloseSession(2, 22)]
        await it.fetching.close(5)
        assert sorted(it.transport.asked) == [("broker 1", "Fetch"), ("broker 2", "Fetch")]
        assert {(each.session_id, each.session_epoch) for each in it.transport.requests} == {
            (11, -1),
            (22, -1),
        }


async def test_closing_waits_no_longer_than_it_may() -> None:
    async with harness() as it:

        async def never(*_: object, **__: object) -> None:
            await asyncio.Event().wait()

        it.transport.broker = never  # type: ignore[method-assign] # a broker that does not answer
        it.core.script[CloseRequested] = [CloseSession(1, 11)]
        async with asyncio.timeout(5):
            await it.fetching.close(0.01)


async def test_a_session_that_cannot_be_closed_is_no_error() -> None:
    async with harness() as it:
        it.transport.answer = raising(NotSent("gone"))
        it.core.script[CloseRequested] = [CloseSession(1, 11)]
        await it.fetching.close(5)


async def test_an_event_that_is_refused_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with harness() as it:

        def refuse(_now_ms: int, _event: Event) -> tuple[Command, ...]:
            raise LocalProtocolError("negative")

        with monkeypatch.context() as patch:
            patch.setattr(it.core, "step", refuse)
            it.fetching.post(Paused((TP,)))
        assert isinstance((await it.play(FETCH))[0], FetchAnswered)


async def test_a_bug_in_a_step_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    it = FetchingHarness()
    task = asyncio.get_running_loop().create_task(it.fetching.run())
    await it.fetching.begun()

    def fail(_now_ms: int, _event: Event) -> tuple[Command, ...]:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(it.core, "step", fail)
    it.fetching.post(START)  # whoever posts does not get it
    with pytest.raises(ExceptionGroup) as caught:
        await task
    assert caught.group_contains(ZeroDivisionError)


def raising(error: Exception) -> Callable[[str, Any], Any]:
    def answer(_where: str, _request: Any) -> Any:
        raise error

    return answer
