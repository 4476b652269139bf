"""Two rare events, one after the other: what the core remembers of the first when the second comes,
and what it asks when it asks again."""

from __future__ import annotations

import pytest

from kip848_client.core.cluster import ClusterChanged, LeadersNotLearnt, LearnLeaders
from kip848_client.core.fetch import (
    LATEST,
    AssignmentChanged,
    FetchSettings,
    ListedOffset,
    ListOffsets,
    LookUpCommitted,
    OffsetsAsked,
    OffsetsListed,
    OffsetsNotFound,
    Paused,
    Readable,
    SeekBegun,
    SeekEnded,
    SendFetch,
    Sought,
    Started,
    TimerFired,
    Undecodable,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, RecordUnreadable, RequestTimedOut
from tests.unit.core.fetch._harness import Harness, Topic, data, key, row, tid, tp

GROUP = FetchSettings(has_group=True)


def avoiding(settings: FetchSettings | None = None) -> Harness:
    """Partition 0 avoids replica 2, which the leader 1 had named."""
    h = Harness(settings or FetchSettings(rack="b"), partitions=2).assign(0, 1)
    h.answer(None, row(preferred_replica=2))
    h.answer(None, row(error_code=ErrorCode.KAFKA_STORAGE_ERROR), node=2)
    h.answer({1: data(0)})
    assert h.fetch(1).intent.rack == ""
    return h


def denied(h: Harness, offset: int) -> None:
    """What the reader has got of partition 0 is no record from ``offset`` on."""
    piece = h.core.next_slice()
    assert piece is not None
    error = RecordUnreadable("bad checksum", topic="t", partition=0, offset=offset)
    h.post(Undecodable(tp(), piece.cursor.generation, offset, error))


# -- replicas ------------------------------------------------------------------------------------


def test_another_leader_may_name_the_replica_that_is_avoided() -> None:
    h = avoiding()
    h.cluster["t"].leaders[0] = (3, 6)
    h.learn()
    assert h.fetch(3).intent.rack == "b"
    h.answer(None, row(preferred_replica=2), node=3)
    assert 2 in h.open


def test_a_paused_partition_that_avoids_a_replica_does_not_hide_the_rack_of_others() -> None:
    h = avoiding()
    h.post(Paused((tp(0),)))
    h.answer({1: data(1)})
    assert h.asked() == {1: 2}
    assert h.fetch(1).intent.rack == "b"


def test_a_lost_replica_is_not_avoided_for_longer_than_a_lease() -> None:
    h = Harness(FetchSettings(rack="b", metadata_max_age_ms=10_000)).assign(0)
    h.answer(None, row(preferred_replica=2))
    h.lose(node=2)
    h.answer({0: data(0)})
    assert h.fetch(1).intent.rack == ""
    h.advance(10_000)
    h.answer({0: data(1)})
    assert h.fetch(1).intent.rack == "b"


def test_the_end_of_a_lease_does_not_start_what_has_stopped() -> None:
    """Not before the user was told."""
    h = Harness(FetchSettings(rack="b")).assign(0)
    h.answer(None, row(preferred_replica=2))
    h.answer(None, row(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED), node=2)
    h.answer(None, row(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    h.advance(301_000)
    assert not h.open
    assert h.core.pending_error() is not None


# -- brokers that are lost, that throttle, that refuse -------------------------------------------


def test_a_broker_that_has_answered_meanwhile_is_not_called_silent() -> None:
    h = Harness().assign(0)
    h.lose()
    h.advance(200)
    h.answer({0: data(0)})
    h.advance(20_000)
    h.lose()
    assert not h.notices


def test_a_refusal_that_throttles_is_obeyed() -> None:
    h = Harness().assign(0)
    h.answer()
    h.answer(error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, throttle_ms=5_000)
    h.advance(4_999)
    assert not h.open
    h.advance(1)
    assert h.open


def test_a_change_during_a_request_that_never_left_is_told_with_what_that_had() -> None:
    h = Harness(partitions=2).assign(0, 1)
    h.answer()
    h.answer({0: data(0)})
    h.post(Paused((tp(1),)))
    h.answers_metadata = False
    h.lose(sent=False)
    h.advance(200)
    intent = h.fetch().intent
    assert [(each.key, each.offset) for each in intent.add] == [(key(0), 1)]
    assert intent.forget == (key(1),)


def test_a_refusal_for_good_stops_a_partition_that_has_lost_its_leader() -> None:
    h = Harness().assign(0)
    h.cluster["t"].leaders[0] = (-1, 6)
    h.learn()
    h.answer(None, row(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    trouble = h.core.pending_error()
    assert trouble is not None
    assert isinstance(trouble[1], BrokerError)


def test_who_seeks_what_rests_does_not_wait_for_the_end_of_the_rest() -> None:
    h = Harness().assign(0)
    for _ in range(5):
        h.advance(2_000)
        h.answer(None, row(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    assert not h.open
    h.post(Sought(tp(), 7))
    assert h.asked() == {0: 7}


# -- damage --------------------------------------------------------------------------------------


def test_damage_at_another_place_is_fetched_once_more_too() -> None:
    h = Harness().assign(0)
    for offset in (0, 3):
        h.answer({0: data(offset, 3)})
        denied(h, offset)
        h.answer()
        h.advance(200)
        assert h.core.pending_error() is None
        assert h.asked() == {0: offset}
        h.answer({0: data(offset, 3)})
        assert h.read() == [(tp(), offset, offset + 3)]


def test_what_is_damaged_is_fetched_once_more_though_what_follows_is_out_of_range() -> None:
    h = Harness(FetchSettings(reset_policy="earliest")).assign(0)
    h.answer({0: data(0, 3)})
    h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    denied(h, 0)
    h.advance(200)
    assert h.asked() == {0: 0}
    h.answer({0: data(0, 3)})
    assert h.read() == [(tp(), 0, 3)]


def test_damage_of_a_former_generation_drops_nothing() -> None:
    h = Harness().assign(0)
    generation = h.core.generation(tp())
    h.post(Sought(tp(), 5))
    h.answer()  # what was asked before
    h.answer({0: data(5)})
    error = RecordUnreadable("bad checksum", topic="t", partition=0, offset=3)
    h.post(Undecodable(tp(), generation, 3, error))
    assert h.read() == [(tp(), 5, 6)]


# -- resets and seeks ----------------------------------------------------------------------------


def test_a_leader_that_denies_each_new_position_is_not_asked_in_a_loop() -> None:
    """What its log has moves on between the check and the fetch, again and again."""
    h = Harness(FetchSettings(reset_policy="earliest")).assign(0)
    start, asked = h.now, len(h.all(SendFetch))
    while h.now < start + 10_000:
        begin = h.log.get(tp(), (0, 0))[0] + 10
        h.log[tp()] = (begin, begin + 100)
        if h.open:
            h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), after_ms=1)
        else:
            h.advance(10)
    assert len(h.all(SendFetch)) - asked < 30


def seeking() -> Harness:
    """In the listener, before the partition has started."""
    h = Harness(GROUP)
    h.post(AssignmentChanged({tp(): tid(1)}, frozenset()))
    h.post(SeekBegun(1, (tp(),)))
    return h


def test_a_seek_that_fails_in_the_listener_begins_no_search_there() -> None:
    h = seeking()
    h.post(SeekEnded(1, {}))
    assert not h.all(LookUpCommitted)
    h.post(Started((tp(),)))
    assert h.all(LookUpCommitted)


def test_what_starts_during_a_seek_is_searched_for_when_that_has_failed() -> None:
    h = seeking()
    h.post(Started((tp(),)))
    h.advance(1_000)
    assert not h.all(LookUpCommitted)
    h.post(SeekEnded(1, {}))
    assert h.all(LookUpCommitted)


# -- topics that come and go ---------------------------------------------------------------------


def test_of_the_old_topic_no_end_is_told_for_the_new_one() -> None:
    h = Harness(GROUP).assign(0, by_hand=True)
    h.answer({0: data(0)}, row(0, data(0), last_stable_offset=30, log_start_offset=20))
    h.read()
    h.cluster["t"] = Topic(tid(2), {0: (1, 0)})
    h.answer(None, row(error_code=ErrorCode.UNKNOWN_TOPIC_ID))
    h.advance(3_000)
    assert h.core.topic_id(tp()) == tid(2)
    ends = (h.core.high_watermark, h.core.last_stable_offset, h.core.log_start_offset)
    assert [each(tp()) for each in ends] == [None, None, None]


def without_topic(h: Harness, ms: int) -> None:
    """The cluster does not know the topic for so long."""
    topic = h.cluster.pop("t")
    h.answer(None, row(error_code=ErrorCode.UNKNOWN_TOPIC_ID))
    h.advance(ms)
    h.cluster["t"] = topic
    h.advance(5_000)
    assert h.open


def test_a_topic_that_came_back_is_not_gone_when_it_is_not_seen_again() -> None:
    """The time counts from the beginning."""
    h = Harness().assign(0, by_hand=True)
    for _ in range(2):
        without_topic(h, 20_000)
    assert h.core.pending_error() is None


def test_a_topic_that_is_missing_for_the_second_time_is_logged_again() -> None:
    h = Harness().assign(0)
    for count in (1, 2):
        without_topic(h, 40_000)
        told = [text for text in h.notices if "the cluster does not know its id" in text]
        assert len(told) == count


def test_a_topic_that_was_missing_before_the_last_assignment_is_not_gone() -> None:
    h = Harness().assign(0, by_hand=True)
    topic = h.cluster.pop("t")
    h.answer(None, row(error_code=ErrorCode.UNKNOWN_TOPIC_ID))
    h.advance(20_000)
    h.post(AssignmentChanged({}, frozenset()))
    h.cluster["t"] = topic
    h.assign(0, by_hand=True)
    without_topic(h, 20_000)
    assert h.core.pending_error() is None


# -- offsets that somebody asks for --------------------------------------------------------------


def asked(h: Harness) -> None:
    h.post(OffsetsAsked(1, {tp(): LATEST}, h.now + 60_000))


def test_who_asks_for_offsets_of_a_topic_that_is_given_up_asks_the_leader_that_is_known() -> None:
    h = Harness().assign(0)
    h.answers_metadata = h.answers_offsets = False
    asked(h)
    h.post(AssignmentChanged({}, frozenset()))
    learnt = len(h.all(LearnLeaders))
    query = h.all(ListOffsets)[-1].query
    refused = ListedOffset(ErrorCode.OFFSET_NOT_AVAILABLE)
    h.post(OffsetsListed(query, {tp(): refused}))
    h.advance(1_000)
    assert h.all(ListOffsets)[-1].query > query
    assert len(h.all(LearnLeaders)) == learnt


def test_leaders_that_an_offset_waits_for_are_asked_for_in_the_new_cluster_too() -> None:
    h = Harness()
    h.answers_metadata = False
    asked(h)
    assert len(h.all(LearnLeaders)) == 1
    h.post(ClusterChanged())
    h.advance(100)
    assert [each.topics for each in h.all(LearnLeaders)] == [frozenset({"t"})] * 2


def test_why_no_leader_was_learnt_is_told_with_the_time_out() -> None:
    h = Harness()
    h.answers_metadata = False
    asked(h)
    h.post(LeadersNotLearnt(h.all(LearnLeaders)[-1].number, "all brokers are down"))
    h.advance(60_000)
    (told,) = h.all(OffsetsNotFound)
    assert isinstance(told.error, RequestTimedOut)
    assert "all brokers are down" in str(told.error)


# -- the budget, chunks ------------------------------------------------------------------------


def test_what_was_asked_of_the_former_cluster_takes_no_room() -> None:
    settings = FetchSettings(max_bytes=1_000_000, buffer_bytes=3_000_000)
    h = Harness(settings, nodes=(1,)).assign(0)
    first = h.fetch().intent.max_bytes
    for _ in range(5):
        h.open.clear()
        h.sessions.clear()
        h.post(ClusterChanged())
        assert h.fetch().intent.max_bytes == first


@pytest.mark.parametrize("is_first", [True, False])
def test_an_error_in_the_first_chunk_is_told_after_the_last(is_first: bool) -> None:
    settings = FetchSettings(max_bytes=16_000_000, reset_policy="earliest", rows_a_step=2)
    h = Harness(settings, partitions=3).assign(0, 1, 2)
    h.advance(0)
    refused = 0 if is_first else 2
    h.answer(None, row(refused, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    commands = h.post(TimerFired())
    assert h.core.pending_error() is not None
    assert any(isinstance(each, Readable) for each in commands), "who waits is woken"
