"""The core and logs that were cut: the diverging epoch of Fetch (KIP-320, KIP-595)."""

from __future__ import annotations

import pytest

from kip848_client.core.fetch import (
    EpochEnd,
    ErrorDelivered,
    FetchSettings,
    ListOffsets,
    Positioned,
    SendFetch,
    Sought,
    StoredOffset,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import LogTruncated
from tests.unit.core.fetch._harness import Harness, data, key, row, tp


def asked(h: Harness) -> tuple[int, int]:
    """(offset, epoch of the record before it) that the broker was told."""
    wanted = h.sessions[1][key(0)]
    return wanted.offset, wanted.last_epoch


def with_records(policy: str = "latest") -> Harness:
    """Epoch 3 in 0-2 and epoch 4 in 3-5, of which the first is read."""
    h = Harness(FetchSettings(reset_policy=policy, has_group=True))
    h.committed[tp(0)] = StoredOffset(0)
    h.assign(0)
    h.answer({0: data(0, 3, epoch=3)})
    h.read()
    h.answer({0: data(3, 3, epoch=4)})
    return h


def test_every_request_says_the_epoch_of_what_was_read() -> None:
    h = with_records()
    assert asked(h) == (6, 4)
    h.read()
    assert (h.core.position(tp(0)), h.core.position_epoch(tp(0))) == (6, 4), "and every commit"


def test_a_committed_offset_is_checked_by_the_first_fetch() -> None:
    """librdkafka #5158."""
    h = Harness(FetchSettings(has_group=True))
    h.committed[tp(0)] = StoredOffset(7, 2)
    h.assign(0)
    assert asked(h) == (7, 2)
    h.answer(None, row(diverging=EpochEnd(2, 5)))
    assert asked(h) == (5, 2)


def test_a_seek_is_not_checked_unless_it_says_an_epoch() -> None:
    h = with_records()
    h.post(Sought(tp(0), 4))
    h.answer({0: data(6, epoch=4)})
    assert asked(h) == (4, -1)
    h.post(Sought(tp(0), 4, 3))
    h.answer({0: data(4, epoch=4)})
    assert asked(h) == (4, 3)


def test_what_was_cut_and_not_handed_out_is_dropped_quietly() -> None:
    h = with_records()
    generation = h.core.generation(tp(0))
    h.answer(None, row(diverging=EpochEnd(3, 3)))
    assert h.core.next_slice() is None
    assert asked(h) == (3, 3)
    assert h.core.generation(tp(0)) != generation
    assert not h.notices
    h.answer({0: data(3, 5, epoch=5)})
    assert h.read() == [(tp(0), 3, 8)]


def test_what_is_still_there_is_handed_out() -> None:
    h = with_records()
    h.answer({0: data(6, 2, epoch=4) + data(8, 2, epoch=5)})
    h.answer(None, row(diverging=EpochEnd(4, 8)))
    assert asked(h) == (8, 4)
    assert h.read() == [(tp(0), 3, 6), (tp(0), 6, 8)]


def test_records_of_a_later_epoch_are_false_wherever_they_are() -> None:
    """The broker's epoch 3 reaches to 8. Ours ended at 3, so what came after it is not there."""
    h = with_records()
    h.answer(None, row(diverging=EpochEnd(3, 8)))
    assert h.core.next_slice() is None
    assert asked(h) == (3, 3)


def test_a_cut_below_the_position_is_told_and_followed() -> None:
    h = with_records()
    h.read()
    commands = h.answer(None, row(diverging=EpochEnd(3, 2)))
    assert Positioned(tp(0), 2, 3, committed=False) in commands
    assert "records before offset 6 that were handed out are not in the log" in h.notices[-1]
    assert asked(h) == (2, 3)
    assert h.core.position(tp(0)) == 2
    assert not h.all(ListOffsets), "no reset"


def test_a_position_behind_records_of_a_later_epoch_is_false_wherever_it_is() -> None:
    """All was handed out, the last of it in epoch 4; the broker's epoch 3 reaches to 8."""
    h = with_records()
    h.read()
    h.answer(None, row(diverging=EpochEnd(3, 8)))
    assert "records before offset 6 that were handed out are not in the log" in h.notices[-1]
    assert asked(h) == (6, 3)


def test_a_cut_below_the_position_stops_who_has_no_policy() -> None:
    h = with_records("none")
    h.read()
    h.answer(None, row(diverging=EpochEnd(3, 2)))
    trouble = h.core.pending_error()
    assert trouble is not None
    assert trouble[0] == tp(0)
    assert isinstance(trouble[1], LogTruncated)
    assert (trouble[1].offset, trouble[1].end, trouble[1].leader_epoch) == (6, 2, 3)
    assert not h.open
    assert h.core.position(tp(0)) == 6
    h.post(ErrorDelivered(tp(0)))
    assert h.core.pending_error() is None
    h.advance(200)
    h.answer(None, row(diverging=EpochEnd(3, 2)))
    assert h.core.pending_error() is not None, "it is still so"
    h.post(Sought(tp(0), 2, 3))
    assert h.core.pending_error() is None
    assert asked(h) == (2, 3)


@pytest.mark.parametrize("policy", ["latest", "none"])
@pytest.mark.parametrize("end", [EpochEnd(4, 4), EpochEnd(3, 20)])
def test_a_cut_while_somebody_reads_the_slice(policy: str, end: EpochEnd) -> None:
    h = Harness(FetchSettings(reset_policy=policy, has_group=True))
    h.committed[tp(0)] = StoredOffset(0)
    h.assign(0)
    h.answer({0: data(0, 3, epoch=3) + data(3, 3, epoch=4)})
    piece = h.core.next_slice()
    assert piece is not None
    piece.cursor.consumed, piece.cursor.consumed_epoch = 5, 4
    h.answer(None, row(diverging=end))
    assert not piece.cursor.readable
    assert h.core.next_slice() is None
    assert h.core.position(tp(0)) == (5 if policy == "none" else min(5, end.end_offset))
    assert (h.core.pending_error() is not None) == (policy == "none")


def test_a_cut_behind_the_reader_keeps_what_he_reads() -> None:
    h = Harness(FetchSettings(has_group=True))
    h.committed[tp(0)] = StoredOffset(0)
    h.assign(0)
    h.answer({0: data(0, 3, epoch=3) + data(3, 3, epoch=4) + data(6, 3, epoch=5)})
    piece = h.core.next_slice()
    assert piece is not None
    piece.cursor.consumed, piece.cursor.consumed_epoch = 5, 4
    h.answer(None, row(diverging=EpochEnd(4, 6)))
    kept = h.core.next_slice()
    assert kept is not None
    assert not piece.cursor.readable
    assert kept.cursor.readable
    assert (kept.cursor.consumed, kept.next_offset, len(kept.batches)) == (5, 6, 2)
    assert asked(h) == (6, 4)


def test_it_may_diverge_again_further_down() -> None:
    h = with_records()
    h.read()
    h.answer(None, row(diverging=EpochEnd(3, 2)))
    h.answer(None, row(diverging=EpochEnd(1, 1)))
    h.answer(None, row(diverging=EpochEnd(0, 0)))
    assert asked(h) == (0, 0)


def test_a_broker_that_says_the_same_again_and_again_is_paced() -> None:
    h = with_records()
    start, count = h.now, len(h.all(SendFetch))
    while h.now < start + 10_000:
        if h.open:
            h.answer(None, row(diverging=EpochEnd(3, 3)))
        else:
            h.advance(10)
    assert len(h.all(SendFetch)) - count < 20


@pytest.mark.parametrize("end", [EpochEnd(-1, -1), EpochEnd(3, -1), EpochEnd(-1, 3)])
def test_an_end_that_says_nothing_is_looked_into(end: EpochEnd) -> None:
    """librdkafka #4492, KAFKA-9840."""
    h = with_records()
    h.read()
    h.log[tp(0)] = (0, 10)
    h.answer(None, row(diverging=end))
    assert h.all(ListOffsets)
    h.advance(200)
    assert h.open, "the position stands"
    assert asked(h)[0] == 6


def test_a_position_below_the_log_is_out_of_range_not_cut_off() -> None:
    """KAFKA-12996."""
    h = with_records()
    h.read()
    h.log[tp(0)] = (20, 30)
    h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert asked(h)[0] == 30
    assert "offset 6 is out of range" in h.notices[-1]


def test_a_seek_in_the_middle_of_a_check_wins() -> None:
    """KAFKA-8429."""
    h = with_records()
    h.read()
    h.answers_offsets = False
    h.log[tp(0)] = (20, 30)
    h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    question = h.all(ListOffsets)[-1]
    h.post(Sought(tp(0), 25))
    h.answers_offsets = True
    h.list_offsets(question)
    assert asked(h)[0] == 25
    h.answer({0: data(25)})
    assert h.read() == [(tp(0), 25, 26)]
