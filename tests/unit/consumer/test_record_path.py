"""From the core's buffer to the application: in order, once, and nothing of what is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kip848_client import NotAssigned, RecordUnreadable, TopicPartition
from kip848_client.core.fetch import Paused, Resumed, Sought
from kip848_client.core.offsets import CommittableOffset
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import TopicAuthorizationFailed
from tests.unit.consumer.fetched import A, B, PathHarness
from tests.unit.records.batches import resealed

Take = Callable[[PathHarness], Any]


def offsets(taken: dict[TopicPartition, list[Any]]) -> dict[TopicPartition, list[int]]:
    return {tp: [each.offset for each in records] for tp, records in taken.items()}


@pytest.fixture(params=["one", "many", "batches"])
def take(request: pytest.FixtureRequest) -> Take:
    """Any way of taking records."""
    ways: dict[str, Take] = {
        "one": lambda it: it.path.take_one(),
        "many": lambda it: it.path.take_many(),
        "batches": lambda it: it.path.take_batches(),
    }
    return ways[request.param]


# -- what is handed out --------------------------------------------------------------------------


def test_records_come_in_order_and_once() -> None:
    it = PathHarness()
    it.grow(A, b"0", b"1", b"2")
    it.begin(A)
    assert it.take(3) == [(0, 0), (0, 1), (0, 2)]
    assert it.path.take_one() is None
    it.grow(A, b"3")
    it.serve()
    assert it.take(1) == [(0, 3)]
    assert it.core.position(A) == 4


def test_lists_and_views_go_on_where_the_other_stopped() -> None:
    it = PathHarness()
    it.grow(A, *[b"x"] * 9)
    it.begin(A)
    assert it.take(2) == [(0, 0), (0, 1)]
    assert offsets(it.path.take_many((), 3)) == {A: [2, 3, 4]}
    (view,) = it.path.take_batches((), 3).values()
    assert (list(view.offsets), view.next_offset) == ([5, 6, 7], 8)
    assert it.take(1) == [(0, 8)]
    assert it.path.take_many() == {}
    assert it.path.take_batches() == {}


def test_a_limit_counts_all_partitions() -> None:
    it = PathHarness()
    it.grow(A, *[b"x"] * 3)
    it.grow(B, *[b"x"] * 3)
    it.begin(A, B)
    assert offsets(it.path.take_many((), 5)) == {A: [0, 1, 2], B: [0, 1]}
    assert offsets(it.path.take_many((), 5)) == {B: [2]}


def test_only_some_partitions(take: Take) -> None:
    it = PathHarness()
    it.grow(A, b"a")
    it.grow(B, b"b")
    it.begin(A, B)
    it.post(Paused((B,)))
    assert it.path.take_one((B,)) is None
    assert it.path.take_many((B,)) == {}
    it.post(Resumed((B,)))
    assert offsets(it.path.take_many((B,))) == {B: [0]}
    assert take(it)
    with pytest.raises(NotAssigned):
        it.path.require_assigned([("t", 9)])


def test_a_slice_without_records_moves_the_position() -> None:
    """KAFKA-19902, kafkajs #403, kafkajs #1256."""
    it = PathHarness()
    it.grow(A, b"0")
    control = bytearray(it.logs[A][0])
    control[22] |= 0x20  # a marker, of a transaction
    it.logs[A][0] = resealed(control)
    it.begin(A)
    assert it.path.take_many() == {}
    it.path.report()
    assert it.tracker.dirty() == {A: CommittableOffset(1, 5)}


# -- what is not ---------------------------------------------------------------------------------


def test_what_is_held_stays_in_the_buffer(take: Take) -> None:
    it = PathHarness()
    it.grow(A, b"0", b"1")
    it.begin(A)
    it.take(1)
    it.path.begin_fast_way()
    it.hold_all_but()
    assert list(it.path.current) == []
    assert not take(it)
    it.hold_all_but(A)
    assert take(it)
    assert len(it.fetches) <= 2


def test_what_comes_after_a_release_is_dropped(take: Take) -> None:
    it = PathHarness()
    it.grow(A, b"0")
    it.grow(B, b"0")
    it.gate = True
    it.begin(A, B)
    it.release(A)
    it.gate = False
    it.serve()
    assert it.path.take_many().keys() == {B}
    assert not take(it)


def test_a_paused_partition_keeps_what_it_has(take: Take) -> None:
    it = PathHarness()
    it.grow(A, b"0")
    it.begin(A)
    it.post(Paused((A,)))
    assert not take(it)
    it.post(Resumed((A,)))
    assert take(it)


def test_a_seek_drops_what_is_buffered_and_open() -> None:
    it = PathHarness()
    it.grow(A, *[b"x"] * 5)
    it.begin(A)
    it.take(1)
    it.post(Sought(A, 4))
    assert not it.path.in_flight.is_busy([A])
    it.serve(waited=True)
    assert it.take(1) == [(0, 4)]


# -- the fast way --------------------------------------------------------------------------------


def fast(it: PathHarness) -> int | None:
    record = next(it.path.current, None)
    if record is not None:
        it.path.newest = record
    return None if record is None else record.offset


def test_the_fast_way_keeps_the_book_before_anybody_looks() -> None:
    it = PathHarness()
    it.grow(A, *[b"x"] * 3, epoch=5)
    it.grow(A, *[b"x"] * 2, epoch=6)
    it.begin(A)
    it.take(1)
    it.path.begin_fast_way()
    assert [fast(it), fast(it), fast(it)] == [1, 2, None]  # the batch is over
    assert it.path.in_flight.open() == {A: CommittableOffset(2, 5)}
    it.path.report()
    assert it.tracker.dirty() == {A: CommittableOffset(2, 5)}
    assert it.tracker.snapshot() == {A: CommittableOffset(3, 5)}
    it.take(1)
    it.path.report()
    assert it.tracker.dirty() == {A: CommittableOffset(3, 5)}
    it.path.begin_fast_way()
    assert fast(it) == 4
    it.path.serve("another task")
    assert it.path.in_flight.open() == {A: CommittableOffset(4, 6)}
    assert fast(it) is None


def test_the_fast_way_ends_with_a_change() -> None:
    it = PathHarness()
    it.grow(A, *[b"x"] * 5)
    it.begin(A)
    it.take(1)
    it.path.begin_fast_way()
    it.post(Paused((A,)))
    assert fast(it) is None
    it.post(Resumed((A,)))
    assert it.take(1) == [(0, 1)]
    it.path.begin_fast_way()
    fast(it)
    it.release(A)
    assert fast(it) is None
    assert it.path.in_flight.open() == {}


def test_a_record_that_the_fast_way_cannot_read_is_not_left_out() -> None:
    poison = {b"1"}

    def read(value: bytes) -> bytes:
        if value in poison:
            raise ValueError(value)
        return value

    it = PathHarness(read)
    it.grow(A, b"0", b"1", b"2")
    it.begin(A)
    it.take(1)
    it.path.begin_fast_way()
    with pytest.raises(RecordUnreadable):
        fast(it)
    it.path.fast_way_failed()
    with pytest.raises(RecordUnreadable):
        it.path.take_one()
    poison.clear()
    assert it.take(2) == [(0, 1), (0, 2)]


@pytest.mark.parametrize("at", [b"0", b"1"])
@pytest.mark.parametrize("event", ["pause", "seek", "release"])
def test_what_a_deserializer_does_to_its_partition_ends_the_fast_way(at: bytes, event: str) -> None:
    def read(value: bytes) -> bytes:
        if value == at and event == "pause":
            it.post(Paused((A,)))
        elif value == at and event == "seek":
            it.post(Sought(A, 3))
        elif value == at:
            it.release(A)
        return value

    it = PathHarness(read)
    it.grow(A, b"0", b"1", b"2", b"3")
    it.begin(A)
    it.take(1)
    it.path.begin_fast_way()
    if at == b"1":
        assert fast(it) == 1
    assert fast(it) is None
    assert (A in it.path.in_flight.open()) == (event == "pause")
    it.serve(waited=True)
    it.came_back()
    following = it.path.take_one()
    assert (None if following is None else following.offset) == (3 if event == "seek" else None)


@pytest.mark.parametrize("way", ["many", "one"])
def test_a_deserializer_may_seek(way: str) -> None:
    def read(value: bytes) -> bytes:
        if value == b"1":
            it.post(Sought(A, 0))
        return value

    it = PathHarness(read)
    it.grow(A, b"0", b"1", b"2")
    it.begin(A)
    if way == "many":
        it.path.take_many()
    else:
        it.take(2)
    it.path.report()
    assert it.path.in_flight.open() == {}
    assert it.tracker.snapshot() == {A: CommittableOffset(0)}


def test_what_a_deserializer_does_to_its_partition_is_not_put_down_to_another() -> None:
    def read(value: bytes) -> bytes:
        if value == b"7":
            it.post(Paused((A,)))
        return value

    it = PathHarness(read)
    it.grow(A, *(b"%d" % at for at in range(9)))
    it.grow(B, *[b"x"] * 9)
    it.begin(A, B)
    it.take(1)
    it.path.begin_fast_way()
    assert [fast(it) for _ in range(7)] == [1, 2, 3, 4, 5, 6, 7]
    it.path.serve("me")
    record = it.path.take_one()
    assert record is not None
    assert (record.partition, record.offset) == (1, 0)
    it.path.begin_fast_way()
    assert it.path.in_flight.open()[B] == CommittableOffset(0)


# -- what is open --------------------------------------------------------------------------------


def test_what_is_open_is_not_confirmed() -> None:
    it = PathHarness()
    it.grow(A, *[b"x"] * 3)
    it.begin(A)
    it.take(2)
    assert it.path.in_flight.is_busy([A])
    it.path.report()
    assert it.tracker.dirty() == {A: CommittableOffset(1, 5)}
    assert it.tracker.snapshot() == {A: CommittableOffset(2, 5)}
    it.came_back()
    it.path.report()
    assert it.tracker.dirty() == {A: CommittableOffset(2, 5)}


@pytest.mark.parametrize("way", ["take_many", "take_batches"])
def test_a_list_is_open_until_the_next_call(way: str) -> None:
    it = PathHarness()
    it.grow(A, *[b"x"] * 3)
    it.begin(A)
    getattr(it.path, way)()
    for _ in range(2):  # reporting changes nothing
        it.path.report()
        assert it.tracker.dirty() == {A: CommittableOffset(0)}
        assert it.tracker.snapshot() == {A: CommittableOffset(3, 5)}
    it.came_back()
    it.path.report()
    assert it.tracker.dirty() == {A: CommittableOffset(3, 5)}


def test_a_released_partition_is_not_open_any_more() -> None:
    it = PathHarness()
    it.grow(A, *[b"x"] * 3)
    it.begin(A)
    it.take(1)
    it.release(A)
    assert not it.path.in_flight.is_busy([A])
    it.path.report()
    assert it.tracker.snapshot() == {}


def test_a_position_that_was_sought_after_records_were_read_is_not_behind_records() -> None:
    """Its loss loses nothing."""
    it = PathHarness()
    it.grow(A, *[b"x"] * 3)
    it.begin(A)
    it.take(2)
    it.post(Sought(A, 1))
    it.path.report()
    it.tracker.lose([A])
    assert it.tracker.lost() == {}


# -- what cannot be read -------------------------------------------------------------------------


def poisoned(*values: bytes) -> Callable[[bytes], bytes]:
    def read(value: bytes) -> bytes:
        if value in values:
            raise ValueError(f"no number: {value!r}")
        return value

    return read


@pytest.mark.parametrize("way", ["take_one", "take_many"])
def test_a_record_that_cannot_be_read_is_raised_again_without_asking_the_broker(way: str) -> None:
    it = PathHarness(poisoned(b"1"))
    it.grow(A, b"0", b"1", b"2")
    it.begin(A)
    assert it.take(1) == [(0, 0)]
    it.came_back()
    fetches = len(it.fetches)
    for _ in range(100):
        with pytest.raises(RecordUnreadable) as caught:
            getattr(it.path, way)()
        assert (caught.value.partition, caught.value.offset) == (0, 1)
    assert len(it.fetches) == fetches
    it.path.report()
    assert it.tracker.dirty() == {A: CommittableOffset(1, 5)}
    it.post(Sought(A, 2))
    it.serve(waited=True)
    assert it.take(1) == [(0, 2)]


def test_good_records_come_before_the_bad_one() -> None:
    it = PathHarness(poisoned(b"1"))
    it.grow(A, b"0", b"1")
    it.begin(A)
    assert offsets(it.path.take_many()) == {A: [0]}
    with pytest.raises(RecordUnreadable):
        it.path.take_many()


@pytest.mark.parametrize("way", ["take_one", "take_many"])
def test_other_partitions_are_not_held_up_by_a_bad_record(way: str) -> None:
    it = PathHarness(poisoned(b"bad"))
    it.grow(A, b"bad")
    it.grow(B, b"0", b"1")
    it.begin(A, B)
    got = 0
    for _ in range(4):
        try:
            taken = getattr(it.path, way)()
        except RecordUnreadable:
            continue
        got += len(taken[B]) if isinstance(taken, dict) else taken is not None
    assert got == 2


def damage(it: PathHarness, tp: TopicPartition, number: int) -> None:
    raw = bytearray(it.logs[tp][number])
    raw[-1] ^= 0xFF
    it.logs[tp][number] = bytes(raw)


def test_damaged_bytes_are_fetched_once_more_before_it_is_told(take: Take) -> None:
    it = PathHarness()
    it.grow(A, b"0")
    it.grow(A, b"1")
    good = list(it.logs[A])
    damage(it, A, 1)
    it.begin(A)
    assert it.take(1) == [(0, 0)]
    assert not take(it)
    it.logs[A] = good  # it was damaged on its way
    settle(it)
    assert take(it)


def settle(it: PathHarness) -> None:
    """Let what rests go on."""
    for _ in range(30):
        it.pass_ms(100)
        it.serve(waited=True)


def test_damaged_bytes_are_told_and_can_be_sought_past(take: Take) -> None:
    it = PathHarness()
    it.grow(A, b"0")
    it.grow(A, b"1")
    it.grow(B, b"0")
    damage(it, A, 0)
    it.begin(A)
    assert not take(it)
    settle(it)
    assert not take(it)
    for _ in range(2):  # it is tried again, and told again
        settle(it)
        assert not take(it)
        with pytest.raises(RecordUnreadable) as caught:
            it.path.raise_pending_error()
        assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 0, 0)
        assert "CORRUPT_MESSAGE" in str(caught.value)
        it.path.raise_pending_error()
    it.begin(B)
    it.serve(waited=True)
    assert take(it)  # the others go on
    it.post(Sought(A, 1))
    it.serve(waited=True)
    assert it.take(1) == [(0, 1)]


def test_a_missing_permission_is_raised_once_each_time_it_is_met() -> None:
    it = PathHarness()
    it.grow(A, b"0")
    it.error_codes[A] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    it.begin(A)
    with pytest.raises(TopicAuthorizationFailed):
        it.path.raise_pending_error()
    it.path.raise_pending_error()
    fetches = len(it.fetches)
    settle(it)
    with pytest.raises(TopicAuthorizationFailed):
        it.path.raise_pending_error()
    assert len(it.fetches) <= fetches + 2
    it.error_codes.clear()
    settle(it)
    assert it.take(1) == [(0, 0)]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit])
def test_an_interruption_loses_nothing_of_the_partitions_before(
    interruption: type[BaseException],
) -> None:
    """What was taken of them had moved their positions, and nobody got it."""
    due = {b"b1"}

    def read(value: bytes) -> bytes:
        if value in due:
            due.clear()
            raise interruption
        return value

    it = PathHarness(read)
    it.grow(A, b"a0", b"a1")
    it.grow(B, b"b0", b"b1")
    it.begin(A, B)
    with pytest.raises(interruption):
        it.path.take_many()
    found: dict[TopicPartition, list[int]] = {}
    while taken := it.path.take_many():
        for tp, records in taken.items():
            found.setdefault(tp, []).extend(each.offset for each in records)
    assert found == {A: [0, 1], B: [0, 1]}
