"""The commit driver: what it sends, what an answer means, and how waits end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from kip848_client import TopicPartition
from kip848_client._ports import ConnectionBroken
from kip848_client._types import TopicId
from kip848_client.consumer._backoff import Backoff
from kip848_client.consumer._commits import CommitDriver, GroupIdentity
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, ConsumerClosed, RequestTimedOut, UnknownMemberId
from kip848_client.member import CoordinatorLost, Event, HeartbeatWanted
from kip848_client.offsets import (
    CommitKind,
    CommittableOffset,
    CommitterCore,
    CommitterSettings,
    OffsetTracker,
)
from kip848_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kip848_client.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.unit.consumer.fakes import FakeClock, FakeTopics, FakeTransport
from tests.unit.waiting import some_rounds, until

pytestmark = pytest.mark.asyncio

TP, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
OLD, NEW = TopicId(b"o" * 16), TopicId(b"n" * 16)


class CommitsHarness:
    """A driver with everything around it faked."""

    def __init__(
        self,
        answer: Callable[[str, Any], Any],
        ids: dict[str, TopicId] | None = None,
        auto_commit_interval_ms: int | None = None,
    ) -> None:
        self.transport = FakeTransport(answer)
        self.topics = FakeTopics(ids)
        self.clock = FakeClock()
        self.told: list[Event] = []
        self.assigned: dict[TopicPartition, TopicId] = {}
        self.tracker = OffsetTracker()
        self.driver = CommitDriver(
            CommitterCore(
                CommitterSettings(
                    auto_commit_interval_ms=auto_commit_interval_ms, retry_backoff_ms=1
                ),
                self.tracker,
                lambda pause: pause,
            ),
            self.tracker,
            GroupIdentity("g", "me", None),
            self.transport,
            self.topics,
            self.clock,
            refresh_tracker=lambda: None,
            tell_member=self._tell,
            assigned_id=self.assigned.get,
            backoff=Backoff(1, 1),
        )

    def _tell(self, event: Event) -> None:
        self.told.append(event)
        self.clock.ms += 10

    async def commit(self, offsets: dict[TopicPartition, int]) -> Any:
        wanted = {tp: CommittableOffset(offset) for tp, offset in offsets.items()}
        return await self.driver.commit(wanted, CommitKind.MANUAL, self.clock.ms + 5_000)


@asynccontextmanager
async def running(harness: CommitsHarness) -> AsyncGenerator[CommitsHarness]:
    async with anyio.create_task_group() as group:
        group.start_soon(harness.driver.run, group)
        await some_rounds(1)
        yield harness
        group.cancel_scope.cancel()


def stored(request: OffsetCommitRequest, code: int = 0) -> OffsetCommitResponse:
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


def found(request: OffsetFetchRequest, rows: dict[int, tuple[int, int]], code: int = 0) -> Any:
    """``rows``: partition -> (offset, error code)."""
    assert request.groups[0].topics is not None
    topic = OffsetFetchResponseTopics(
        name="t",
        partitions=tuple(
            OffsetFetchResponsePartitions(
                partition_index=n, committed_offset=offset, error_code=error
            )
            for n, (offset, error) in rows.items()
        ),
    )
    group = OffsetFetchResponseGroup(group_id="g", topics=(topic,), error_code=code)
    return OffsetFetchResponse(groups=(group,))


async def test_a_commit_carries_the_newest_epoch() -> None:
    async with running(CommitsHarness(lambda _, request: stored(request))) as harness:
        harness.driver.note_epoch(7)
        done = await harness.commit({TP: 5})
        assert dict(done.committed) == {TP: CommittableOffset(5)}
        (request,) = harness.transport.requests
        assert (request.member_id, request.generation_id_or_member_epoch) == ("me", 7)
        assert harness.transport.versions == [(9, 9)]
        harness.driver.note_epoch(None)
        await harness.commit({TP: 6})
        assert harness.transport.requests[1].member_id == ""


@pytest.mark.parametrize(("code", "level"), [(113, "INFO"), (29, "WARNING")])
async def test_an_automatic_commit_that_the_next_one_cures_is_no_warning(
    code: int, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A heartbeat answer may overtake the commit in any rebalance: the epoch is then stale."""
    caplog.set_level("INFO", "kip848_client")
    harness = CommitsHarness(
        lambda _, request: stored(request, code), auto_commit_interval_ms=1_000
    )
    harness.tracker.assign([TP])
    harness.tracker.seek(TP, 0, committed=0)
    async with running(harness):
        harness.driver.note_epoch(7)
        harness.tracker.delivered(TP, 5)
        harness.tracker.confirm()
        harness.clock.ms += 1_000
        harness.driver.note_epoch(8)
        await until(lambda: bool(caplog.records))
    assert [each.levelname for each in caplog.records] == [level]
    assert "automatic commit of t-0: OffsetCommit: " in caplog.text


async def test_a_topic_created_again_is_not_committed_to() -> None:
    """By name, the old topic's offset would be stored for the new one."""
    harness = CommitsHarness(lambda _, request: stored(request), {"t": NEW})
    harness.assigned[TP] = OLD
    harness.tracker.assign([TP])
    async with running(harness):
        harness.driver.note_epoch(1)
        offsets = {TP: CommittableOffset(5)}
        done = await harness.driver.commit(offsets, CommitKind.REVOCATION, harness.clock.ms + 1_000)
        assert "UNKNOWN_TOPIC_ID" in str(done.failed[TP])
        assert harness.transport.asked == []


async def test_a_broken_connection_is_retried_and_the_member_told() -> None:
    fates = iter([ConnectionBroken("gone"), None])

    def answer(_where: str, request: Any) -> Any:
        fate = next(fates)
        if fate is not None:
            raise fate
        return stored(request)

    async with running(CommitsHarness(answer)) as harness:
        committing = asyncio.get_running_loop().create_task(harness.commit({TP: 5}))

        def later() -> bool:
            harness.clock.ms += 1
            return len(harness.transport.asked) == 2

        await until(later)
        assert dict((await committing).committed) == {TP: CommittableOffset(5)}
        assert harness.told == [CoordinatorLost("gone")]
        assert harness.transport.forgotten == 1


async def test_an_error_that_no_retry_cures_ends_the_commit() -> None:
    def answer(_where: str, _request: Any) -> Any:
        raise BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, "SASL_AUTHENTICATION_FAILED")

    async with running(CommitsHarness(answer)) as harness:
        done = await harness.commit({TP: 5})
        assert "SASL_AUTHENTICATION_FAILED" in str(done.failed[TP])


async def test_closing_ends_every_wait() -> None:
    async with running(CommitsHarness(lambda _, request: stored(request))) as harness:
        harness.driver.note_epoch(3)
        never: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def wait_for_ever(*_: Any, **__: Any) -> Any:
            return await never

        harness.transport.coordinator = wait_for_ever  # type: ignore[method-assign]  # the fake's
        committing = asyncio.get_running_loop().create_task(harness.commit({TP: 5}))
        await asyncio.sleep(0)
        harness.driver.close()
        with pytest.raises(ConsumerClosed):
            await committing
        with pytest.raises(ConsumerClosed):
            await harness.commit({TP: 5})


async def test_nothing_committed_is_said_only_without_an_error() -> None:
    harness = CommitsHarness(lambda _, request: found(request, {0: (-1, 0), 1: (9, 0)}))
    result = await harness.driver.fetch_committed([TP, OTHER], harness.clock.ms)
    assert result == {TP: None, OTHER: CommittableOffset(9)}


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (14, []),
        (15, [CoordinatorLost("COORDINATOR_NOT_AVAILABLE")]),
        (16, [CoordinatorLost("NOT_COORDINATOR")]),
        (113, [HeartbeatWanted()]),
    ],
)
async def test_a_group_error_that_passes_is_retried(code: int, told: list[Event]) -> None:
    codes = iter([code, 0])
    harness = CommitsHarness(lambda _, request: found(request, {0: (4, 0)}, next(codes)))
    harness.driver.note_epoch(3)
    result = await harness.driver.fetch_committed([TP], harness.clock.ms + 1_000)
    assert result == {TP: CommittableOffset(4)}
    assert harness.told == told


async def test_a_stale_epoch_is_retried_with_the_new_one() -> None:
    harness = CommitsHarness(lambda _, request: found(request, {0: (4, 0)}, 113))

    def answer(_where: str, request: OffsetFetchRequest) -> Any:
        epoch = request.groups[0].member_epoch
        if epoch == 3:
            harness.driver.note_epoch(4)
            return found(request, {}, 113)
        return found(request, {0: (8, 0)})

    harness.transport.answer = answer
    harness.driver.note_epoch(3)
    assert await harness.driver.fetch_committed([TP], harness.clock.ms + 1_000) == {
        TP: CommittableOffset(8)
    }


@pytest.mark.parametrize(
    "code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.STALE_MEMBER_EPOCH]
)
async def test_a_group_error_that_stays_is_raised(code: int) -> None:
    """Out of the group, a stale epoch cannot become a good one."""
    harness = CommitsHarness(lambda _, request: found(request, {}, code))
    with pytest.raises(BrokerError) as caught:
        await harness.driver.fetch_committed([TP], harness.clock.ms + 1_000)
    assert caught.value.code == code


async def test_an_unknown_member_is_raised_and_the_member_told() -> None:
    harness = CommitsHarness(lambda _, request: found(request, {}, 25))
    harness.driver.note_epoch(3)
    with pytest.raises(UnknownMemberId):
        await harness.driver.fetch_committed([TP], harness.clock.ms + 1_000)
    assert harness.told == [HeartbeatWanted()]


async def test_unstable_offsets_are_asked_for_again() -> None:
    rows = iter([{0: (4, 88)}, {0: (5, 0)}])
    harness = CommitsHarness(lambda _, request: found(request, next(rows)))
    assert await harness.driver.fetch_committed([TP], harness.clock.ms + 1_000) == {
        TP: CommittableOffset(5)
    }


async def test_partitions_that_stay_unknown_are_left_out_at_the_deadline() -> None:
    harness = CommitsHarness(lambda _, request: found(request, {0: (4, 0), 1: (-1, 3)}))
    asked = asyncio.get_running_loop().create_task(
        harness.driver.fetch_committed([TP, OTHER], harness.clock.ms + 50)
    )

    def later() -> bool:
        harness.clock.ms += 10
        return asked.done()

    await until(later)
    assert await asked == {TP: CommittableOffset(4)}
    assert len(harness.transport.asked) > 1


async def test_the_deadline_names_the_last_trouble() -> None:
    def answer(_where: str, _request: Any) -> Any:
        raise ConnectionBroken("cable cut")

    harness = CommitsHarness(answer)
    with pytest.raises(RequestTimedOut, match="cable cut"):
        await harness.driver.fetch_committed([TP], harness.clock.ms)
