"""The core and fetch sessions (KIP-227): what is named, forgotten, and asked for anew."""

from __future__ import annotations

import pytest

from kip848_client.core.fetch import (
    AssignmentChanged,
    CloseRequested,
    CloseSession,
    FetchAnswer,
    FetchAnswered,
    FetchSettings,
    Paused,
    Resumed,
    SendFetch,
    TimerFired,
)
from kip848_client.error_codes import ErrorCode
from tests.unit.core.fetch._harness import Harness, data, key, row, tid, tp


def test_one_session_serves_a_thousand_fetches() -> None:
    """platformatic #315, sarama #1644."""
    h = Harness().assign(0)
    h.answer()
    for offset in range(1_000):
        h.answer({0: data(offset)})
        h.read()
    opened = [each for each in h.all(SendFetch) if each.intent.session_epoch <= 0]
    assert len(opened) == 1
    assert h.asked() == {0: 1_000}


def test_a_request_names_what_has_changed_only() -> None:
    """kafka-python #2575."""
    h = Harness(partitions=4).assign(0, 1, 2, 3)
    h.answer()
    h.answer({2: data(0, 3)})
    intent = h.fetch().intent
    assert [(each.partition, each.offset) for each in intent.add] == [(2, 3)]
    assert intent.forget == ()


def test_nothing_is_sent_while_all_partitions_of_a_broker_are_full() -> None:
    """KAFKA-17182: a request that forgets the last partition would close the session."""
    h = Harness(FetchSettings(max_partition_bytes=1_000), partitions=2).assign(0, 1)
    h.answer()
    h.answer({0: data(0, size=2_500), 1: data(0, size=2_500)})
    h.advance(1_000)
    assert not h.open
    assert h.sessions[1].keys() == {key(0), key(1)}
    h.read()
    assert h.fetch().intent.session_epoch == 2
    assert h.asked() == {0: 1, 1: 1}


def test_what_is_taken_away_is_forgotten_and_its_data_dropped() -> None:
    """platformatic #321."""
    h = Harness(partitions=2).assign(0, 1)
    h.answer()
    h.post(AssignmentChanged({tp(0): tid(1)}, frozenset()))
    h.answer({1: data(0)})
    assert h.fetch().intent.forget == (key(1),)
    assert h.read() == []
    assert h.core.snapshot().stale_answers == 1


def test_a_topic_is_forgotten_by_the_id_it_was_added_with() -> None:
    """franz-go #535, franz-go #546."""
    h = Harness(partitions=2)
    h.assign(0, 1)
    h.answer()
    h.cluster["t"].topic_id = tid(2)
    h.assign(0, 1, topic_id=tid(2))
    h.answer()
    intent = h.fetch().intent
    assert set(intent.forget) == {key(0), key(1)}
    assert {each.topic_id for each in intent.add} == {tid(2)}


@pytest.mark.parametrize(
    "code", [ErrorCode.INVALID_FETCH_SESSION_EPOCH, ErrorCode.FETCH_SESSION_ID_NOT_FOUND]
)
def test_a_session_that_the_broker_refuses_is_opened_anew(code: ErrorCode) -> None:
    """redpanda #27749, KAFKA-8052, spring-cloud-stream #2209."""
    h = Harness().assign(0)
    h.answer()
    h.answer({0: data(0)})
    h.answer(error=code)
    intent = h.fetch().intent
    assert intent.session_epoch == 0
    assert h.asked() == {0: 1}, "no record twice, none left out"
    h.answer({0: data(1)})
    assert h.read() == [(tp(0), 0, 1), (tp(0), 1, 2)]


def test_a_session_that_is_refused_again_and_again_is_paced() -> None:
    h = Harness().assign(0)
    h.answer()
    start, count = h.now, len(h.all(SendFetch))
    while h.now < start + 10_000:
        if h.open:
            h.answer(error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        else:
            h.advance(10)
    assert len(h.all(SendFetch)) - count < 20


def test_after_a_lost_answer_the_session_is_opened_anew() -> None:
    h = Harness().assign(0)
    h.answer()
    session = h.fetch().intent.session_id
    h.lose()
    h.advance(200)
    intent = h.fetch().intent
    assert (intent.session_id, intent.session_epoch) == (session, 0)


def test_a_request_that_was_not_sent_leaves_the_session_as_it_was() -> None:
    h = Harness(partitions=2).assign(0, 1)
    h.answer()
    h.answer({0: data(0)})
    before = h.fetch().intent
    h.answers_metadata = False
    h.sessions[1][key(0)] = before.add[0]._replace(offset=0)  # the broker has not heard of it
    h.lose(sent=False)
    h.advance(200)
    intent = h.fetch().intent
    assert (intent.session_id, intent.session_epoch) == (before.session_id, before.session_epoch)
    assert h.asked() == {0: 1, 1: 0}


def test_an_empty_answer_is_followed_by_the_next_request() -> None:
    """KAFKA-19259."""
    h = Harness().assign(0)
    h.answer()
    for _ in range(5):
        h.advance(500)
        h.answer()
        assert h.open


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    h = Harness().assign(0)
    h.answer()
    before = h.core.snapshot()
    h.post(FetchAnswered(4711, FetchAnswer(0, 1, 0, (row(0, data(0)),))))
    after = h.core.snapshot()
    assert after.stale_answers == before.stale_answers + 1
    assert after.partitions == before.partitions


def test_foreign_partitions_make_the_whole_answer_void() -> None:
    h = Harness().assign(0)
    h.answer()
    h.answer({0: data(0), 7: data(0)})
    assert h.read() == []
    assert any("was not asked for" in text for text in h.notices)
    assert not h.open
    h.advance(200)
    assert h.asked() == {0: 0}


def test_sessions_are_closed_at_the_end() -> None:
    h = Harness(partitions=2, leader=lambda number: number + 1).assign(0, 1)
    h.answer(node=1)
    h.answer(node=2)
    ids = {node: each.intent.session_id for node, each in h.open.items()}
    commands = h.post(CloseRequested())
    assert set(commands) == {CloseSession(node, ids[node]) for node in (1, 2)}
    assert h.post(TimerFired()) == ()
    assert h.core.deadline_ms is None
    assert h.core.next_slice() is None


def test_a_partition_that_pauses_and_goes_on_is_forgotten_and_named_again() -> None:
    h = Harness(partitions=2).assign(0, 1)
    h.answer()
    h.post(Paused((tp(0),)))
    h.answer({1: data(0)})
    assert h.fetch().intent.forget == (key(0),)
    h.post(Resumed((tp(0),)))
    h.answer({1: data(1)})
    assert {each.partition for each in h.fetch().intent.add} == {0, 1}
