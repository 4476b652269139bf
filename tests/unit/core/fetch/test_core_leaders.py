"""The core and leaders: who is asked, which epochs are believed, when metadata is asked for."""

from __future__ import annotations

import pytest

from kip848_client.core.cluster import (
    ClusterChanged,
    Endpoint,
    Leaders,
    LeadersLearnt,
    LeadersNotLearnt,
    LearnLeaders,
    PartitionLeader,
    TopicLeaders,
)
from kip848_client.core.fetch import (
    LATEST,
    FetchAnswer,
    FetchAnswered,
    ListedOffset,
    ListOffsets,
    OffsetsAsked,
    OffsetsFound,
    OffsetsListed,
    SendFetch,
    UseEndpoints,
)
from kip848_client.error_codes import ErrorCode
from tests.unit.core.fetch._harness import Harness, Topic, data, key, row, tid, tp

MOVED = [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH]


def tell(h: Harness, leader: int, epoch: int) -> None:
    """Metadata that nobody asked for."""
    leaders = {0: PartitionLeader(leader, epoch, (1, 2, 3))}
    told = TopicLeaders("t", tid(1), leaders)
    h.post(LeadersLearnt(0, (told,), frozenset(), frozenset(h.nodes)))


def epoch_asked(h: Harness, node: int = 1) -> int:
    """The leader epoch that the broker was last told."""
    return h.sessions[node][key(0)].leader_epoch


def test_each_leader_is_asked_for_its_own() -> None:
    h = Harness(partitions=4, leader=lambda number: 1 + number % 2).assign(0, 1, 2, 3)
    assert h.asked(1) == {0: 0, 2: 0}
    assert h.asked(2) == {1: 0, 3: 0}


def test_brokers_do_not_wait_for_each_other() -> None:
    """Dekaf #1356."""
    h = Harness(partitions=2, leader=lambda number: 1 + number).assign(0, 1)
    for offset in range(5):
        h.answer({0: data(offset)}, node=1)
        h.read()
    assert h.asked(1) == {0: 5}
    assert h.fetch(2).fetch == 2, "still the first one"


@pytest.mark.parametrize("code", MOVED)
def test_a_leader_that_the_refusal_names_is_asked_at_once(code: ErrorCode) -> None:
    h = Harness().assign(0)
    h.answer()
    end = Endpoint(2, "two", 9092)
    commands = h.answer(None, row(error_code=code, leader=(2, 6)), endpoints=(end,))
    assert UseEndpoints((end,)) in commands
    assert not [each for each in commands if isinstance(each, LearnLeaders) and each.topics]
    assert h.asked(2) == {0: 0}
    assert epoch_asked(h, 2) == 6


def test_a_partition_follows_three_hints_at_once() -> None:
    h = Harness().assign(0)
    h.answer()
    code, node, followed = ErrorCode.NOT_LEADER_OR_FOLLOWER, 1, 0
    for epoch in range(6, 20):
        following = 1 + node % 3
        h.answer(None, row(error_code=code, leader=(following, epoch)), node=node)
        if following not in h.open:
            break
        node, followed = following, followed + 1
    assert followed == 3


def test_brokers_that_name_each_other_are_paced() -> None:
    h = Harness().assign(0)
    h.answer()
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    start, count, epoch = h.now, len(h.all(SendFetch)), 5
    while h.now < start + 10_000:
        for node in sorted(h.open):
            epoch += 1
            h.answer(None, row(error_code=code, leader=(3 - node, epoch)), node=node)
        h.advance(10)
    assert len(h.all(SendFetch)) - count < 20


@pytest.mark.parametrize("code", MOVED)
@pytest.mark.parametrize("leader", [(2, 5), (2, 4), (2, -1), (9, 6), None])
def test_a_hint_that_is_old_or_leads_nowhere_is_not_followed(
    code: ErrorCode, leader: tuple[int, int] | None
) -> None:
    h = Harness().assign(0)
    h.answer()
    h.answer(None, row(error_code=code, leader=leader))
    assert not h.open
    assert isinstance(h.commands[-1], LearnLeaders)
    h.advance(200)
    assert h.asked(1) == {0: 0}
    assert epoch_asked(h) == 5


def test_a_new_leader_in_metadata_ends_the_rest() -> None:
    h = Harness().assign(0)
    h.answer()
    h.cluster["t"].leaders[0] = (2, 6)
    h.answer(None, row(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert h.asked(2) == {0: 0}


def test_a_hint_moves_the_questions_for_offsets_too() -> None:
    """They rested because the old leader had refused, and metadata was not asked yet."""
    h = Harness().assign(0)
    h.answers_offsets = h.answers_metadata = False
    h.post(OffsetsAsked(1, {tp(): LATEST}, h.now + 60_000))
    asked = h.all(ListOffsets)[-1]
    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    h.post(OffsetsListed(asked.query, {tp(): ListedOffset(moved)}))
    commands = h.answer(None, row(error_code=moved, leader=(2, 6)), after_ms=0)
    (again,) = [each for each in commands if isinstance(each, ListOffsets)]
    assert (again.node, again.wanted) == (2, {tp(): (LATEST, 6)})


def test_a_hint_moves_a_question_that_waits_for_the_old_leader() -> None:
    h = Harness().assign(0)
    h.answers_offsets = h.answers_metadata = False
    h.post(OffsetsAsked(1, {tp(): LATEST}, h.now + 60_000))
    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    commands = h.answer(None, row(error_code=moved, leader=(2, 6)), after_ms=0)
    assert [each.node for each in commands if isinstance(each, ListOffsets)] == [2]


def test_a_hint_without_an_epoch_is_none() -> None:
    leaders = Leaders()
    assert not leaders.hint(key(0), 2, -1)
    assert leaders.at(key(0)) is None


def test_a_refusal_after_the_partition_stopped_changes_nothing() -> None:
    """Two brokers were asked, as the leader has moved."""
    h = Harness().assign(0)
    h.answer()
    h.answers_offsets = False
    tell(h, 2, 6)
    h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE), node=2)
    h.answer({0: data(0)}, node=1)
    assert h.core.next_slice() is None
    assert h.core.snapshot().stale_answers == 1


def test_a_partition_without_a_leader_keeps_its_epoch() -> None:
    """franz-go #1331."""
    h = Harness().assign(0)
    h.answer()
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    h.cluster["t"].leaders[0] = (-1, 7)
    h.answer(None, row(error_code=code, leader=(-1, 7)))
    h.advance(5_000)
    assert not h.open
    for _ in range(5):
        tell(h, -1, -1)
    h.cluster["t"].leaders[0] = (2, 6)  # a broker that lags behind
    h.advance(5_000)
    assert not h.open
    h.cluster["t"].leaders[0] = (3, 8)
    h.advance(2_000)
    assert epoch_asked(h, 3) == 8


def test_epochs_do_not_go_back() -> None:
    """librdkafka #4804, librdkafka #4680."""
    h = Harness().assign(0)
    h.answer()
    tell(h, 2, 4)
    h.answer({0: data(0)})
    assert h.asked(1) == {0: 1}
    assert epoch_asked(h) == 5


def test_the_same_epoch_with_another_leader_is_taken() -> None:
    """librdkafka #4901."""
    h = Harness().assign(0)
    h.answer()
    tell(h, 2, 5)
    assert h.asked(2) == {0: 0}


def test_the_epoch_is_the_one_of_the_moment_when_a_request_is_built() -> None:
    """librdkafka #4425, librdkafka #4433."""
    h = Harness().assign(0)
    h.answer()
    tell(h, 1, 6)
    tell(h, 1, 7)
    h.answer({0: data(0)})
    assert epoch_asked(h) == 7


def test_data_of_the_former_leader_is_kept() -> None:
    h = Harness().assign(0)
    h.answer()
    tell(h, 2, 6)
    assert h.asked(2) == {0: 0}
    h.answer({0: data(0)}, node=1)
    assert h.read() == [(tp(0), 0, 1)]
    h.answer({0: data(0)}, node=2)
    assert h.read() == [], "nothing twice"
    assert h.asked(2) == {0: 1}


def test_a_broker_that_has_not_heard_of_the_election_is_left_alone_for_a_while() -> None:
    h = Harness().assign(0)
    h.answer()
    asked = len(h.all(LearnLeaders))
    code = ErrorCode.UNKNOWN_LEADER_EPOCH
    h.answer(None, row(error_code=code))
    h.advance(200)
    assert len(h.all(LearnLeaders)) == asked
    start = h.now
    while h.now < start + 2_000:
        if h.open:
            h.answer(None, row(error_code=code))
        h.advance(50)
    assert len(h.all(LearnLeaders)) > asked, "after a second it may have lost its place"


def refused_for(h: Harness, ms: int) -> None:
    """The broker has not heard of the epoch."""
    until = h.now + ms
    while h.now < until:
        if h.open and epoch_asked(h) > 5:
            h.answer(None, row(error_code=ErrorCode.UNKNOWN_LEADER_EPOCH))
        h.advance(50)


def test_an_epoch_that_nobody_has_heard_of_is_not_believed_for_ever() -> None:
    h = Harness().assign(0)
    tell(h, 1, 2**31 - 1)
    h.answer()
    refused_for(h, 9_000)
    assert epoch_asked(h) == 2**31 - 1, "it may be an election that takes long"
    refused_for(h, 5_000)
    assert epoch_asked(h) == 5
    h.answer({0: data(0)})
    assert h.read() == [(tp(0), 0, 1)]


def test_an_epoch_of_which_records_were_read_is_not_doubted() -> None:
    h = Harness().assign(0)
    tell(h, 1, 9)
    h.answer()
    h.answer({0: data(0, epoch=9)})
    assert h.read() == [(tp(0), 0, 1)]
    refused_for(h, 30_000)
    assert epoch_asked(h) == 9


def test_metadata_is_asked_for_one_question_at_a_time_with_growing_pauses() -> None:
    h = Harness()
    h.answers_metadata = False
    h.assign(0)
    assert len(h.all(LearnLeaders)) == 1
    h.advance(60_000)
    assert len(h.all(LearnLeaders)) == 1, "one open"
    start = h.now
    while h.now < start + 30_000:
        h.post(LeadersNotLearnt(h.all(LearnLeaders)[-1].number, "nobody answers"))
        before = len(h.all(LearnLeaders))
        while len(h.all(LearnLeaders)) == before:
            h.advance(10)
    assert 25 < len(h.all(LearnLeaders)) < 40


def test_a_topic_that_has_no_leader_yet_does_not_storm() -> None:
    h = Harness()
    h.cluster["t"].leaders[0] = (-1, 5)
    h.assign(0)
    h.advance(30_000)
    assert 25 < len(h.all(LearnLeaders)) < 50


def test_a_new_topic_does_not_wait_for_the_pause_of_another() -> None:
    h = Harness()
    del h.cluster["t"]
    h.cluster["u"] = Topic(tid(2), {0: (2, 1)})
    h.assign(0, topic_id=tid(1))
    h.advance(5_030)
    h.post(OffsetsAsked(1, {tp(0, "u"): -1}, h.now + 5_000))
    assert OffsetsFound in {type(each) for each in h.commands}


def test_metadata_is_asked_for_again_when_it_is_old() -> None:
    h = Harness().assign(0)
    asked = len(h.all(LearnLeaders))
    h.advance(299_000)
    assert len(h.all(LearnLeaders)) == asked
    h.advance(2_000)
    assert len(h.all(LearnLeaders)) == asked + 1


def test_an_answer_without_the_topic_does_not_end_the_asking() -> None:
    h = Harness()
    h.answers_metadata = False
    h.assign(0)
    question = h.all(LearnLeaders)[-1]
    h.post(LeadersLearnt(question.number, (), frozenset(), frozenset(h.nodes)))
    h.answers_metadata = True
    h.advance(500)
    assert h.open


def test_after_a_change_of_the_cluster_all_is_learnt_anew_and_positions_stay() -> None:
    h = Harness().assign(0)
    h.answer({0: data(0)})
    h.read()
    late = h.fetch()
    h.open.clear()
    h.cluster["t"].leaders[0] = (3, 1)
    h.post(ClusterChanged())
    assert late.node == 1
    assert h.asked(3) == {0: 1}
    assert epoch_asked(h, 3) == 1, "epochs of another cluster mean nothing"
    assert h.fetch(3).intent.session_id == 0


def test_sessions_of_the_former_cluster_are_forgotten() -> None:
    h = Harness().assign(0)
    h.answer()
    late = h.open.pop(1)
    assert late.intent.session_id
    h.post(ClusterChanged())
    assert h.fetch(1).intent.session_id == 0
    h.post(FetchAnswered(late.fetch, FetchAnswer(0, 0, 0, (row(0, data(0)),))))
    assert h.core.next_slice() is None


def test_an_answer_of_the_former_cluster_is_ignored() -> None:
    h = Harness().assign(0)
    h.answers_metadata = False
    h.advance(301_000)
    question = h.all(LearnLeaders)[-1]
    h.open.clear()
    h.post(ClusterChanged())
    assert h.all(LearnLeaders)[-1].number > question.number
    stale = TopicLeaders("t", tid(1), {0: PartitionLeader(2, 9, (1,))})
    h.post(LeadersLearnt(question.number, (stale,), frozenset(), frozenset(h.nodes)))
    assert not h.open


def test_nothing_is_asked_of_a_partition_without_an_id() -> None:
    h = Harness()
    h.answers_metadata = False
    h.assign(0, by_hand=True)
    assert not h.all(SendFetch)
    assert h.all(LearnLeaders)[-1].topics == {"t"}
    h.learn(h.all(LearnLeaders)[-1])
    assert h.sessions[1].keys() == {key(0)}
    assert h.core.topic_id(tp(0)) == tid(1)


def test_of_a_topic_that_lost_its_name_nothing_is_kept() -> None:
    leaders = Leaders()
    leaders.learn(TopicLeaders("t", tid(1), {0: PartitionLeader(1, 5, (1,))}))
    leaders.learn(TopicLeaders("t", tid(2), {0: PartitionLeader(2, 0, (2,))}))
    assert leaders.at(key(0, 1)) is None
    assert leaders.leader_of(tp(0)) == (2, 0)


def test_of_another_cluster_nothing_is_known() -> None:
    leaders = Leaders()
    leaders.learn(TopicLeaders("t", tid(1), {0: PartitionLeader(1, 5, (1,))}))
    leaders.clear()
    assert leaders.id_of("t") is None
    assert leaders.at(key(0)) is None


def test_a_rest_that_was_cut_short_does_not_end_the_next_one() -> None:
    h = Harness().assign(0)
    h.answers_metadata = False
    h.answer()
    code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    h.answer(None, row(error_code=code))
    assert not h.open
    tell(h, 2, 6)
    h.answer(None, row(error_code=code), node=2)
    tell(h, 3, 7)
    h.answer(None, row(error_code=code), node=3)
    asked = h.core.snapshot().partitions[tp(0)]
    assert asked.why_not == {"resting"}
    h.advance(200)
    assert not h.open, "the first rest would be over, the third is longer"
    h.advance(1_000)
    assert h.open
