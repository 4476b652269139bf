"""The fetch path on aiokafka's real fetcher, with a leader in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kip848_client import TopicPartition
from kip848_client._aiokafka._fetch import FetchPath
from kip848_client._aiokafka._unreadable import Unreadable
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    BrokerError,
    NotAssigned,
    RecordUnreadable,
    TopicAuthorizationFailed,
)
from kip848_client.offsets import CommittableOffset, OffsetTracker
from tests.unit.aiokafka.fake_cluster import FakeClient
from tests.unit.waiting import some_rounds, until

pytestmark = pytest.mark.asyncio

A, B = TopicPartition("t", 0), TopicPartition("t", 1)

Taken = tuple[int, int]


class FetchHarness:
    """Records are handed out as (partition, offset)."""

    def __init__(self) -> None:
        self.client = FakeClient()
        self.out_of_range: list[tuple[TopicPartition, int]] = []
        self.handle = True
        self.poison: set[int] = set()
        self.poisoned: TopicPartition | None = None
        client: Any = self.client
        self.fetch: FetchPath[Taken] = FetchPath(
            client, self._build, self._reset, fetch_max_wait_ms=50
        )

    def _build(self, tp: Any, raw: Any) -> Taken | Unreadable:
        """``poison`` has the offsets (of ``poisoned``, if set) that cannot be deserialized."""
        if raw.offset in self.poison and self.poisoned in (None, tp):
            return Unreadable(raw, ValueError(f"no number: {raw.offset}"))
        return tp.partition, raw.offset

    def _reset(self, tp: TopicPartition, offset: int) -> bool:
        self.out_of_range.append((tp, offset))
        if self.handle:
            self.fetch.clear_position(tp)
        return self.handle

    def begin(self, *partitions: TopicPartition, offset: int = 0) -> None:
        self.fetch.assign(self.fetch.live.assigned | set(partitions), partitions)
        self.fetch.live.make_ready(partitions)
        for tp in partitions:
            self.fetch.set_position(tp, offset)

    async def take(self, count: int) -> list[Taken]:
        taken: list[Taken] = []
        async with asyncio.timeout(5):
            while len(taken) < count:
                waiter = self.fetch.waiter()
                self.fetch.hand_out.clear()  # each call says that the one before is done
                record = self.fetch.take_one()
                if record is None:
                    await waiter
                else:
                    waiter.cancel()
                    taken.append(record)
        return taken

    async def fetched(self, count: int) -> None:
        """Until so many fetches were sent."""
        await until(lambda: len(self.client.fetches) >= count)


@asynccontextmanager
async def harness(**logs: int) -> AsyncGenerator[FetchHarness]:
    """``a=3`` puts three records into partition 0, ``b`` is partition 1."""
    made = FetchHarness()
    for name, count in logs.items():
        made.client.grow(A if name == "a" else B, *[b"%d" % n for n in range(count)])
    try:
        yield made
    finally:
        await made.fetch.close()


async def test_records_come_in_order_and_once() -> None:
    async with harness(a=3) as one:
        one.begin(A)
        assert await one.take(3) == [(0, 0), (0, 1), (0, 2)]
        assert one.fetch.take_one() is None
        one.client.grow(A, b"3")
        assert await one.take(1) == [(0, 3)]
        assert one.fetch.position(A) == 4
        assert one.fetch.highwater(A) == 4


async def test_nothing_is_fetched_before_it_is_live() -> None:
    async with harness(a=3) as one:
        one.fetch.assign([A], [A])
        one.fetch.set_position(A, 0)
        await some_rounds()
        assert one.client.fetches == []
        one.fetch.live.make_ready([A])
        assert await one.take(1) == [(0, 0)]


async def test_buffered_records_of_a_held_partition_are_not_handed_out() -> None:
    async with harness(a=5, b=5) as one:
        one.begin(A, B)
        (first,) = await one.take(1)
        kept, held = (A, B) if first[0] == 0 else (B, A)
        one.fetch.live.hold_all_but([A, B], [kept])
        rest = one.fetch.take_many()
        assert set(rest) <= {kept}
        assert one.fetch.take_one() is None or set(rest) == set()
        assert one.fetch.position(held) == 0
        one.fetch.live.hold_all_but([A, B], [A, B])
        rest = {}
        await until(lambda: rest.update(one.fetch.take_many()) or held in rest)
        assert rest[held][0] == (held.partition, 0)


async def test_an_answer_that_comes_after_the_hold_is_dropped() -> None:
    async with harness(a=5, b=5) as one:
        one.client.gate = asyncio.Event()
        one.begin(A, B)
        await one.fetched(1)
        one.fetch.release([A])
        one.client.gate.set()
        one.client.gate = None
        assert await one.take(5) == [(1, n) for n in range(5)]
        assert one.fetch.take_one() is None
        assert one.fetch.position(A) is None


async def test_retained_partitions_are_not_disturbed_by_others() -> None:
    async with harness(a=1) as one:
        one.begin(A)
        assert await one.take(1) == [(0, 0)]
        assert one.fetch.take_one() is None  # the buffer is seen to be empty
        await one.fetched(2)  # a long poll is under way
        for _ in range(20):
            one.begin(B)
            one.fetch.release([B])
            await asyncio.sleep(0)
        one.client.grow(A, b"1")
        assert await one.take(1) == [(0, 1)]
        assert not one.fetch._core.error_future.done()


async def test_a_paused_partition_waits_and_others_go_on() -> None:
    async with harness(a=2, b=2) as one:
        one.begin(A, B)
        one.fetch.pause(A)
        assert one.fetch.paused() == {A}
        assert await one.take(2) == [(1, 0), (1, 1)]
        one.fetch.resume(A)
        assert await one.take(2) == [(0, 0), (0, 1)]
        with pytest.raises(NotAssigned):
            one.fetch.pause(TopicPartition("t", 9))


async def test_only_some_partitions() -> None:
    async with harness(a=2, b=2) as one:
        one.begin(A, B)
        await one.fetched(1)
        taken: dict[TopicPartition, list[Taken]] = {}
        await until(lambda: taken.update(one.fetch.take_many([B])) or taken)
        assert taken == {B: [(1, 0), (1, 1)]}
        assert one.fetch.take_one([B]) is None
        assert one.fetch.take_one([A]) == (0, 0)


async def test_at_most_so_many() -> None:
    async with harness(a=5, b=5) as one:
        one.begin(A, B)
        sizes: list[int] = []
        async with asyncio.timeout(5):
            while sum(sizes) < 10:
                taken = one.fetch.take_many((), 3)
                sizes.append(sum(len(records) for records in taken.values()))
                await asyncio.sleep(0)
        assert max(sizes) == 3


async def test_a_refused_partition_rests_and_is_tried_again() -> None:
    async with harness(a=1, b=1) as one:
        one.client.errors[A] = 6  # NOT_LEADER_OR_FOLLOWER
        one.begin(A, B)
        assert sorted(await one.take(2)) == [(0, 0), (1, 0)]
        of_a = [fetch for fetch in one.client.fetches if A in fetch]
        assert len(of_a) <= 3


async def test_an_offset_out_of_range_is_left_to_the_policy() -> None:
    async with harness(a=2) as one:
        one.begin(A, offset=50)
        await until(lambda: one.out_of_range)
        assert one.out_of_range == [(A, 50)]
        assert one.fetch.position(A) is None
        one.fetch.set_position(A, 1)
        assert await one.take(1) == [(0, 1)]


async def test_without_a_policy_out_of_range_is_raised() -> None:
    async with harness(a=2) as one:
        one.handle = False
        one.begin(A, offset=50)
        with pytest.raises(BrokerError, match="OFFSET_OUT_OF_RANGE"):
            await one.take(1)


async def test_missing_permission_is_raised_once_each_time_it_is_met() -> None:
    async with harness(a=1) as one:
        one.client.errors[A] = 29
        one.begin(A)
        with pytest.raises(TopicAuthorizationFailed):
            await one.take(1)
        assert await one.take(1) == [(0, 0)]


async def test_what_is_open_is_not_confirmed() -> None:
    async with harness(a=3, b=1) as one:
        one.begin(A)
        tracker = OffsetTracker()
        tracker.assign([A])
        await one.take(2)
        assert one.fetch.hand_outs.is_busy([A])
        assert not one.fetch.hand_outs.is_busy([B])
        one.fetch.report(tracker)
        assert tracker.dirty() == {A: CommittableOffset(1)}
        assert tracker.snapshot() == {A: CommittableOffset(2)}
        one.fetch.hand_out.clear()
        assert not one.fetch.hand_outs.is_busy([A])
        one.fetch.report(tracker)
        assert tracker.dirty() == {A: CommittableOffset(2)}


async def test_a_batch_is_open_until_the_next_call() -> None:
    async with harness(a=3) as one:
        one.begin(A)
        tracker = OffsetTracker()
        tracker.assign([A])
        await until(one.fetch.take_many)
        for _ in range(2):  # reporting changes nothing
            one.fetch.report(tracker)
            assert tracker.dirty() == {A: CommittableOffset(0)}
            assert tracker.snapshot() == {A: CommittableOffset(3)}
        one.fetch.hand_out.clear()
        assert one.fetch.take_many() == {}
        one.fetch.report(tracker)
        assert tracker.dirty() == {A: CommittableOffset(3)}


async def test_a_released_partition_is_not_open_any_more() -> None:
    async with harness(a=3) as one:
        one.begin(A)
        await one.take(1)
        one.fetch.release([A])
        assert not one.fetch.hand_outs.is_busy([A])
        tracker = OffsetTracker()
        one.fetch.report(tracker)
        assert tracker.snapshot() == {}


async def test_a_seek_drops_what_is_buffered() -> None:
    async with harness(a=5) as one:
        one.begin(A)
        await one.take(1)
        one.fetch.set_position(A, 4)
        assert not one.fetch.hand_outs.is_busy([A])
        assert await one.take(1) == [(0, 4)]


async def test_closing_wakes_and_ends_everything() -> None:
    made = FetchHarness()
    made.begin(A)
    await made.fetched(1)
    waiter = made.fetch.waiter()
    await made.fetch.close()
    await waiter
    assert made.fetch._core.error_future.done()
    assert all(task.done() for task in made.fetch._core._pending_tasks)


# -- records that cannot be read -----------------------------------------------------------------

Take = Callable[[], Any]


@pytest.fixture(params=["one", "many"])
def taking(request: pytest.FixtureRequest) -> Callable[[FetchHarness], Take]:
    return lambda one: one.fetch.take_one if request.param == "one" else one.fetch.take_many


async def unreadable(take: Take) -> RecordUnreadable:
    with pytest.raises(RecordUnreadable) as caught:
        await until(take)
    return caught.value


async def test_a_record_that_cannot_be_deserialized_is_named(
    taking: Callable[[FetchHarness], Take],
) -> None:
    async with harness(a=3) as one:
        one.poison = {0}
        one.begin(A)
        error = await unreadable(taking(one))
        assert (error.topic, error.partition, error.offset) == ("t", 0, 0)
        assert str(error) == (
            "t-0: the record at offset 0 cannot be read: ValueError: no number: 0 "
            "(seek(('t', 0), 1) leaves it out)"
        )
        assert isinstance(error.__cause__, ValueError)
        with pytest.raises(ValueError, match="offset 0"):  # as data that cannot be decoded is
            taking(one)()


async def test_asking_again_costs_no_request_and_seeking_past_it_works(
    taking: Callable[[FetchHarness], Take],
) -> None:
    async with harness(a=4) as one:
        one.poison = {1}
        one.begin(A)
        assert await one.take(1) == [(0, 0)]
        take = taking(one)
        for _ in range(5_000):  # nor does the buffer nest
            with pytest.raises(RecordUnreadable):
                take()
        await some_rounds()
        assert len(one.client.fetches) == 1
        assert one.fetch.position(A) == 1
        one.fetch.set_position(A, 2)
        assert await one.take(2) == [(0, 2), (0, 3)]


async def test_a_deserializer_that_works_again_goes_on_where_it_stopped(
    taking: Callable[[FetchHarness], Take],
) -> None:
    async with harness(a=5) as one:
        one.poison = {1, 2}
        one.begin(A)
        assert await one.take(1) == [(0, 0)]
        assert (await unreadable(taking(one))).offset == 1
        one.poison = {2}
        assert await one.take(1) == [(0, 1)]
        assert (await unreadable(taking(one))).offset == 2
        one.poison = set()
        assert one.fetch.take_many() == {A: [(0, 2), (0, 3), (0, 4)]}
        assert one.fetch.position(A) == 5
        assert len(one.client.fetches) == 1


async def test_good_records_come_before_the_bad_one() -> None:
    async with harness(a=4) as one:
        one.poison = {2}
        one.begin(A)
        await one.fetched(1)
        taken: dict[TopicPartition, list[Taken]] = {}
        await until(lambda: taken.update(one.fetch.take_many()) or taken)
        assert taken == {A: [(0, 0), (0, 1)]}
        tracker = OffsetTracker()
        tracker.assign([A])
        one.fetch.hand_out.clear()
        assert (await unreadable(one.fetch.take_many)).offset == 2
        one.fetch.report(tracker)
        assert tracker.dirty() == {A: CommittableOffset(2)}


async def test_other_partitions_are_not_held_up_by_a_bad_record(
    taking: Callable[[FetchHarness], Take],
) -> None:
    async with harness(a=2, b=2) as one:
        one.poison = {0}
        one.poisoned = A
        one.begin(A, B)
        await until(lambda: len(one.fetch._core._records) == 2)
        taken: list[Taken] = []
        take = taking(one)
        for _ in range(6):
            try:
                got = take()
            except RecordUnreadable:
                continue
            taken += [got] if isinstance(got, tuple) else got.get(B, []) if got else []
        assert taken == [(1, 0), (1, 1)]


async def test_a_paused_partition_keeps_its_bad_record_to_itself() -> None:
    async with harness(a=1) as one:
        one.poison = {0}
        one.begin(A)
        await unreadable(one.fetch.take_one)
        one.fetch.pause(A)
        assert one.fetch.take_one() is None
        assert one.fetch.take_many() == {}
        one.fetch.resume(A)
        await unreadable(one.fetch.take_one)


async def test_a_damaged_batch_is_named_and_fetched_again_once_in_a_while(
    taking: Callable[[FetchHarness], Take],
) -> None:
    async with harness(a=2) as one:
        one.client.corrupt = True
        one.begin(A)
        error = await unreadable(taking(one))
        assert (error.topic, error.partition, error.offset) == ("t", 0, 0)
        assert "records of t-0 from offset 0 on: CORRUPT_MESSAGE" in str(error)
        assert isinstance(error.__cause__, BrokerError)
        take = taking(one)
        for _ in range(100):
            with pytest.raises(RecordUnreadable):
                take()
        await some_rounds()
        assert len(one.client.fetches) == 1
        assert one.fetch.position(A) == 0
        one.client.corrupt = False

        async with asyncio.timeout(5):
            while True:
                try:
                    assert await one.take(2) == [(0, 0), (0, 1)]
                    break
                except RecordUnreadable:
                    await some_rounds()  # asking is what has it fetched again
        assert len(one.client.fetches) >= 2


async def test_a_damaged_batch_can_be_sought_past_and_paused() -> None:
    async with harness(a=2) as one:
        one.client.corrupt = True
        one.begin(A)
        await unreadable(one.fetch.take_one)
        one.fetch.pause(A)
        assert one.fetch.take_one() is None
        one.fetch.resume(A)
        await unreadable(one.fetch.take_one)
        one.client.corrupt = False
        one.fetch.set_position(A, 1)
        assert await one.take(1) == [(0, 1)]


async def test_a_record_larger_than_a_fetch_is_not_left_out() -> None:
    async with harness(a=2) as one:
        one.client.too_large = True
        one.begin(A)
        error = await unreadable(one.fetch.take_one)
        assert (error.topic, error.partition, error.offset) == ("t", 0, 0)
        assert one.fetch.position(A) == 0


async def test_missing_permission_is_not_asked_for_in_a_storm() -> None:
    async with harness(a=1) as one:
        one.client.errors[A] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        one.begin(A)
        with pytest.raises(TopicAuthorizationFailed):
            await one.take(1)
        assert not one.fetch.live.is_live(A)  # it rests
        assert await one.take(1) == [(0, 0)]
