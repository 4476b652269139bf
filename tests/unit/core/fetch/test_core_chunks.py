"""Answers that tell of very many partitions are taken in chunks."""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.cluster import ClusterChanged, LearnLeaders
from kip848_client.core.fetch import (
    AssignmentChanged,
    CommittedFound,
    FetchAnswer,
    FetchAnswered,
    FetchSettings,
    ListedOffset,
    ListOffsets,
    LookUpCommitted,
    Notice,
    OffsetsListed,
    Positioned,
    Readable,
    SendFetch,
    Sought,
    Started,
    StoredOffset,
    TimerFired,
)
from kip848_client.error_codes import ErrorCode
from tests.unit.core.fetch._harness import Harness, data, row, tp

TWO = FetchSettings(max_bytes=16_000_000, reset_policy="earliest", rows_a_step=2)
COMMITTED = FetchSettings(max_bytes=16_000_000, rows_a_step=2, has_group=True)


def fire(h: Harness) -> None:
    """A turn of the event loop."""
    assert h.core.deadline_ms == h.now, "the next chunk is due at once"
    h.post(TimerFired())


def begun(leader: Callable[[int], int] = lambda _: 1) -> Harness:
    """Five partitions are fetched."""
    h = Harness(TWO, partitions=5, leader=leader).assign(*range(5))
    h.advance(0)
    return h


def positions(h: Harness) -> list[int | None]:
    return [h.core.position(tp(n)) for n in range(5)]


def test_positions_are_found_in_chunks_and_then_fetched_in_one_request() -> None:
    h = Harness(TWO, partitions=5)
    h.answers_offsets = False
    h.assign(*range(5)).advance(0)
    (asked,) = h.all(ListOffsets)
    h.post(OffsetsListed(asked.query, dict.fromkeys(asked.wanted, ListedOffset(0, 7))))
    assert positions(h) == [7, 7, None, None, None]
    fire(h)
    assert positions(h) == [7, 7, 7, 7, None]
    assert not h.all(SendFetch)
    fire(h)
    assert len(h.all(Positioned)) == 5
    assert h.asked() == dict.fromkeys(range(5), 7)
    assert len(h.all(SendFetch)) == 1
    assert h.core.deadline_ms != h.now


def test_what_was_not_committed_is_asked_of_the_leader_in_one_request() -> None:
    h = Harness(COMMITTED, partitions=5)
    h.answers_committed = False
    h.assign(*range(5)).advance(0)
    (asked,) = h.all(LookUpCommitted)
    found = {each: StoredOffset(3) if each == tp(2) else None for each in asked.partitions}
    h.post(CommittedFound(asked.number, found))
    assert not h.all(ListOffsets)
    fire(h)
    fire(h)
    assert [sorted(each.wanted) for each in h.all(ListOffsets)] == [[tp(0), tp(1), tp(3), tp(4)]]


def test_who_is_taken_away_before_he_was_started_is_not_started() -> None:
    h = Harness(COMMITTED, partitions=5)
    topic_id = h.cluster["t"].topic_id
    everything = {tp(n): topic_id for n in range(5)}
    h.post(AssignmentChanged(everything, frozenset()))
    h.post(Started(tuple(everything)))
    assert not h.all(LookUpCommitted), "there are more to ask for"
    left = {each: topic_id for each in everything if each != tp(3)}
    h.post(AssignmentChanged(left, frozenset({tp(4)})))
    h.advance(0)
    assert [each.partitions for each in h.all(LookUpCommitted)] == [(tp(0), tp(1), tp(2))]


def test_a_refusal_of_all_leads_to_one_question_and_one_line() -> None:
    h = begun()
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    before = len(h.commands)
    h.answer(None, *(row(n, error_code=code) for n in range(5)))
    assert h.core.deadline_ms == h.now
    fire(h)
    assert h.commands[before:] == []
    fire(h)
    h.advance(100)
    assert [type(each) for each in h.commands[before:]] == [LearnLeaders, SendFetch]
    for _ in range(400):
        if 1 in h.open:
            h.answer(None, *(row(n, error_code=code) for n in range(5)), after_ms=0)
        h.advance(50)
    assert len([each for each in h.all(Notice) if each.warning]) == 1


def test_an_error_of_all_is_told_once() -> None:
    h = begun()
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    h.answer(None, *(row(n, error_code=code) for n in range(5)))
    assert h.core.pending_error() is None, "the others have the same one"
    fire(h)
    fire(h)
    assert h.core.pending_error() is not None
    assert h.all(Readable)


def test_a_broker_is_not_asked_again_before_all_of_its_answer_is_taken() -> None:
    h = begun(leader=lambda n: 2 if n == 4 else 1)
    h.answer({n: data(0) for n in range(4)})
    assert 1 not in h.open
    fire(h)
    assert h.asked(1) == dict.fromkeys(range(4), 1)
    assert 1 in h.open


def test_who_seeks_between_two_chunks_is_not_moved_back() -> None:
    h = begun()
    h.answer({n: data(0) for n in range(5)})
    h.post(Sought(tp(3), 50, -1))
    fire(h)
    fire(h)
    assert h.asked() == {0: 1, 1: 1, 2: 1, 3: 50, 4: 1}
    assert [(at[1], first) for at, first, _ in h.read()] == [(0, 0), (1, 0), (2, 0), (4, 0)]


def test_what_is_left_is_dropped_when_everything_begins_anew() -> None:
    h = begun()
    h.answer({n: data(0) for n in range(5)})
    h.post(ClusterChanged())
    fire(h)
    assert [at[1] for at, *_ in h.read()] == [0, 1]
    h.advance(1_000)
    assert h.asked() == {0: 1, 1: 1, 2: 0, 3: 0, 4: 0}


def test_a_second_answer_waits_for_the_first() -> None:
    h = begun(leader=lambda n: 2 if n == 4 else 1)
    other = h.open.pop(2).fetch
    h.answer({n: data(0) for n in range(4)})
    h.post(FetchAnswered(other, FetchAnswer(0, 7, 0, (row(4, data(0)),))))
    fire(h)
    assert not h.open
    fire(h)
    assert sorted(h.open) == [1, 2]
    assert len(h.read()) == 5
