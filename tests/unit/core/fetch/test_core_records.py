"""The core and records: what moves the position, and what is handed out."""

from __future__ import annotations

import pytest

from kip848_client.core.fetch import (
    ErrorDelivered,
    FetchSettings,
    Readable,
    Slice,
    Sought,
    Undecodable,
)
from kip848_client.errors import RecordUnreadable
from tests.unit.core.fetch._bytes import ABORT, TRANSACTIONAL, batch, marker
from tests.unit.core.fetch._harness import Harness, data, row, tp

COMMITTED = FetchSettings(read_committed=True)


def test_what_can_be_read_wakes_who_waits_once_a_step() -> None:
    h = Harness(partitions=2).assign(0, 1)
    commands = h.answer({0: data(0), 1: data(0)})
    assert commands.count(Readable()) == 1


def test_positions_and_ends() -> None:
    h = Harness().assign(0)
    assert h.core.position(tp(0)) == 0
    assert h.core.high_watermark(tp(0)) is None
    h.answer(
        None,
        row(records=data(0, 3), high_watermark=9, last_stable_offset=7, log_start_offset=2),
    )
    assert h.core.high_watermark(tp(0)) == 9
    assert h.core.last_stable_offset(tp(0)) == 7
    assert h.core.log_start_offset(tp(0)) == 2
    assert h.core.position(tp(0)) == 0
    assert h.asked() == {0: 3}
    h.read()
    assert (h.core.position(tp(0)), h.core.position_epoch(tp(0))) == (3, 0)


def test_what_an_answer_leaves_out_is_as_it_was() -> None:
    """Dekaf #1002: within a session an answer tells only what is new. So who wants to know whether
    he is at the end compares his position with the high watermark."""
    h = Harness(partitions=2).assign(0, 1)
    told = row(records=data(0, 3), high_watermark=3, last_stable_offset=3, log_start_offset=0)
    h.answer(None, told)
    h.read()
    for offset in range(3):
        h.answer({1: data(offset)})
        h.read()
    assert h.core.position(tp(0)) == h.core.high_watermark(tp(0)) == 3
    assert (h.core.last_stable_offset(tp(0)), h.core.log_start_offset(tp(0))) == (3, 0)


def test_the_reader_moves_the_position_record_by_record() -> None:
    h = Harness().assign(0)
    h.answer({0: data(0, 3)})
    piece = h.core.next_slice()
    assert piece is not None
    piece.cursor.consumed = 2
    assert h.core.position(tp(0)) == 2
    assert h.core.next_slice() is piece


def test_a_position_inside_of_a_batch() -> None:
    h = Harness().assign(0)
    h.post(Sought(tp(0), 4))
    h.answer()
    h.answer({0: data(0, 10)})
    piece = h.core.next_slice()
    assert piece is not None
    assert (piece.first_offset, piece.next_offset, piece.cursor.consumed) == (4, 10, 4)


def test_a_compacted_batch_without_records_moves_the_position() -> None:
    """sarama #1005, sarama #2053."""
    h = Harness().assign(0)
    h.answer({0: batch(0, 7, records=0)})
    assert h.read() == [(tp(0), 0, 7)]
    assert h.core.position(tp(0)) == 7
    assert h.asked() == {0: 7}


def test_a_lost_last_record_moves_the_position() -> None:
    """sarama #1005, sarama #2053."""
    h = Harness().assign(0)
    h.answer({0: batch(0, 5, records=2)})
    h.read()
    assert h.core.position(tp(0)) == 5


def test_aborted_batches_and_markers_alone_move_the_position() -> None:
    """pinot #12318, pinot #18337, librdkafka #2993."""
    h = Harness(COMMITTED).assign(0)
    raw = batch(0, 4, attributes=TRANSACTIONAL, producer=9) + marker(4, 9, ABORT)
    commands = h.answer(None, row(records=raw, aborted=((9, 0),), last_stable_offset=5))
    assert Readable() in commands, "the position can be committed"
    piece = h.core.next_slice()
    assert piece is not None
    assert all(each.skip for each in piece.batches)
    h.core.finish(piece)
    assert h.core.position(tp(0)) == 5


def test_what_is_known_of_aborted_transactions_lives_for_one_answer() -> None:
    h = Harness(COMMITTED).assign(0)
    raw = batch(0, 4, attributes=TRANSACTIONAL, producer=9)
    h.answer(None, row(records=raw, aborted=((9, 0),), last_stable_offset=100))
    again = batch(4, 4, attributes=TRANSACTIONAL, producer=9)
    h.answer(None, row(records=again, last_stable_offset=100))
    assert [[each.skip for each in piece.batches] for piece in _pieces(h)] == [[True], [False]]


def _pieces(h: Harness) -> list[Slice]:
    found: list[Slice] = []
    while (piece := h.core.next_slice()) is not None:
        found.append(piece)
        h.core.finish(piece)
    return found


def test_read_uncommitted_sees_aborted_records() -> None:
    h = Harness().assign(0)
    raw = batch(0, 4, attributes=TRANSACTIONAL, producer=9)
    h.answer(None, row(records=raw, aborted=((9, 0),)))
    (piece,) = _pieces(h)
    assert not piece.batches[0].skip


def test_an_answer_may_begin_with_a_marker() -> None:
    h = Harness(COMMITTED).assign(0)
    h.answer(None, row(records=marker(0, 9, ABORT) + data(1), last_stable_offset=100))
    (piece,) = _pieces(h)
    assert [each.skip for each in piece.batches] == [True, False]


def test_a_cut_last_batch_is_no_error() -> None:
    """sarama #1657."""
    h = Harness().assign(0)
    h.answer({0: data(0) + data(1)[:30]})
    assert h.asked() == {0: 1}
    assert h.core.pending_error() is None
    assert h.core.snapshot().partitions[tp(0)].failures == 0


def test_slices_adjoin_whatever_happens() -> None:
    """KAFKA-2978."""
    h = Harness(partitions=2).assign(0, 1)
    for offset in range(0, 30, 3):
        h.answer({0: data(offset, 3), 1: data(offset, 3)})
    for partition in h.core.snapshot().partitions.values():
        at = partition.consumed
        for first, after in partition.slices:
            assert first == at
            at = after
        assert at == partition.fetch_offset
    h.read()
    for partition in h.core.snapshot().partitions.values():
        assert partition.consumed == partition.fetch_offset == 30


# -- bytes that are no records -------------------------------------------------------------------


def test_garbage_is_fetched_once_more_before_it_stops_the_partition() -> None:
    h = Harness(partitions=2).assign(0, 1)
    h.answer({0: data(0) + b"\0" * 100, 1: data(0)})
    assert h.core.pending_error() is None
    h.answer({1: data(1)})
    h.advance(200)
    h.answer({1: data(2)})
    assert h.asked()[0] == 1
    h.answer({0: b"\0" * 100})
    assert h.core.pending_error() is None, "what was fetched before comes first"
    assert h.read()[0] == (tp(0), 0, 1)
    trouble = h.core.pending_error()
    assert trouble is not None
    assert isinstance(trouble[1], RecordUnreadable)
    assert trouble[1].offset == 1
    h.answer({1: data(3)})
    assert h.read() == [(tp(1), 3, 4)], "the other one goes on"
    h.post(Sought(tp(0), 2))
    assert h.core.pending_error() is None


def test_what_cannot_be_decoded_is_fetched_once_more() -> None:
    h = Harness().assign(0)
    h.answer({0: data(0, 3) + data(3, 3)})
    piece = h.core.next_slice()
    assert piece is not None
    piece.cursor.consumed = 3
    error = RecordUnreadable("bad checksum", topic="t", partition=0, offset=3)
    h.post(Undecodable(tp(0), piece.cursor.generation, 3, error))
    assert not piece.cursor.readable
    h.answer({0: data(6)})
    h.advance(200)
    assert h.asked() == {0: 3}
    assert h.core.position(tp(0)) == 3
    h.answer({0: data(3, 3)})
    piece = h.core.next_slice()
    assert piece is not None
    h.post(Undecodable(tp(0), piece.cursor.generation, 3, error))
    assert h.core.pending_error() == (tp(0), error)
    h.post(ErrorDelivered(tp(0)))
    h.answer({0: data(6)})
    h.advance(200)
    h.answer({0: data(3, 3)})
    assert h.read() == [(tp(0), 3, 6)], "somebody has mended it"


def test_what_was_said_of_a_former_generation_changes_nothing() -> None:
    h = Harness().assign(0)
    h.answer({0: data(0, 3)})
    generation = h.core.generation(tp(0))
    h.post(Sought(tp(0), 5))
    error = RecordUnreadable("bad checksum", topic="t", partition=0, offset=3)
    h.post(Undecodable(tp(0), generation, 3, error))
    assert h.core.position(tp(0)) == 5
    assert h.core.pending_error() is None


def test_after_a_seek_damaged_bytes_are_fetched_once_more_again() -> None:
    h = Harness().assign(0)
    for _ in range(2):
        h.post(Sought(tp(0), 3))
        h.answer()  # what was asked before
        assert h.asked() == {0: 3}
        h.answer({0: data(3)})
        piece = h.core.next_slice()
        assert piece is not None
        error = RecordUnreadable("damaged", topic="t", partition=0, offset=3)
        h.post(Undecodable(tp(0), piece.cursor.generation, 3, error))
        assert h.core.pending_error() is None


@pytest.mark.parametrize("size", [1, 30, 60])
def test_bytes_without_a_whole_batch_are_a_breach(size: int) -> None:
    h = Harness().assign(0)
    for _ in range(2):
        h.answer({0: data(0)[:size]})
        h.advance(200)
    assert h.core.pending_error() is not None


def test_what_another_fetch_would_not_change_stops_at_once() -> None:
    h = Harness(partitions=2).assign(0, 1)
    h.answer({0: data(0, 3), 1: data(0, 3)})
    generation = h.core.generation(tp(0))
    error = RecordUnreadable("too large", topic="t", partition=0, offset=0)
    h.post(Undecodable(tp(0), generation, 0, error, is_final=True))
    assert h.core.pending_error() == (tp(0), error)
    assert h.read() == [(tp(1), 0, 3)], "the other one goes on"
    h.post(Sought(tp(0), 3))
    assert h.core.pending_error() is None
