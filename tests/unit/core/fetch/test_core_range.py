"""Positions out of range, resets, and what is told before and after them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from kip848_client.core.fetch import (
    LATEST,
    AllButHeld,
    AssignmentChanged,
    BufferRead,
    ErrorDelivered,
    FetchSettings,
    ListOffsets,
    Paused,
    Readable,
    SendFetch,
    Sought,
    Started,
    StoredOffset,
    Wanted,
)
from kip848_client.core.fetch._model import EpochEnd
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import NoOffsetForPartition
from tests.unit.core.fetch._bytes import COMMIT, marker
from tests.unit.core.fetch._harness import Harness, data, key, row, tid, tp

GROUP = FetchSettings(max_bytes=16_000_000, has_group=True, reset_policy="earliest")
STRICT = FetchSettings(max_bytes=16_000_000, has_group=True, reset_policy="none")


def committed(settings: FetchSettings, offset: int, epoch: int) -> Harness:
    """Partition 0 begins at a committed offset."""
    harness = Harness(settings)
    harness.committed[tp()] = StoredOffset(offset, epoch)
    return harness.assign(0)


def wanted(harness: Harness, node: int = 1) -> Wanted:
    """What the request that is open says of partition 0."""
    return harness.sessions[node][key()]


def test_an_answer_from_before_a_truncation_is_not_used() -> None:
    """librdkafka #4261."""
    harness = committed(GROUP, 10, 2)
    request = harness.fetch()
    harness.answer(None, row(diverging=EpochEnd(1, 6)))
    assert harness.fetch().fetch != request.fetch
    harness.post(Sought(tp(), 10, 2))
    harness.answer({0: data(6, 4, epoch=3)})
    assert harness.read() == []
    assert wanted(harness).offset == 10


def test_a_position_carries_the_epoch_of_the_record_before_it() -> None:
    """KAFKA-19902: committed without it, a truncation later looks as out of range."""
    harness = committed(GROUP, 10, 2)
    assert harness.core.position_epoch(tp()) == 2
    harness.answer({0: data(10, 2, epoch=3) + data(12, 1, epoch=4)})
    harness.read()
    assert (harness.core.position(tp()), harness.core.position_epoch(tp())) == (13, 4)


def test_skipped_batches_move_the_epoch_too() -> None:
    harness = committed(FetchSettings(has_group=True, read_committed=True), 10, 2)
    harness.answer({0: marker(10, 7, COMMIT)})
    harness.read()
    assert (harness.core.position(tp()), harness.core.position_epoch(tp())) == (11, 0)


def test_leaders_that_move_during_a_reset_move_the_question() -> None:
    """librdkafka #2625, librdkafka #3080: a reset that went on at the old leader, and a fetch at
    -1001."""
    harness = Harness(FetchSettings(reset_policy="latest"))
    harness.answers_offsets = False
    harness.log[tp()] = (0, 40)
    harness.assign(0)
    (first,) = harness.all(ListOffsets)
    assert not harness.open, "nothing is fetched before there is a position"
    harness.cluster["t"].leaders[0] = (2, 6)
    harness.learn()
    second = harness.all(ListOffsets)[-1]
    assert (second.node, second.wanted) == (2, {tp(): (LATEST, 6)})
    harness.list_offsets(first)
    assert harness.core.position(tp()) is None
    harness.list_offsets(second)
    assert harness.core.position(tp()) == 40
    assert harness.fetch(2).intent.add[0].offset == 40
    assert all(each.offset >= 0 for sent in harness.all(SendFetch) for each in sent.intent.add)


def test_records_come_before_the_reset_that_follows_them() -> None:
    """KAFKA-5075, KAFKA-5078: what was fetched before the error is good."""
    harness = committed(STRICT, 10, 2)
    harness.answer({0: data(10, 5)})
    harness.log[tp()] = (100, 200)
    harness.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert harness.core.pending_error() is None
    assert not harness.all(ListOffsets)
    assert harness.read() == [(tp(), 10, 15)]
    told = harness.core.pending_error()
    assert told is not None
    assert "offset 15 is out of range" in str(told[1])


def test_the_user_who_was_told_may_seek() -> None:
    harness = committed(STRICT, 10, 2)
    harness.log[tp()] = (100, 200)
    harness.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert harness.core.pending_error() is not None
    harness.post(ErrorDelivered(tp()))
    harness.post(Sought(tp(), 150))
    assert harness.core.pending_error() is None
    assert wanted(harness).offset == 150
    harness.advance(499)
    assert harness.core.pending_error() is None


def test_who_does_not_seek_is_told_again_but_not_at_once() -> None:
    harness = committed(STRICT, 10, 2)
    harness.log[tp()] = (100, 200)
    harness.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    told = 0
    for _ in range(50):
        if harness.core.pending_error() is not None:
            told += 1
            harness.post(ErrorDelivered(tp()))
        harness.advance(100)
    assert 2 <= told <= 6


def test_a_range_is_looked_at_once_for_a_stopped_reader() -> None:
    """With records in the buffer the check waits for the reader, however often he looks."""
    harness = committed(GROUP, 10, 2)
    harness.answer({0: data(10, 5)})
    harness.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    for _ in range(3):
        harness.post(BufferRead())
        harness.advance(1_000)
    assert not harness.all(ListOffsets)
    harness.read()
    assert harness.all(ListOffsets)
    assert TopicPartition("t", 0) in harness.core.assigned


def test_who_waits_for_the_position_of_a_paused_partition_hears_why_there_is_none() -> None:
    """A listener may pause what it was given, and then ask where it begins."""
    harness = Harness(STRICT)
    harness.post(AssignmentChanged({tp(): tid(1)}, frozenset()))
    harness.post(Paused((tp(),)))
    harness.post(Started((tp(),)))
    assert Readable() in harness.commands
    told = harness.core.pending_error((tp(),))
    assert told is not None
    assert type(told[1]) is NoOffsetForPartition
    harness.post(AllButHeld(frozenset({tp()}), frozenset()))
    assert harness.core.pending_error() is None, "its revocation has begun"


def deny(h: Harness, ms: int) -> list[int]:
    """The leader calls every offset out of range, though its log has them all; returns the pauses
    between the fetches."""
    start, asked = h.now, [h.now]
    while h.now < start + ms:
        if 1 in h.open:
            h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), after_ms=0)
            asked.append(h.now)
        else:
            h.advance(10)
        if h.core.pending_error() is not None:
            h.post(ErrorDelivered(tp()))
    return [after - before for before, after in pairwise(asked)]


@pytest.mark.parametrize("policy", ["earliest", "latest", "none"])
def test_a_leader_that_denies_what_its_log_has_is_asked_more_and_more_rarely(policy: str) -> None:
    h = Harness(FetchSettings(reset_policy=policy, has_group=True))
    h.log[tp()] = (0, 100)
    h.committed[tp()] = StoredOffset(50)
    h.assign(0)
    pauses = deny(h, 30_000)
    assert min(pauses[8:]) >= h.settings.retry_backoff_max_ms
    assert max(pauses) <= 2 * h.settings.retry_backoff_max_ms + 200
    assert len(h.all(ListOffsets)) < 100


def test_a_leader_that_serves_again_is_forgiven() -> None:
    h = Harness(FetchSettings(reset_policy="earliest"))
    h.log[tp()] = (0, 100)
    h.assign(0)
    deny(h, 10_000)
    h.advance(2_000)
    h.answer({0: data(0)})
    h.read()
    assert deny(h, 250)[1] <= h.settings.retry_backoff_ms
