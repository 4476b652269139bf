"""The core and topics that are deleted, created again, or not there yet."""

from __future__ import annotations

import pytest

from kip848_client.core.cluster import LeadersLearnt, LearnLeaders, PartitionLeader, TopicLeaders
from kip848_client.core.fetch import (
    AssignmentChanged,
    ErrorDelivered,
    FetchSettings,
    LookUpCommitted,
    OffsetsAsked,
    OffsetsFound,
    SeekBegun,
    SeekEnded,
    SendFetch,
    Sought,
    Started,
    StoredOffset,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, TopicGone
from tests.unit.core.fetch._harness import Harness, Topic, data, key, row, tid, tp


def created_again(*, by_hand: bool) -> Harness:
    """The topic was read, deleted, and created again."""
    h = Harness(FetchSettings(has_group=True))
    h.committed[tp(0)] = StoredOffset(3, 2)
    h.assign(0, by_hand=by_hand)
    h.answer()
    h.answer({0: data(3)})
    h.cluster["t"] = Topic(tid(2), {0: (1, 0)})
    return h


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    ],
)
def test_the_group_says_when_a_topic_is_another_one(code: ErrorCode) -> None:
    """franz-go #1336, franz-go #1364, franz-go #1404, franz-go #1429."""
    h = created_again(by_hand=False)
    count = len(h.all(SendFetch))
    h.answer(None, row(error_code=code))
    h.advance(20_000)
    assert len(h.all(SendFetch)) == count, "its id has no leader any more"
    assert len(h.all(LearnLeaders)) < 40
    assert h.all(LearnLeaders)[-1].topic_ids == {tid(1)}
    assert h.read() == [(tp(0), 3, 4)], "what was fetched is good"
    assert h.core.pending_error() is None
    generation = h.core.generation(tp(0))
    h.committed.clear()
    h.assign(0, topic_id=tid(2))
    assert h.core.generation(tp(0)) != generation
    assert h.sessions[1].keys() == {key(0, 2)}
    assert h.core.position(tp(0)) == 0


def test_partitions_of_the_old_topic_do_not_hinder_those_of_the_new_one() -> None:
    """The group takes the old ones away one after the other, and gives the new ones so."""
    h = created_again(by_hand=False)
    h.cluster["t"].leaders[1] = (1, 0)
    h.open.pop(1)
    h.post(AssignmentChanged({tp(0): tid(1), tp(1): tid(2)}, frozenset()))
    h.post(Started((tp(1),)))
    h.advance(1_000)
    assert h.core.position(tp(1)) == 0
    assert h.core.snapshot().partitions[tp(0)].why_not == {"no-leader"}
    assert h.core.snapshot().nodes[1].wanted == (key(1, 2),)


def test_what_the_group_assigns_and_nobody_knows_is_logged() -> None:
    h = created_again(by_hand=False)
    h.answer(None, row(error_code=ErrorCode.UNKNOWN_TOPIC_ID))
    h.advance(120_000)
    told = [text for text in h.notices if "the cluster does not know its id" in text]
    assert len(told) == 1
    assert h.core.pending_error() is None


def test_metadata_of_another_id_ends_the_fetching_of_a_group_at_once() -> None:
    h = created_again(by_hand=False)
    h.learn()
    h.answer({0: data(4)})
    assert not h.open
    h.advance(3_000)
    h.learn()
    assert h.core.topic_id(tp(0)) == tid(1)
    assert h.core.position(tp(0)) == 3


@pytest.mark.parametrize("by_hand", [False, True])
def test_metadata_of_a_broker_that_lags_behind_is_asked_about_again(by_hand: bool) -> None:
    h = Harness().assign(0, by_hand=by_hand)
    old = TopicLeaders("t", tid(9), {0: PartitionLeader(2, 1, (2,))})
    h.post(LeadersLearnt(0, (old,), frozenset(), frozenset(h.nodes)))
    h.answer({0: data(0)})
    h.advance(200)
    assert h.asked(1) == {0: 1}


def test_metadata_without_an_id_says_nothing() -> None:
    h = Harness().assign(0)
    told = TopicLeaders("t", tid(0), {0: PartitionLeader(2, 9, (2,))})
    h.post(LeadersLearnt(0, (told,), frozenset(), frozenset(h.nodes)))
    h.answer({0: data(0)})
    assert h.asked(1) == {0: 1}


def test_a_topic_that_has_no_id_yet_is_waited_for() -> None:
    """librdkafka #4806: it was fetched by the zero id."""
    h = Harness()
    h.cluster["t"].topic_id = tid(0)
    h.assign(0, by_hand=True)
    h.advance(1_000)
    assert not h.all(SendFetch)
    h.cluster["t"].topic_id = tid(1)
    h.advance(2_000)
    assert h.sessions[1].keys() == {key(0)}


def test_assigned_by_hand_the_new_topic_is_read_as_if_nothing_were_committed() -> None:
    h = created_again(by_hand=True)
    generation = h.core.generation(tp(0))
    h.log[tp(0)] = (0, 1)
    h.answer(None, row(error_code=ErrorCode.UNKNOWN_TOPIC_ID))
    looked_up = len(h.all(LookUpCommitted))
    h.advance(3_000)
    assert h.core.topic_id(tp(0)) == tid(2)
    assert h.core.generation(tp(0)) != generation
    assert h.core.position(tp(0)) == 1, "auto_offset_reset is latest"
    assert h.core.next_slice() is None, "records of the old topic have no place there"
    assert len(h.all(LookUpCommitted)) == looked_up
    assert [text for text in h.notices if "deleted and created again" in text]
    assert h.fetch().intent.forget == (key(0, 1),)
    h.answer({}, row(0, data(1), topic=2))
    assert h.read() == [(tp(0), 1, 2)]


def test_partitions_by_hand_of_the_old_topic_follow_one_of_the_new_topic() -> None:
    """One is added when the topic was created again: it is of the new one from the beginning."""
    h = created_again(by_hand=True)
    h.cluster["t"].leaders[1] = (1, 0)
    h.log[tp(0)] = (0, 1)
    h.open.pop(1)
    h.learn()
    h.post(AssignmentChanged(dict.fromkeys((tp(0), tp(1))), frozenset()))
    h.post(Started((tp(1),)))
    h.advance(200)
    assert h.core.topic_id(tp(0)) == tid(1), "not at once: metadata may be old"
    assert h.core.topic_id(tp(1)) == tid(2)
    h.advance(3_000)
    assert h.core.topic_id(tp(0)) == tid(2)
    assert h.core.position(tp(0)) == 1
    assert len([text for text in h.notices if "deleted and created again" in text]) == 1


def test_a_seek_in_the_old_topic_does_not_move_the_new_one() -> None:
    h = created_again(by_hand=True)
    h.log[tp(0)] = (0, 1)
    h.answer(None, row(error_code=ErrorCode.UNKNOWN_TOPIC_ID))
    h.post(SeekBegun(1, (tp(0),)))
    h.advance(3_000)
    h.post(SeekEnded(1, {tp(0): StoredOffset(50)}))
    assert h.core.position(tp(0)) == 1


def test_a_topic_by_hand_that_does_not_come_back_is_gone() -> None:
    h = created_again(by_hand=True)
    h.cluster.clear()
    h.answer(None, row(error_code=ErrorCode.UNKNOWN_TOPIC_ID))
    h.advance(29_000)
    assert h.core.pending_error() is None
    h.advance(3_000)
    assert h.core.pending_error() is None, "records first"
    h.read()
    trouble = h.core.pending_error()
    assert trouble is not None
    assert isinstance(trouble[1], TopicGone)
    assert trouble[1].topic == "t"
    h.post(ErrorDelivered(tp(0)))
    asked = len(h.all(LearnLeaders))
    h.advance(60_000)
    assert h.core.pending_error() is None
    assert len(h.all(LearnLeaders)) == asked
    h.cluster["t"] = Topic(tid(2), {0: (1, 0)})
    h.learn()
    h.advance(5_000)
    h.learn()
    assert h.core.topic_id(tp(0)) == tid(1), "who was told that it is gone assigns anew"
    assert not h.open
    h.post(OffsetsAsked(1, {tp(0): -1}, h.now + 5_000))
    assert h.all(OffsetsFound)


def test_a_new_topic_that_its_broker_does_not_know_yet_is_waited_for() -> None:
    """franz-go #357, franz-go #359."""
    h = Harness().assign(0)
    for _ in range(4):
        h.answer(None, row(error_code=ErrorCode.UNKNOWN_TOPIC_ID))
        h.advance(1_100)
    h.answer({0: data(0)})
    assert h.read() == [(tp(0), 0, 1)]
    assert not h.notices
    assert h.core.pending_error() is None


def test_records_of_a_topic_that_was_sought_before_its_id_was_known_have_the_id() -> None:
    h = Harness()
    h.answers_metadata = False
    h.assign(0, by_hand=True)
    h.post(Sought(tp(0), 4))
    h.learn(h.all(LearnLeaders)[-1])
    h.answer({0: data(4)})
    piece = h.core.next_slice()
    assert piece is not None
    assert (piece.cursor.topic_id, piece.first_offset) == (tid(1), 4)


def test_trouble_that_lasts_is_logged_once() -> None:
    h = Harness(partitions=30).assign(*range(30))
    h.answer()
    start = h.now
    while h.now < start + 25_000:
        if h.open:
            bad = [row(n, error_code=ErrorCode.UNKNOWN_TOPIC_ID) for _, n in h.sessions[1]]
            h.answer(None, *bad)
        h.advance(50)
    (told,) = [text for text in h.notices if "could not be fetched" in text]
    assert "t-0, t-1, t-2, t-3, t-4 and 25 more" in told
    assert "UNKNOWN_TOPIC_ID" in told


def test_a_topic_that_was_never_there_is_logged_and_waited_for() -> None:
    h = Harness()
    topic = h.cluster.pop("t")
    h.assign(0, by_hand=True)
    h.advance(15_000)
    assert len([text for text in h.notices if "no broker has it" in text]) == 1
    h.cluster["t"] = topic
    h.advance(1_500)
    assert h.asked() == {0: 0}


def test_a_topic_that_we_may_not_describe_is_told() -> None:
    h = Harness().assign(0)
    h.answer()
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    h.post(LeadersLearnt(0, (TopicLeaders("", tid(1), {}, code),), frozenset(), frozenset(h.nodes)))
    trouble = h.core.pending_error()
    assert trouble is not None
    assert isinstance(trouble[1], BrokerError)
    assert trouble[1].code == code


def test_topics_that_were_asked_about_are_forgotten() -> None:
    h = Harness()
    h.post(OffsetsAsked(1, {tp(0): -1}, h.now + 5_000))
    assert OffsetsFound in {type(each) for each in h.commands}
    assert h.core._leaders.id_of("t") is None
    h.post(OffsetsAsked(2, {tp(0): -1}, h.now + 5_000))
    assert len(h.all(OffsetsFound)) == 2, "it is asked for again at once"


def test_topics_that_nobody_wants_are_forgotten() -> None:
    h = Harness().assign(0)
    h.assign()
    asked = len(h.all(LearnLeaders))
    h.advance(1_000_000)
    assert len(h.all(LearnLeaders)) == asked
    assert h.core._leaders.id_of("t") is None
    h.learn()
    assert h.core._leaders.id_of("t") is None
