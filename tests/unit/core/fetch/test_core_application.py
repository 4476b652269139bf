"""The core and the application: pauses, seeks, revocations, and what is handed out meanwhile."""

from __future__ import annotations

import pytest

from kip848_client.core.fetch import (
    AllButHeld,
    AssignmentChanged,
    BufferRead,
    FetchSettings,
    ListOffsets,
    LookUpCommitted,
    Paused,
    Positioned,
    Readable,
    Resumed,
    SeekBegun,
    SeekEnded,
    SendFetch,
    Sought,
    Started,
    StoredOffset,
    TopicsLimited,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import LocalProtocolError
from tests.unit.core.fetch._harness import Harness, data, row, tid, tp

BOTH = frozenset((tp(0), tp(1)))


def buffered() -> Harness:
    """Two partitions with a record each, and a request under way."""
    h = Harness(partitions=2).assign(0, 1)
    h.answer({0: data(0), 1: data(0)})
    return h


# -- pauses --------------------------------------------------------------------------------------


def test_a_pause_keeps_what_is_buffered() -> None:
    """KAFKA-7548, librdkafka #5343, alpakka-kafka #549,
    Dekaf #2563, confluent-kafka-dotnet #2418."""
    h = buffered()
    changes = h.core.changes
    h.post(Paused((tp(0),)))
    assert h.core.changes > changes
    assert h.core.paused == {tp(0)}
    assert h.read() == [(tp(1), 0, 1)]
    h.answer({0: data(1), 1: data(1)})
    assert h.read() == [(tp(1), 1, 2)], "what was under way is kept, too, and not handed out"
    assert h.asked() == {1: 2}
    assert Readable() in h.post(Resumed((tp(0),)))
    assert h.read() == [(tp(0), 0, 1), (tp(0), 1, 2)]
    h.answer({1: data(2)})
    assert h.asked() == {0: 2, 1: 3}


def test_the_cursor_says_it_in_the_same_step() -> None:
    """Dekaf #2563, confluent-kafka-dotnet #2418."""
    h = buffered()
    piece = h.core.next_slice([tp(0)])
    assert piece is not None
    h.post(Paused((tp(0),)))
    assert not piece.cursor.readable
    h.post(Resumed((tp(0),)))
    assert piece.cursor.readable
    assert h.core.next_slice([tp(0)]) is piece


def test_resuming_what_is_not_paused_changes_nothing() -> None:
    """librdkafka #2593, librdkafka #4686."""
    h = buffered()
    before = h.core.snapshot()
    assert h.post(Resumed((tp(0), tp(5)))) == ()
    assert h.core.snapshot() == before


def test_a_seek_survives_a_pause() -> None:
    """librdkafka #3471."""
    h = buffered()
    h.post(Sought(tp(0), 7))
    h.post(Paused((tp(0),)))
    h.post(Resumed((tp(0),)))
    h.answer({1: data(1)})
    assert h.asked()[0] == 7
    assert h.core.position(tp(0)) == 7


def test_a_pause_ends_with_the_assignment() -> None:
    h = buffered()
    h.post(Paused((tp(0),)))
    h.post(AssignmentChanged({tp(1): tid(1)}, frozenset()))
    h.assign(0, 1)
    assert h.core.paused == set()


def test_a_resume_counts_whatever_was_assigned_since_the_pause() -> None:
    """librdkafka #5591: pause, assign, resume, and paused for ever."""
    h = buffered()
    h.post(Paused((tp(0),)))
    h.post(AllButHeld(BOTH, BOTH))
    h.post(AssignmentChanged(dict.fromkeys(BOTH, tid(1)), frozenset((tp(1),))))
    h.post(Started((tp(1),)))
    assert h.core.paused == {tp(0)}, "who is kept is still paused"
    h.post(Resumed((tp(0),)))
    assert h.core.paused == set()
    assert h.read() == [(tp(0), 0, 1)]
    h.answer({0: data(1)})
    assert h.read() == [(tp(0), 1, 2)]


def test_a_pause_before_the_first_record_keeps_the_position() -> None:
    """confluent-kafka-dotnet #672."""
    h = Harness(FetchSettings(has_group=True))
    h.committed[tp(0)] = StoredOffset(4)
    h.assign(0)
    h.post(Paused((tp(0),)))
    h.post(Resumed((tp(0),)))
    h.answer({0: data(4)})
    assert h.read() == [(tp(0), 4, 5)]


# -- seeks ---------------------------------------------------------------------------------------


def test_a_seek_drops_what_is_buffered_and_under_way() -> None:
    h = buffered()
    piece = h.core.next_slice()
    assert piece is not None
    generation = h.core.generation(tp(0))
    commands = h.post(Sought(tp(0), 50, 3))
    assert Positioned(tp(0), 50, 3, committed=False) in commands
    assert h.core.generation(tp(0)) != generation
    assert not piece.cursor.readable
    h.core.finish(piece)
    assert h.core.position(tp(0)) == 50, "a void slice moves nothing"
    h.answer({0: data(1), 1: data(1)})
    assert h.read() == [(tp(1), 0, 1), (tp(1), 1, 2)]
    assert h.asked()[0] == 50


def test_an_answer_to_a_question_before_a_seek_away_and_back_is_dropped() -> None:
    """The offset is the same again, but what is wrong with it may have been put right."""
    h = Harness().assign(0)
    h.answer()
    listed = len(h.all(ListOffsets))
    h.post(Sought(tp(0), 9))
    h.post(Sought(tp(0), 0))
    h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert len(h.all(ListOffsets)) == listed
    assert h.core.snapshot().stale_answers == 1
    h.answer({0: data(0)})
    assert h.read() == [(tp(0), 0, 1)]


def test_a_seek_comes_before_what_is_committed() -> None:
    h = Harness(FetchSettings(has_group=True))
    h.committed[tp(0)] = StoredOffset(4)
    h.post(AssignmentChanged({tp(0): tid(1)}, frozenset()))
    h.post(Sought(tp(0), 2))
    assert not h.open, "the listener is not done"
    h.post(Started((tp(0),)))
    assert not h.all(LookUpCommitted)
    assert h.asked() == {0: 2}


def test_a_seek_overtakes_a_look_up() -> None:
    h = Harness(FetchSettings(has_group=True))
    h.answers_committed = False
    h.assign(0)
    h.post(Sought(tp(0), 2))
    h.answers_committed = True
    h.committed[tp(0)] = StoredOffset(4)
    h._note(h.all(LookUpCommitted)[-1])
    assert h.core.position(tp(0)) == 2


def test_a_seek_to_offsets_that_are_looked_up() -> None:
    h = buffered()
    h.post(SeekBegun(1, (tp(0), tp(1))))
    assert h.core.position(tp(0)) == 0
    commands = h.post(SeekEnded(1, {tp(0): StoredOffset(8, 2)}, committed=True))
    assert commands[0] == Positioned(tp(0), 8, 2, committed=True)
    assert (h.core.position(tp(0)), h.core.position(tp(1))) == (8, 0)


@pytest.mark.parametrize("younger", [Sought(tp(0), 3), SeekBegun(2, (tp(0),))])
def test_a_younger_seek_wins(younger: Sought | SeekBegun) -> None:
    h = buffered()
    h.post(SeekBegun(1, (tp(0), tp(1))))
    h.post(younger)
    position = h.core.position(tp(0))
    h.post(SeekEnded(1, {tp(0): StoredOffset(8), tp(1): StoredOffset(9)}))
    assert (h.core.position(tp(0)), h.core.position(tp(1))) == (position, 9)


def test_the_loss_of_the_partition_ends_a_seek() -> None:
    h = buffered()
    h.post(SeekBegun(1, (tp(0),)))
    h.post(AssignmentChanged({tp(1): tid(1)}, frozenset()))
    h.assign(0, 1)
    h.post(SeekEnded(1, {tp(0): StoredOffset(8)}))
    assert h.core.position(tp(0)) == 0


def test_a_seek_that_fails_lets_the_search_for_a_position_go_on() -> None:
    h = Harness(FetchSettings(has_group=True))
    h.answers_committed = False
    h.assign(0)
    h.post(SeekBegun(1, (tp(0),)))
    h.answers_committed = True
    h.committed[tp(0)] = StoredOffset(4)
    h.advance(1_000)
    assert h.core.position(tp(0)) is None
    h.post(SeekEnded(1, {}))
    assert h.core.position(tp(0)) == 4


def test_there_is_no_offset_below_zero() -> None:
    h = buffered()
    before = h.core.snapshot()
    with pytest.raises(LocalProtocolError, match="no record has offset -1"):
        h.post(Sought(tp(0), -1))
    assert h.core.snapshot() == before


def test_who_seeks_what_is_not_assigned_changes_nothing() -> None:
    h = buffered()
    before = h.core.snapshot()
    assert h.post(Sought(tp(9), 1)) == ()
    assert h.post(SeekBegun(1, (tp(9),))) == ()
    assert h.post(SeekEnded(1, {tp(9): StoredOffset(1)})) == ()
    assert h.core.snapshot() == before


# -- what comes and goes -------------------------------------------------------------------------


def test_what_is_held_is_kept_and_not_handed_out() -> None:
    h = buffered()
    piece = h.core.next_slice([tp(0)])
    assert piece is not None
    h.post(AllButHeld(BOTH, frozenset((tp(1),))))
    assert not piece.cursor.readable
    assert h.read() == [(tp(1), 0, 1)]
    h.answer({0: data(1), 1: data(1)})
    assert h.read() == [(tp(1), 1, 2)]
    generation = h.core.generation(tp(0))
    h.post(AllButHeld(BOTH, BOTH))
    assert h.core.generation(tp(0)) == generation
    assert h.read() == [(tp(0), 0, 1), (tp(0), 1, 2)]


def test_what_is_gone_is_gone() -> None:
    """KAFKA-2342, KAFKA-2632, FluidFramework #9404."""
    h = buffered()
    piece = h.core.next_slice([tp(0)])
    assert piece is not None
    h.post(AssignmentChanged({tp(1): tid(1)}, frozenset()))
    assert not piece.cursor.readable
    assert h.core.generation(tp(0)) == 0
    assert h.core.position(tp(0)) is None
    h.core.finish(piece)
    h.assign(0, 1)
    h.answer({0: data(1), 1: data(1)})
    assert h.read() == [(tp(1), 0, 1), (tp(1), 1, 2)], "nothing of the former assignment"
    assert h.core.position(tp(0)) == 0


def test_what_is_fresh_begins_anew() -> None:
    h = buffered()
    generation = h.core.generation(tp(0))
    h.post(AssignmentChanged(dict.fromkeys(BOTH, tid(1)), frozenset((tp(0),))))
    assert h.core.generation(tp(0)) not in (0, generation)
    assert h.core.position(tp(0)) is None
    assert h.core.position(tp(1)) == 0
    assert [each.tp for each in h.core.slices()] == [tp(1)]


def test_topics_that_are_not_subscribed_any_more_are_silent() -> None:
    h = buffered()
    h.post(TopicsLimited(frozenset(("u",))))
    assert h.core.slices() == []
    h.answer({0: data(1)})
    assert not h.open
    h.post(TopicsLimited(None))
    assert h.open
    assert h.read() == [(tp(0), 0, 1), (tp(1), 0, 1), (tp(0), 1, 2)]


def test_what_is_assigned_later_is_limited_too() -> None:
    h = Harness()
    h.post(TopicsLimited(frozenset(("u",))))
    h.assign(0)
    assert not h.open
    h.post(TopicsLimited(frozenset(("t",))))
    assert h.open


def test_partitions_take_turns() -> None:
    h = buffered()
    h.answer({0: data(1), 1: data(1)})
    assert h.read() == [(tp(0), 0, 1), (tp(1), 0, 1), (tp(0), 1, 2), (tp(1), 1, 2)]
    h.answer({0: data(2), 1: data(2)})
    first = h.core.next_slice()
    assert first is not None
    h.core.turn(first.tp)
    second = h.core.next_slice()
    assert second is not None
    assert second.tp != first.tp
    assert h.core.next_slice([first.tp]) is first


def test_reading_makes_room() -> None:
    h = Harness(FetchSettings(max_partition_bytes=1_000)).assign(0)
    h.answer({0: data(0, size=2_500)})
    assert not h.open
    piece = h.core.next_slice()
    assert piece is not None
    h.core.finish(piece)
    assert not h.open, "between steps nothing is asked"
    commands = h.post(BufferRead())
    assert [type(each) for each in commands] == [SendFetch]
