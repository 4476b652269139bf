"""ListOffsets: one request a leader, refusals by the table, ids, leaders that move, deadlines."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from kip848_client.core.fetch._commands import ListOffsets, Notice, OffsetsFound, OffsetsNotFound
from kip848_client.core.fetch._events import OffsetsListed, OffsetsNotListed
from kip848_client.core.fetch._model import (
    EARLIEST,
    LATEST,
    FetchSettings,
    FoundOffset,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    BrokerError,
    ConsumerClosed,
    InvalidRequest,
    ProtocolUnsupported,
    RequestTimedOut,
    TopicAuthorizationFailed,
    UnknownBrokerError,
    UnsupportedVersion,
)
from tests.unit.core.fetch._looking import ID, OTHER_ID, Looking, listed, tp

A, B, C = tp(0), tp(1), tp(2)


def requests(look: Looking) -> list[tuple[int, dict[tuple[str, int], int]]]:
    """(node, what is asked) of the requests that were not looked at yet."""
    taken = look.take(ListOffsets)
    return [(each.node, {at: time for at, (time, _) in each.wanted.items()}) for each in taken]


# -- withdrawn -----------------------------------------------------------------------------------


def test_what_nobody_waits_for_any_more_is_not_asked_again() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.refuse(ErrorCode.OFFSET_NOT_AVAILABLE)
    look.queries.withdraw(look.now, 1)
    look.settle()
    assert look.deadline_ms is None
    assert not look.queries.topics
    look.advance(60_000)
    assert len(look.all(ListOffsets)) == 1
    assert not look.all(OffsetsNotFound)


def test_who_withdraws_leaves_the_questions_of_others_alone() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST}, ticket=1)
    look.ask({A: LATEST}, ticket=2)
    look.queries.withdraw(look.now, 1)
    look.answer({A: listed(5)})
    look.answer({A: listed(6)})
    assert [each.ticket for each in look.all(OffsetsFound)] == [2]


def test_what_is_withdrawn_may_have_been_answered() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.answer({A: listed(5)})
    look.queries.withdraw(look.now, 1)
    look.queries.withdraw(look.now, 99)
    look.settle()
    assert look.deadline_ms is None


# -- batches -------------------------------------------------------------------------------------


def test_a_leader_gets_one_request_with_its_partitions_and_their_epochs() -> None:
    look = Looking({0: 1, 1: 2, 2: 1}, FetchSettings(read_committed=True))
    look.ask({A: EARLIEST, B: LATEST, C: 77})
    assert look.all(ListOffsets) == [
        ListOffsets(1, 1, {A: (EARLIEST, 1), C: (77, 1)}, read_committed=True),
        ListOffsets(2, 2, {B: (LATEST, 1)}, read_committed=True),
    ]
    first, second = look.all(ListOffsets)
    look.answer({B: listed(9)}, second)
    assert not look.all(OffsetsFound)
    look.answer({A: listed(0), C: listed(4, 80)}, first)
    found = {A: FoundOffset(0, -1, 3), B: FoundOffset(9, -1, 3), C: FoundOffset(4, 80, 3)}
    assert look.all(OffsetsFound) == [OffsetsFound(1, found)]


def test_nothing_asked_is_nothing_sent() -> None:
    look = Looking()
    look.ask({})
    assert look.said == [OffsetsFound(1, {})]


def test_an_answer_to_what_was_sent_before_is_no_answer_to_a_younger_question() -> None:
    """The end may have moved since: records that were produced before the question count."""
    look = Looking({0: 1})
    look.ask({A: LATEST}, ticket=1)
    look.ask({A: LATEST}, ticket=2)
    assert len(look.all(ListOffsets)) == 1
    look.answer({A: listed(5)})
    assert [each.ticket for each in look.take(OffsetsFound)] == [1]
    look.answer({A: listed(6)})
    assert look.take(OffsetsFound) == [OffsetsFound(2, {A: FoundOffset(6, -1, 3)})]


def test_what_waits_for_the_same_answer_shares_a_request() -> None:
    look = Looking({0: 1})
    for ticket in (1, 2, 3):
        look.ask({A: LATEST}, ticket=ticket)
    look.take(ListOffsets)
    look.deliver(OffsetsListed(1, {A: listed(5)}))
    look.settle()
    assert requests(look) == [(1, {A: LATEST})]
    look.deliver(OffsetsListed(2, {A: listed(7)}))
    assert sorted(each.ticket for each in look.all(OffsetsFound)) == [1, 2, 3]


def test_a_partition_is_named_once_in_a_request() -> None:
    """Brokers refuse what is named twice (INVALID_REQUEST)."""
    look = Looking({0: 1, 1: 1})
    look.ask({B: LATEST}, ticket=9)
    look.ask({A: EARLIEST}, ticket=1)
    look.ask({A: LATEST, B: EARLIEST}, ticket=2)
    assert requests(look) == [(1, {B: LATEST})]
    look.deliver(OffsetsListed(1, {B: listed(4)}))
    look.settle()
    assert requests(look) == [(1, {A: EARLIEST, B: EARLIEST})]
    look.deliver(OffsetsListed(2, {A: listed(1), B: listed(0)}))
    look.settle()
    assert requests(look) == [(1, {A: LATEST})]
    look.deliver(OffsetsListed(3, {A: listed(5)}))
    assert len(look.all(OffsetsFound)) == 3


def test_isolation_levels_do_not_mix() -> None:
    look = Looking({0: 1, 1: 1}, FetchSettings(read_committed=True))
    look.positions.begin(look.now, A, 1, ID)
    look.positions.check(look.now, B, 1, ID, 100)
    look.settle()
    kinds = []
    while look.all(ListOffsets):
        (request,) = look.take(ListOffsets)
        kinds.append((request.read_committed, sorted(request.wanted)))
        rows = {each: listed(7) for each in request.wanted}
        look.deliver(OffsetsListed(request.query, rows))
        look.settle()
    assert kinds[:3] == [(True, [A]), (False, [B]), (False, [B])]


def test_rows_that_nobody_asked_for_are_ignored() -> None:
    look = Looking({0: 1, 1: 2})
    look.ask({A: LATEST, B: LATEST})
    first = look.all(ListOffsets)[0]
    look.answer({A: listed(1), B: listed(2), tp(0, "other"): listed(3)}, first)
    assert not look.all(OffsetsFound), "B was asked of the other broker"
    assert not look.deliver(OffsetsListed(99, {B: listed(2)}))
    look.answer({B: listed(8)})
    assert look.all(OffsetsFound)[0].found[B].offset == 8


def test_a_request_is_answered_once() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.answer({A: listed(1)})
    assert not look.deliver(OffsetsListed(1, {A: listed(2)}))
    assert len(look.all(OffsetsFound)) == 1


def test_a_partition_that_an_answer_leaves_out_is_asked_for_again() -> None:
    look = Looking({0: 1, 1: 1})
    look.ask({A: LATEST, B: LATEST})
    look.take(ListOffsets)
    look.deliver(OffsetsListed(1, {A: listed(1)}))
    look.settle()
    look.advance(100)
    assert requests(look) == [(1, {B: LATEST})]


# -- leaders -------------------------------------------------------------------------------------


def test_an_unknown_leader_is_wanted() -> None:
    look = Looking()
    look.ask({A: LATEST})
    assert look.wanted == [("t", "no leader of t-0 is known")]
    assert look.queries.topics == {"t"}
    look.advance(1_000)
    assert len(look.wanted) == 1, "whoever learns leaders keeps the pace"
    look.lead({0: 3})
    assert requests(look) == [(3, {A: LATEST})]


def test_each_answer_without_a_leader_makes_it_wanted_again() -> None:
    look = Looking()
    look.ask({A: LATEST})
    look.lead({1: 1})
    assert len(look.wanted) == 2


def test_a_leader_that_moved_is_asked_as_soon_as_it_is_known() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert look.wanted == [("t", "t-0: NOT_LEADER_OR_FOLLOWER")]
    look.lead({0: 2}, epoch=2)
    assert look.newest(ListOffsets) == ListOffsets(2, 2, {A: (LATEST, 2)}, read_committed=False)


def test_the_same_leader_is_not_asked_before_the_rest_is_over() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    look.lead({0: 1})
    assert len(look.all(ListOffsets)) == 1
    look.advance(99)
    assert len(look.all(ListOffsets)) == 1
    look.advance(1)
    assert len(look.all(ListOffsets)) == 2


def test_a_partition_whose_leader_moved_does_not_wait_for_the_old_one() -> None:
    """It may be a broker that does not answer before the request times out."""
    look = Looking({0: 1, 1: 1})
    look.ask({A: LATEST, B: LATEST})
    look.lead({0: 2}, epoch=2)
    moved = look.newest(ListOffsets)
    assert (moved.node, set(moved.wanted)) == (2, {A})
    look.answer({A: listed(3), B: listed(4)}, look.all(ListOffsets)[0])
    assert not look.all(OffsetsFound), "the former leader does not speak for A any more"
    look.answer({A: listed(5)}, moved)
    assert look.all(OffsetsFound)[0].found[A].offset == 5
    assert look.all(OffsetsFound)[0].found[B].offset == 4


def test_a_topic_that_may_not_be_seen_ends_the_look_up() -> None:
    look = Looking()
    look.ask({A: LATEST})
    look.lead({}, error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    (failed,) = look.all(OffsetsNotFound)
    assert isinstance(failed.error, TopicAuthorizationFailed)
    assert "Metadata" in str(failed.error)
    assert "t-0" in str(failed.error)


# -- topic ids -----------------------------------------------------------------------------------


def test_another_topic_of_the_same_name_is_not_asked_for_ours() -> None:
    look = Looking()
    look.lead({0: 1}, topic_id=OTHER_ID)
    look.positions.begin(look.now, A, 1, ID)
    look.settle()
    assert not look.all(ListOffsets)
    assert look.wanted


def test_an_answer_does_not_count_when_the_name_has_another_id_since() -> None:
    look = Looking({0: 1})
    look.positions.begin(look.now, A, 1, ID)
    look.settle()
    look.lead({0: 1}, topic_id=OTHER_ID)
    look.answer({A: listed(5)})
    assert not look.results
    look.advance(5_000)
    assert not look.results
    assert len(look.all(ListOffsets)) == 1


def test_a_user_gets_what_the_name_means_in_the_end() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.lead({0: 1}, topic_id=OTHER_ID)
    look.answer({A: listed(5)})
    assert not look.all(OffsetsFound)
    look.advance(100)
    look.answer({A: listed(2)})
    assert look.all(OffsetsFound)[0].found[A].offset == 2


# -- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "metadata"),
    [
        (ErrorCode.UNKNOWN_SERVER_ERROR, False),
        (ErrorCode.CORRUPT_MESSAGE, False),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        (ErrorCode.LEADER_NOT_AVAILABLE, True),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, True),
        (ErrorCode.REPLICA_NOT_AVAILABLE, True),
        (ErrorCode.KAFKA_STORAGE_ERROR, True),
        (ErrorCode.FENCED_LEADER_EPOCH, True),
        (ErrorCode.OFFSET_NOT_AVAILABLE, False),
        (ErrorCode.REQUEST_TIMED_OUT, True),
    ],
)
def test_what_passes_rests_and_is_asked_again(code: ErrorCode, metadata: bool) -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    for _ in range(12):
        look.refuse(code)
        look.advance(1_000)
    assert not look.all(OffsetsNotFound)
    assert bool(look.wanted) is metadata
    look.answer({A: listed(4)})
    assert look.all(OffsetsFound)


@pytest.mark.parametrize(
    ("code", "error", "tries"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationFailed, 1),
        (ErrorCode.UNSUPPORTED_VERSION, ProtocolUnsupported, 1),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, BrokerError, 1),
        (ErrorCode.INVALID_REQUEST, InvalidRequest, 2),
        (4321, UnknownBrokerError, 10),
    ],
)
def test_what_waiting_does_not_cure_ends_the_look_up(
    code: int, error: type[BrokerError], tries: int
) -> None:
    look = Looking({0: 1, 1: 2})
    look.ask({A: LATEST, B: LATEST})
    for attempt in range(tries):
        assert not look.all(OffsetsNotFound), attempt
        asked = [each for each in look.all(ListOffsets) if each.node == 1]
        assert len(asked) == attempt + 1
        look.refuse(code, asked[-1])
        look.advance(1_000)
    (failed,) = look.all(OffsetsNotFound)
    assert type(failed.error) is error
    assert "ListOffsets" in str(failed.error)
    assert "t-0" in str(failed.error)
    assert not look.queries.topics
    look.advance(60_000)
    assert len(look.all(ListOffsets)) == tries + 1, "nobody wants to know of B any more"


def test_a_broker_that_lags_behind_gets_a_second_before_leaders_are_asked_for() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    begun = look.now
    while not look.wanted:
        look.refuse(ErrorCode.UNKNOWN_LEADER_EPOCH)
        look.advance(100 if look.wanted else 800)
    assert look.now - begun >= 1_000


def test_an_epoch_that_nobody_has_heard_of_is_doubted_at_last() -> None:
    look = Looking({0: 1})
    look.lead({0: 1}, epoch=99)
    look.ask({A: LATEST})
    begun = look.now
    while look.leaders.at((ID, 0)) is not None:
        look.refuse(ErrorCode.UNKNOWN_LEADER_EPOCH)
        look.advance(1_000)
        assert look.now - begun < 20_000
    assert look.now - begun > 10_000
    look.lead({0: 1}, epoch=1)
    assert look.newest(ListOffsets).wanted[A] == (LATEST, 1)


def test_pauses_grow() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    sent = [look.now]
    for _ in range(6):
        look.refuse(ErrorCode.LEADER_NOT_AVAILABLE)
        before = len(look.all(ListOffsets))
        while len(look.all(ListOffsets)) == before:
            look.advance(10)
        sent.append(look.now)
    assert [b - a for a, b in pairwise(sent)] == [100, 200, 400, 800, 1000, 1000]


def test_partitions_that_are_refused_together_stay_one_request() -> None:
    """Also when pauses vary: each of them is drawn for the whole answer."""
    pauses = iter(range(80, 10_000))
    look = Looking(dict.fromkeys(range(40), 1))
    look.queries._jitter = lambda _ms: next(pauses)
    look.ask({tp(n): LATEST for n in range(40)})
    for _ in range(5):
        look.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        look.advance(1_500)
    assert [len(each.wanted) for each in look.all(ListOffsets)] == [40] * 6


def test_no_offset_is_an_answer_for_a_time_and_none_for_an_end() -> None:
    look = Looking({0: 1, 1: 1})
    look.ask({A: 1234, B: LATEST})
    look.answer({A: listed(-1), B: listed(-1)})
    assert not look.all(OffsetsFound)
    look.advance(100)
    assert set(look.newest(ListOffsets).wanted) == {B}
    look.answer({B: listed(3)})
    assert look.all(OffsetsFound)[0].found == {A: FoundOffset(-1, -1, 3), B: FoundOffset(3, -1, 3)}


def test_a_lost_request_is_asked_again_and_may_have_another_leader() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.lose(OffsetsNotListed(1, "cable cut"))
    assert look.wanted == [("t", "t-0: cable cut")]
    look.advance(100)
    assert len(look.all(ListOffsets)) == 2


def test_an_error_that_the_user_must_know_ends_the_look_up() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    error = UnsupportedVersion("broker 1 offers ListOffsets 0-1")
    look.lose(OffsetsNotListed(1, "no version", error))
    assert look.all(OffsetsNotFound) == [OffsetsNotFound(1, error)]


def test_refused_questions_do_not_follow_each_other_closely() -> None:
    """Each waits for a time of its own; together they are still no storm."""
    look = Looking(dict.fromkeys(range(50), 1))
    for n in range(50):
        look.ask({tp(n): LATEST}, ticket=n + 1)
        look.advance(7)
    begun, before = look.now, len(look.all(ListOffsets))
    while look.now < begun + 3_000:
        for number in tuple(look.queries._requests):
            request = next(each for each in look.all(ListOffsets) if each.query == number)
            look.refuse(ErrorCode.OFFSET_NOT_AVAILABLE, request)
        look.advance(5)
    assert len(look.all(ListOffsets)) - before <= 31


def test_a_new_question_does_not_wait_for_the_rest_of_others() -> None:
    look = Looking({0: 1, 1: 1})
    look.ask({A: LATEST})
    look.refuse(ErrorCode.OFFSET_NOT_AVAILABLE)
    look.ask({B: LATEST}, ticket=2)
    assert requests(look)[-1] == (1, {B: LATEST})


def test_a_new_question_goes_before_those_that_wait_for_their_turn() -> None:
    look = Looking({0: 1, 1: 1, 2: 1})
    look.ask({A: LATEST})
    look.refuse(ErrorCode.OFFSET_NOT_AVAILABLE)
    look.advance(50)
    look.ask({B: LATEST}, ticket=2)
    look.refuse(ErrorCode.OFFSET_NOT_AVAILABLE)
    look.advance(50)
    look.refuse(ErrorCode.OFFSET_NOT_AVAILABLE)
    look.advance(60)
    assert [set(each.wanted) for each in look.take(ListOffsets)] == [{A}, {B}, {A}]
    look.ask({B: EARLIEST, C: LATEST}, ticket=3)
    assert requests(look) == [(1, {B: EARLIEST, C: LATEST})]


# -- the end -------------------------------------------------------------------------------------


def test_the_deadline_names_partitions_and_trouble() -> None:
    look = Looking({0: 1, 1: 1})
    look.ask({A: LATEST, B: LATEST}, within_ms=900)
    look.lose(OffsetsNotListed(1, "cable cut"))
    look.advance(899)
    assert not look.all(OffsetsNotFound)
    look.advance(1)
    (failed,) = look.all(OffsetsNotFound)
    assert isinstance(failed.error, RequestTimedOut)
    assert "offsets of t-0, t-1 were not found in time" in str(failed.error)
    look.queries.close(look.now)
    assert len(look.all(OffsetsNotFound)) == 1


def test_the_deadline_names_some_of_many() -> None:
    look = Looking()
    look.ask({tp(n): LATEST for n in range(4_000)}, within_ms=10)
    look.advance(10)
    assert str(look.all(OffsetsNotFound)[0].error) == (
        "offsets of t-0, t-1, t-2, t-3, t-4 and 3995 more were not found in time: "
        "no leader is known"
    )


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (lambda _: None, "no leader is known"),
        (lambda look: look.no_metadata("no broker answered"), "no broker answered"),
        (
            lambda look: look.lead({}, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            "t-0 were not found in time: UNKNOWN_TOPIC_OR_PARTITION",
        ),
        (lambda look: look.lead({0: 2}), "broker 2 has not answered"),
    ],
)
def test_the_deadline_tells_the_last_reason(trouble: Callable[[Looking], None], why: str) -> None:
    look = Looking()
    look.ask({A: LATEST}, within_ms=5_000)
    trouble(look)
    look.advance(5_000)
    assert str(look.all(OffsetsNotFound)[0].error).endswith(why)


def test_an_answer_after_the_deadline_changes_nothing() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST}, within_ms=500)
    look.advance(500)
    look.answer({A: listed(4)})
    assert not look.all(OffsetsFound)
    assert look.deadline_ms is None


def test_the_end_answers_what_is_open() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST}, ticket=1)
    look.ask({B: LATEST}, ticket=2)
    look.queries.close(look.now)
    assert [type(each.error) for each in look.all(OffsetsNotFound)] == [ConsumerClosed] * 2
    look.answer({A: listed(4)})
    assert not look.all(OffsetsFound)


def test_a_dropped_look_up_is_not_asked_for_again() -> None:
    look = Looking({0: 1})
    lookup = look.queries.ask({A: LATEST}, lambda *_: pytest.fail("told"), read_committed=False)
    look.settle()
    look.queries.drop(lookup)
    look.refuse(ErrorCode.OFFSET_NOT_AVAILABLE)
    look.advance(10_000)
    assert len(look.all(ListOffsets)) == 1
    assert look.deadline_ms is None


def test_who_is_told_of_one_look_up_may_drop_another() -> None:
    look = Looking({0: 1})
    told: list[str] = []

    def done(*_: object) -> None:
        told.append("first")
        look.queries.drop(second)

    end_ms = look.now + 10
    look.queries.ask({A: LATEST}, done, read_committed=False, deadline_ms=end_ms)
    second = look.queries.ask(
        {B: LATEST}, lambda *_: told.append("second"), read_committed=False, deadline_ms=end_ms
    )
    look.settle()
    look.advance(10)
    assert told == ["first"]


# -- what is told --------------------------------------------------------------------------------


def test_a_look_up_of_a_user_that_lasts_is_told_once_with_its_reason() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.refuse(ErrorCode.LEADER_NOT_AVAILABLE)
    look.advance(999)
    assert not look.all(Notice)
    assert not look.queries.waits(look.now)
    look.advance(1)
    (notice,) = look.take(Notice)
    assert notice.warning
    assert notice.text.startswith("waiting for offsets of t-0 for 1 s: ")
    ((_why, (since_ms, partitions)),) = look.queries.waits(look.now).items()
    assert (look.now - since_ms, partitions) == (1_000, [A])
    look.advance(30_000)
    assert not look.all(Notice)
    look.answer({A: listed(7)})
    over = Notice("done waiting for offsets of t-0 after 31 s", warning=False)
    assert look.take(Notice) == [over]


def test_the_end_of_a_look_up_that_is_given_up_is_told() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.advance(1_000)
    assert len(look.take(Notice)) == 1
    look.queries.withdraw(look.now, 1)
    over = Notice("done waiting for offsets of t-0 after 1 s", warning=False)
    assert look.take(Notice) == [over]


def test_a_look_up_that_is_answered_in_time_is_not_told() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.answer({A: listed(7)})
    look.advance(30_000)
    assert not look.all(Notice)
    assert not look.queries.waits(look.now)
