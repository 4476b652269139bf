"""The group driver performs what the core asks for, with everything around it faked."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from kip848_client.config import ConsumerConfig
from kip848_client.consumer._error_box import ErrorBox
from kip848_client.consumer._group_driver import GroupDriver
from kip848_client.consumer._observers import ConsumerObservers
from kip848_client.consumer._requests import GroupRequests
from kip848_client.core.group import GroupCore
from kip848_client.core.member import (
    LeaveMode,
    LeaveRequested,
    MemberCore,
    MemberSettings,
    MemberState,
    Subscribed,
)
from kip848_client.core.offsets import (
    CommittableOffset,
    CommitterCore,
    CommitterSettings,
    OffsetTracker,
)
from kip848_client.core.ports import ConnectionBroken, NotSent
from kip848_client.core.types import GroupId, MemberId, TopicId, TopicPartition
from kip848_client.core.wire import request_api
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseAssignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    BrokerError,
    CallbackError,
    ConsumerClosed,
    Kip848Error,
    RequestTimedOut,
    UnsupportedVersion,
)
from kip848_client.observe.core.watching import EventLoopBlocked
from kip848_client.runtime.client._event_streams import EventHub
from tests.support.late_tasks import LateTasks
from tests.unit.consumer.fakes import FakeClock, FakeTopics, FakeTransport
from tests.unit.waiting import some_rounds, until

pytestmark = pytest.mark.asyncio

T = TopicId(b"t" * 16)
TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
Answer = Callable[[Any], Any]


def accepted(epoch: int, *partitions: int) -> ConsumerGroupHeartbeatResponse:
    topic = ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=T, partitions=partitions)
    return ConsumerGroupHeartbeatResponse(
        member_id="me",
        member_epoch=epoch,
        heartbeat_interval_ms=5_000,
        assignment=ConsumerGroupHeartbeatResponseAssignment(
            topic_partitions=(topic,) if partitions else ()
        ),
    )


def stored(request: Any, code: int = 0) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=code
                    )
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def found(*offsets: int) -> OffsetFetchResponse:
    rows = tuple(
        OffsetFetchResponsePartitions(partition_index=number, committed_offset=offset)
        for number, offset in enumerate(offsets)
    )
    topic = OffsetFetchResponseTopics(name="t", topic_id=T, partitions=rows)
    return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group_id="g", topics=(topic,)),))


class FakeAssignment:
    """Notes what it is told; ``busy`` holds up whoever waits for the application."""

    def __init__(self, tracker: OffsetTracker) -> None:
        self.told: list[tuple[str, list[int]]] = []
        self.fetchable: set[TopicPartition] = set()
        self.poll_wanted = 0
        self.busy: anyio.Event | None = None
        self._tracker = tracker

    def refresh(self) -> None:
        pass

    def assigned(
        self, assignment: Mapping[TopicPartition, TopicId], new: Collection[TopicPartition]
    ) -> None:
        self._tracker.assign(assignment)
        self.told.append(("assigned", [tp.partition for tp in new]))

    def started(self, assignment: Collection[TopicPartition]) -> None:
        self.told.append(("started", [tp.partition for tp in assignment]))

    def released(self, partitions: Collection[TopicPartition]) -> None:
        self._tracker.forget(partitions)
        self.told.append(("released", [tp.partition for tp in partitions]))

    def fetch_only(
        self, fetchable: Collection[TopicPartition], of: Mapping[TopicPartition, TopicId]
    ) -> None:
        assert set(fetchable) <= of.keys()
        self.fetchable = set(fetchable)

    def want_poll(self) -> None:
        self.poll_wanted += 1

    async def until_done(self, partitions: Collection[TopicPartition]) -> None:
        del partitions
        if self.busy is not None:
            await self.busy.wait()


class GroupDriverHarness:
    """``answers``: by API, what a request gets; an exception is raised."""

    def __init__(self, listener: object | None = None, **answers: Answer) -> None:
        self.listener = listener
        self.answers: dict[str, Answer] = {
            "ConsumerGroupHeartbeat": lambda _: accepted(1, 0, 1),
            "OffsetCommit": stored,
            "OffsetFetch": lambda _: found(4, -1),
            **answers,
        }
        self.transport = FakeTransport(self._answer)
        self.clock = FakeClock()
        self.tracker = OffsetTracker()
        self.assignment = FakeAssignment(self.tracker)
        self.errors = ErrorBox(lambda: None)
        self.hub = EventHub()
        self.topics = topics = FakeTopics({"t": T})
        core = GroupCore(
            MemberCore(MemberSettings(auto_commit=False), MemberId("me"), lambda ms: ms),
            CommitterCore(
                CommitterSettings(auto_commit_interval_ms=None), self.tracker, lambda ms: ms
            ),
            topics.id_of,
            lambda _tp: None,
            lambda _failures: 100,
        )
        requests = GroupRequests(
            GroupId("g"), MemberId("me"), None, self.transport, topics, lambda err: err
        )
        self.group_driver = GroupDriver(
            core,
            requests,
            self.assignment,
            self.errors,
            self.clock,
            ConsumerObservers(ConsumerConfig.of({"group_id": "g"}), self.clock, self.hub),
            listener=lambda: self.listener,
            callback_timeout_ms=60_000,
        )

    def _answer(self, _where: str, request: Any) -> Any:
        answer = self.answers[request_api(request).name](request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def asked(self) -> list[str]:
        return [api for _, api in self.transport.asked]

    async def join(self) -> None:
        self.group_driver.post(Subscribed(frozenset({"t"})))
        self.group_driver.polled(waiting=False)
        await until(lambda: self.group_driver.member.state is MemberState.STABLE)


@asynccontextmanager
async def running(harness: GroupDriverHarness) -> AsyncGenerator[GroupDriverHarness]:
    async with anyio.create_task_group() as group:
        group.start_soon(harness.group_driver.run)
        await some_rounds(2)
        yield harness
        group.cancel_scope.cancel()


async def test_it_joins_and_starts_what_it_was_given() -> None:
    async with running(GroupDriverHarness()) as harness:
        await harness.join()
        assert harness.assignment.told == [("assigned", [0, 1]), ("started", [0, 1])]
        assert harness.assignment.fetchable == {TP, OTHER}
        await until(lambda: harness.group_driver.heartbeats_answered == 2)
        assert harness.group_driver.heartbeats_sent == 2
        assert harness.group_driver.last_heartbeat_ms == harness.clock.ms


async def test_what_comes_before_it_runs_is_taken_when_it_does() -> None:
    harness = GroupDriverHarness()
    harness.group_driver.post(Subscribed(frozenset({"t"})))
    harness.group_driver.polled(waiting=False)
    assert harness.asked == []
    async with running(harness):
        await until(lambda: harness.group_driver.member.state is MemberState.STABLE)


async def test_what_is_due_when_a_timer_of_the_loop_reports_a_poll_is_sent() -> None:
    """A callback of the loop runs outside of any task, where anyio starts none. A heartbeat that
    was due at that very moment ended the membership."""
    async with running(GroupDriverHarness()) as harness:
        await harness.join()
        await until(lambda: harness.group_driver.heartbeats_answered == 2)
        harness.clock.ms += 60_000
        report = functools.partial(harness.group_driver.polled, waiting=True)
        asyncio.get_running_loop().call_soon(report)
        await until(lambda: harness.group_driver.heartbeats_answered > 2)


async def test_the_listener_is_called_and_knows_that_it_is() -> None:
    heard: list[tuple[str, set[TopicPartition], bool]] = []

    class Listener:
        async def on_partitions_assigned(self, new: set[TopicPartition]) -> None:
            await asyncio.sleep(0)
            heard.append(("assigned", new, harness.group_driver.in_listener))

        def on_partitions_revoked(self, gone: set[TopicPartition]) -> None:
            heard.append(("revoked", gone, harness.group_driver.in_listener))

    harness = GroupDriverHarness(Listener())
    async with running(harness):
        await harness.join()
        assert not harness.group_driver.in_listener
        harness.answers["ConsumerGroupHeartbeat"] = lambda _: accepted(-1)
        harness.group_driver.post(LeaveRequested(LeaveMode.DEFAULT, 60_000, final=True))
        await harness.group_driver.left()
    assert heard == [("assigned", {TP, OTHER}, True), ("revoked", {TP, OTHER}, True)]
    assert harness.assignment.told[-1] == ("released", [0, 1])


async def test_a_listener_that_fails_is_told_to_the_user_and_called_again() -> None:
    calls: list[set[TopicPartition]] = []

    class Listener:
        def on_partitions_assigned(self, new: set[TopicPartition]) -> None:
            calls.append(new)
            if len(calls) == 1:
                raise OSError("the database is away")

        def on_partitions_revoked(self, gone: set[TopicPartition]) -> None:
            """Not called."""

    async with running(GroupDriverHarness(Listener())) as harness:
        harness.group_driver.post(Subscribed(frozenset({"t"})))
        harness.group_driver.polled(waiting=False)
        await until(lambda: harness.group_driver.callback_failures)
        with pytest.raises(CallbackError, match="the database is away"):
            harness.errors.check()
        await until(lambda: harness.group_driver.wants_poll)
        assert harness.assignment.poll_wanted
        assert harness.assignment.told == [("assigned", [0, 1])]
        harness.group_driver.polled(waiting=False)
        await until(lambda: harness.group_driver.member.state is MemberState.STABLE)
        assert calls == [{TP, OTHER}, {TP, OTHER}]
        assert harness.assignment.told[-1] == ("started", [0, 1])


async def test_nothing_is_taken_while_the_application_is_busy() -> None:
    async with running(GroupDriverHarness()) as harness:
        await harness.join()
        harness.assignment.busy = busy = anyio.Event()
        harness.answers["ConsumerGroupHeartbeat"] = lambda _: accepted(-1)
        harness.group_driver.post(LeaveRequested(LeaveMode.DEFAULT, 60_000, final=True))
        assert harness.assignment.fetchable == set(), "before anything is awaited"
        await some_rounds()
        assert harness.assignment.told[-1][0] == "started"
        busy.set()
        await harness.group_driver.left()
        assert harness.assignment.told[-1] == ("released", [0, 1])


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (RequestTimedOut("late"), MemberState.JOINING),
        (ConnectionBroken("cut"), MemberState.JOINING),
        (NotSent("no way"), MemberState.JOINING),
        (UnsupportedVersion("old"), MemberState.FATAL),
        (BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, "SASL"), MemberState.FATAL),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Exception) else "",
)
async def test_what_an_ending_of_a_heartbeat_means(error: Exception, state: MemberState) -> None:
    answers: dict[str, Answer] = {"ConsumerGroupHeartbeat": lambda _: error}
    async with running(GroupDriverHarness(**answers)) as harness:
        harness.group_driver.post(Subscribed(frozenset({"t"})))
        harness.group_driver.polled(waiting=False)
        await until(lambda: harness.group_driver.heartbeats_sent)
        await some_rounds()
        assert harness.group_driver.member.state is state
        assert (harness.errors.fatal is not None) is (state is MemberState.FATAL)


async def test_a_commit_is_on_its_way_before_its_caller_is_suspended() -> None:
    async with running(GroupDriverHarness()) as harness:
        wanted = {TP: CommittableOffset(5)}
        committing = asyncio.get_running_loop().create_task(
            harness.group_driver.commits.commit(wanted, harness.clock.ms + 5_000)
        )
        done = await committing
        assert dict(done.committed) == wanted
        assert harness.asked == ["OffsetCommit"]
        assert harness.transport.found == 1, "the coordinator is looked up first"


async def test_a_commit_is_for_the_topic_that_had_the_name_when_the_core_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A topic that is deleted and created again just then does not get the offset of the old
    one."""
    late = LateTasks(monkeypatch)
    async with running(GroupDriverHarness()) as harness:
        late.hold("_answer")
        wanted = {TP: CommittableOffset(5)}
        loop = asyncio.get_running_loop()
        commits = harness.group_driver.commits
        by_ms = harness.clock.ms + 5_000
        asked = [
            loop.create_task(commits.commit(wanted, by_ms)),
            loop.create_task(commits.fetch_committed((TP,), by_ms)),
        ]
        await until(lambda: late.count == 2)
        harness.topics.ids["t"] = TopicId(b"new topic t" + b"t" * 5)
        late.release()
        await asyncio.wait(asked)
        commit, fetch = harness.transport.requests
        assert [topic.topic_id for topic in commit.topics] == [T]
        assert [topic.topic_id for topic in fetch.groups[0].topics] == [T]


async def test_a_listener_that_is_replaced_does_not_get_the_calls_of_the_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[str] = []

    class Listener:
        def __init__(self, name: str) -> None:
            self.name = name

        def on_partitions_assigned(self, new: set[TopicPartition]) -> None:
            heard.append(f"{self.name}: {len(new)}")

        def on_partitions_revoked(self, gone: set[TopicPartition]) -> None:
            """Not called."""

    late = LateTasks(monkeypatch)
    async with running(GroupDriverHarness(Listener("old"))) as harness:
        late.hold("_call_listener")
        harness.group_driver.post(Subscribed(frozenset({"t"})))
        harness.group_driver.polled(waiting=False)
        await late.one_is_held()
        harness.listener = Listener("new")
        late.release()
        await until(lambda: heard)
    assert heard == ["old: 2"]


async def test_what_no_retry_cures_ends_a_commit() -> None:
    error = BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, "SASL_AUTHENTICATION_FAILED")
    async with running(GroupDriverHarness(OffsetCommit=lambda _: error)) as harness:
        wanted = {TP: CommittableOffset(5)}
        done = await harness.group_driver.commits.commit(wanted, harness.clock.ms + 5_000)
        assert done.failed == {TP: error}


async def test_committed_offsets_are_found() -> None:
    async with running(GroupDriverHarness()) as harness:
        commits = harness.group_driver.commits
        result = await commits.fetch_committed((TP, OTHER), harness.clock.ms + 5_000)
        assert result == {TP: CommittableOffset(4), OTHER: None}


async def test_committed_offsets_that_cannot_be_read_raise() -> None:
    cut = ConnectionBroken("cable cut")
    async with running(GroupDriverHarness(OffsetFetch=lambda _: cut)) as harness:
        with pytest.raises(RequestTimedOut, match="cable cut"):
            await harness.group_driver.commits.fetch_committed((TP,), harness.clock.ms)


async def test_a_commit_that_nobody_waits_for_is_complained_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def answer(request: Any) -> Any:
        return stored(request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    async with running(GroupDriverHarness(OffsetCommit=answer)) as harness:
        harness.tracker.assign([TP])
        wanted = {TP: CommittableOffset(5)}
        harness.group_driver.commits.commit_soon(wanted, harness.clock.ms + 5_000)
        await until(lambda: "automatic commit of t-0" in caplog.text)
        assert caplog.records[-1].levelno == logging.WARNING
        assert caplog.records[-1].__dict__["member_id"] == "me"


async def test_closing_ends_every_wait() -> None:
    harness = GroupDriverHarness()
    never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def wait_for_ever(*_: Any, **__: Any) -> Any:
        return await never

    harness.transport.coordinator = wait_for_ever  # type: ignore[method-assign]  # the fake's
    async with running(harness):
        commits, wanted = harness.group_driver.commits, {TP: CommittableOffset(5)}
        committing = asyncio.get_running_loop().create_task(
            commits.commit(wanted, harness.clock.ms + 5_000)
        )
        await some_rounds(2)
        commits.close(Kip848Error("a bug"))
        with pytest.raises(Kip848Error, match="a bug"):
            await committing
        with pytest.raises(Kip848Error, match="a bug"):
            await commits.commit(wanted, harness.clock.ms + 5_000)


async def test_the_first_close_says_why() -> None:
    commits = GroupDriverHarness().group_driver.commits
    for why in ("a bug", "what came of it"):
        commits.close(Kip848Error(why))
    with pytest.raises(Kip848Error, match="a bug"):
        await commits.fetch_committed((TP,), 5_000)


async def test_a_wait_after_the_close_is_refused() -> None:
    harness = GroupDriverHarness()
    harness.group_driver.commits.close()
    with pytest.raises(ConsumerClosed):
        await harness.group_driver.commits.fetch_committed((TP,), 5_000)


async def test_a_caller_that_gives_up_does_not_stop_the_commit() -> None:
    async with running(GroupDriverHarness()) as harness:
        wanted = {TP: CommittableOffset(5)}
        with anyio.move_on_after(0):
            await harness.group_driver.commits.commit(wanted, harness.clock.ms + 5_000)
        await until(lambda: harness.asked == ["OffsetCommit"])
        await harness.group_driver.commits.drain(harness.clock.ms + 5_000)


async def test_a_bug_ends_the_run_with_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = GroupDriverHarness()

    def broken(*_: object) -> None:
        raise AssertionError("a bug of ours")

    monkeypatch.setattr(harness.assignment, "assigned", broken)
    with pytest.RaisesGroup(
        pytest.RaisesExc(AssertionError, match="a bug of ours"), flatten_subgroups=True
    ):
        async with anyio.create_task_group() as group:
            group.start_soon(harness.group_driver.run)
            await some_rounds(2)
            harness.group_driver.post(Subscribed(frozenset({"t"})))
            harness.group_driver.polled(waiting=False)


async def test_an_event_that_came_too_late_is_no_bug() -> None:
    async with running(GroupDriverHarness()) as harness:
        harness.group_driver.post(LeaveRequested(LeaveMode.DEFAULT, 60_000, final=True))
        await harness.group_driver.left()
        harness.group_driver.post(Subscribed(frozenset({"t"})))
        await some_rounds()
        assert harness.group_driver.member.closed


async def test_log_lines_have_their_facts_as_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "kip848_client")
    async with running(GroupDriverHarness()) as harness:
        await harness.join()
        (line,) = [each for each in caplog.records if "-> STABLE" in each.message]
    assert line.message == "group g: ACKNOWLEDGING -> STABLE: acknowledged"
    fields = {"group_id", "client_id", "member_id", "member_epoch", "old_state", "state", "why"}
    assert {name: line.__dict__[name] for name in sorted(fields)} == {
        "group_id": "g",
        "client_id": "kip848-client",
        "member_id": "me",
        "member_epoch": 1,
        "old_state": "ACKNOWLEDGING",
        "state": "STABLE",
        "why": "acknowledged",
    }


async def test_a_blocked_loop_is_told_when_a_heartbeat_was_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(GroupDriverHarness()) as harness:
        await harness.join()
        stream = harness.hub.stream(10)
        harness.group_driver._on_late(4_999)
        assert "event loop" not in caplog.text
        harness.clock.ms += 6_000
        harness.group_driver._on_late(5_000)
        told = await anext(stream)
    assert isinstance(told, EventLoopBlocked)
    assert (told.late_ms, told.silent_ms) == (5_000, 6_000)
    assert "the coordinator has not heard of this member for 6.0 s" in caplog.text
