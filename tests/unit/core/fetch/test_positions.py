"""Where to begin: committed offsets, policies, and what is done about a position out of range."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kip848_client.core.cluster import NO_EPOCH
from kip848_client.core.fetch._commands import ListOffsets, LookUpCommitted, Notice
from kip848_client.core.fetch._events import CommittedFailed, CommittedFound, OffsetsNotListed
from kip848_client.core.fetch._model import EARLIEST, LATEST, FetchSettings, StoredOffset
from kip848_client.core.fetch._positions import PositionError, PositionFound, PositionStands
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    BrokerError,
    GroupAuthorizationFailed,
    Kip848Error,
    NoOffsetForPartition,
    OffsetOutOfRange,
    RequestTimedOut,
    StaleMemberEpoch,
    TopicAuthorizationFailed,
    UnknownMemberId,
)
from tests.unit.core.fetch._looking import ID, Looking, listed, tp

A, B, C = tp(0), tp(1), tp(2)
GROUP = FetchSettings(has_group=True, reset_policy="earliest")
ALONE = FetchSettings(reset_policy="earliest")
NONE = FetchSettings(has_group=True, reset_policy="none")


def begun(settings: FetchSettings, *partitions: int, generation: int = 1) -> Looking:
    """Positions of these are looked for; broker 1 leads all of t."""
    look = Looking({0: 1, 1: 1, 2: 1}, settings)
    for n in partitions or (0,):
        look.positions.begin(look.now, tp(n), generation, ID)
    look.settle()
    return look


def checked(settings: FetchSettings, offset: int = 50, start: int = 0, end: int = 100) -> Looking:
    """A leader called the offset out of range, and has this log."""
    look = Looking({0: 1}, settings)
    check(look, offset, start, end)
    return look


def check(look: Looking, offset: int, start: int, end: int) -> None:
    look.positions.check(look.now, A, 1, ID, offset)
    look.settle()
    for time, found in ((EARLIEST, start), (LATEST, end)):
        request = look.newest(ListOffsets)
        assert request.wanted[A][0] == time
        assert not request.read_committed
        look.answer({A: listed(found)}, request)


# -- committed offsets ---------------------------------------------------------------------------


def test_committed_offsets_are_looked_up_together_and_used() -> None:
    look = begun(GROUP, 0, 1)
    assert look.all(LookUpCommitted) == [LookUpCommitted(1, (A, B))]
    look.committed({A: StoredOffset(7, 4), B: StoredOffset(0)})
    assert look.results == [
        PositionFound(A, 1, 7, 4, committed=True),
        PositionFound(B, 1, 0, NO_EPOCH, committed=True),
    ]
    assert not look.all(ListOffsets)
    assert look.deadline_ms is None


def test_only_where_nothing_is_committed_the_policy_decides() -> None:
    look = begun(GROUP, 0, 1)
    look.committed({A: StoredOffset(7), B: None})
    assert set(look.newest(ListOffsets).wanted) == {B}
    look.answer({B: listed(3)})
    assert look.results[-1] == PositionFound(B, 1, 3, NO_EPOCH, committed=False)


def test_silence_about_a_partition_is_not_nothing_committed() -> None:
    look = begun(GROUP, 0, 1)
    look.committed({A: StoredOffset(7)})
    assert not look.all(ListOffsets)
    look.advance(100)
    assert look.newest(LookUpCommitted).partitions == (B,)


@pytest.mark.parametrize(
    "error",
    [
        UnknownMemberId(25, "UNKNOWN_MEMBER_ID"),
        StaleMemberEpoch(113, "STALE_MEMBER_EPOCH"),
        RequestTimedOut("committed offsets could not be read in time"),
    ],
)
def test_a_fenced_member_is_not_reset_and_its_user_hears_nothing(error: Kip848Error) -> None:
    look = begun(GROUP)
    for number in range(1, 30):
        look.not_committed(CommittedFailed(number, error, passing=True))
        look.advance(1_000)
        assert len(look.all(LookUpCommitted)) == number + 1
    assert not look.all(ListOffsets)
    assert not look.results
    look.committed({A: StoredOffset(9)})
    assert look.results == [PositionFound(A, 1, 9, NO_EPOCH, committed=True)]


def test_an_error_of_the_group_is_told_and_tried_again_each_second_and_resets_nothing() -> None:
    look = begun(GROUP, 0, 1)
    error = GroupAuthorizationFailed(30, "GROUP_AUTHORIZATION_FAILED")
    look.not_committed(CommittedFailed(1, error, passing=False))
    assert look.results == [
        PositionError(A, 1, error, lasting=False),
        PositionError(B, 1, error, lasting=False),
    ]
    assert all(each.error is error for each in look.results if isinstance(each, PositionError))
    look.advance(999)
    assert len(look.all(LookUpCommitted)) == 1
    look.advance(1)
    assert look.all(LookUpCommitted)[1:] == [LookUpCommitted(2, (A, B))]
    assert not look.all(ListOffsets)


def test_without_a_group_the_policy_decides_at_once() -> None:
    look = begun(ALONE)
    assert not look.all(LookUpCommitted)
    assert look.newest(ListOffsets).wanted[A][0] == EARLIEST


def test_what_is_committed_can_be_left_out() -> None:
    """A topic that was created again: the committed offset is of the old one."""
    look = Looking({0: 1}, GROUP)
    look.positions.begin(look.now, A, 1, ID, by_policy=True)
    look.settle()
    assert not look.all(LookUpCommitted)
    assert look.newest(ListOffsets).wanted[A][0] == EARLIEST


def test_what_begins_later_does_not_wait_for_a_look_up_that_is_under_way() -> None:
    look = begun(GROUP, 0)
    look.positions.begin(look.now, B, 1, ID)
    look.settle()
    assert [each.partitions for each in look.all(LookUpCommitted)] == [(A,), (B,)]


def test_look_ups_that_fail_do_not_follow_each_other_closely() -> None:
    """Each began, and failed, at a time of its own; together they are still no storm."""
    look = Looking(dict.fromkeys(range(50), 1), GROUP)
    error = RequestTimedOut("the coordinator is away")
    answered = 0
    for n in range(500):
        if n < 50:
            look.positions.begin(look.now, tp(n), 1, ID)
            look.settle()
        for each in look.all(LookUpCommitted)[answered:]:
            answered += 1
            look.not_committed(CommittedFailed(each.number, error, passing=True))
        look.advance(7)
    assert 50 < answered <= 50 + 500 * 7 // 100 + 1


# -- policies ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "time"), [("earliest", EARLIEST), ("latest", LATEST)])
@pytest.mark.parametrize("read_committed", [False, True])
def test_a_reset_asks_with_the_isolation_of_the_consumer(
    policy: str, time: int, read_committed: bool
) -> None:
    """With read_committed the end is the last stable offset."""
    look = begun(FetchSettings(reset_policy=policy, read_committed=read_committed))
    request = look.newest(ListOffsets)
    assert (request.wanted[A][0], request.read_committed) == (time, read_committed)
    look.answer({A: listed(12)})
    assert look.results == [PositionFound(A, 1, 12, NO_EPOCH, committed=False)]


def test_resets_of_many_partitions_are_one_request() -> None:
    look = begun(replace(GROUP, reset_policy="latest"), 0, 1, 2)
    look.committed({A: None, B: None, C: None})
    assert [set(each.wanted) for each in look.all(ListOffsets)] == [{A, B, C}]


def test_none_stops_the_partition_until_the_user_seeks() -> None:
    look = begun(NONE, 0, 1)
    look.committed({A: None, B: StoredOffset(4)})
    trouble, found = look.results
    assert isinstance(trouble, PositionError)
    assert trouble.lasting
    assert type(trouble.error) is NoOffsetForPartition
    assert str(trouble.error) == (
        "t-0 has no committed offset and auto_offset_reset is 'none'; "
        "seek to an offset, or choose a policy"
    )
    assert found == PositionFound(B, 1, 4, NO_EPOCH, committed=True)
    look.advance(60_000)
    assert not look.all(ListOffsets)
    assert len(look.all(LookUpCommitted)) == 1
    assert not look.positions.is_looking(A)


BY_DURATION = FetchSettings(
    reset_policy="by_duration", reset_age_ms=60_000, clock_origin_ms=1_000_000
)


def test_by_duration_asks_for_one_time_however_long_it_takes() -> None:
    look = begun(BY_DURATION)
    time = look.now + 1_000_000 - 60_000
    for _ in range(5):
        assert look.newest(ListOffsets).wanted[A][0] == time
        look.refuse(ErrorCode.LEADER_NOT_AVAILABLE)
        look.advance(1_500)
    look.answer({A: listed(30, timestamp=time + 5)})
    assert look.results == [PositionFound(A, 1, 30, NO_EPOCH, committed=False)]


def test_by_duration_begins_at_the_end_when_no_record_is_so_young() -> None:
    look = begun(BY_DURATION)
    look.answer({A: listed(-1)})
    assert not look.results
    assert look.newest(ListOffsets).wanted[A][0] == LATEST
    look.answer({A: listed(99)})
    assert look.results == [PositionFound(A, 1, 99, NO_EPOCH, committed=False)]
    (notice,) = look.all(Notice)
    assert notice.text == "t-0 has no record of the last 60 s: continues at its end"
    assert not notice.warning


def test_a_duration_longer_than_time_is_the_beginning_of_time() -> None:
    """Below 0 there are times with a meaning of their own: -1 is the end."""
    today_ms = Looking().now + BY_DURATION.clock_origin_ms
    look = begun(replace(BY_DURATION, reset_age_ms=today_ms + 1))
    assert look.newest(ListOffsets).wanted[A][0] == 0


def test_a_reset_that_is_refused_for_good_is_told_and_tried_again() -> None:
    look = begun(ALONE, 0, 1)
    asked = look.newest(ListOffsets)
    look.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED, asked)
    assert [(each.tp, type(each.error), each.lasting) for each in troubles(look)] == [
        (A, TopicAuthorizationFailed, False),
        (B, TopicAuthorizationFailed, False),
    ]
    look.advance(999)
    assert len(look.all(ListOffsets)) == 1
    look.advance(1)
    assert set(look.newest(ListOffsets).wanted) == {A, B}
    look.answer({A: listed(1), B: listed(2)})
    assert look.results[2:] == [
        PositionFound(A, 1, 1, NO_EPOCH, committed=False),
        PositionFound(B, 1, 2, NO_EPOCH, committed=False),
    ]


def test_by_duration_asks_for_the_same_time_when_it_was_refused_for_good() -> None:
    look = begun(BY_DURATION)
    look.advance(500)
    look.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    look.advance(60_000)
    first, *others = [each.wanted[A][0] for each in look.all(ListOffsets)]
    assert others
    assert set(others) == {first}


def test_after_an_error_that_was_told_the_pauses_begin_anew() -> None:
    look = begun(GROUP)
    passing = RequestTimedOut("committed offsets could not be read in time")
    for number in range(1, 9):
        look.not_committed(CommittedFailed(number, passing, passing=True))
        look.advance(1_000)
    error = GroupAuthorizationFailed(30, "GROUP_AUTHORIZATION_FAILED")
    look.not_committed(CommittedFailed(9, error, passing=False))
    look.advance(1_000)
    look.not_committed(CommittedFailed(10, passing, passing=True))
    look.advance(100)
    assert len(look.all(LookUpCommitted)) == 11


def troubles(look: Looking) -> list[PositionError]:
    return [each for each in look.results if isinstance(each, PositionError)]


def test_a_login_that_was_refused_is_told() -> None:
    look = begun(ALONE)
    error = BrokerError(ErrorCode.SASL_AUTHENTICATION_FAILED, "SASL_AUTHENTICATION_FAILED")
    look.lose(OffsetsNotListed(1, "login", error))
    assert look.results == [PositionError(A, 1, error, lasting=False)]


# -- generations --------------------------------------------------------------------------------


def test_a_seek_wins_over_the_committed_offset_that_is_looked_up() -> None:
    look = begun(GROUP)
    look.positions.forget(A)
    look.committed({A: StoredOffset(7)})
    assert not look.results
    assert look.deadline_ms is None


def test_a_seek_wins_over_a_reset() -> None:
    look = begun(ALONE)
    look.positions.forget(A)
    look.answer({A: listed(7)})
    assert not look.results
    look.advance(60_000)
    assert len(look.all(ListOffsets)) == 1


def test_what_was_asked_for_another_generation_changes_nothing() -> None:
    look = begun(GROUP)
    look.positions.begin(look.now, A, 2, ID)
    look.settle()
    first, second = look.all(LookUpCommitted)
    look.deliver(CommittedFound(first.number, {A: StoredOffset(7)}))
    look.settle()
    assert not look.results
    look.deliver(CommittedFound(second.number, {A: StoredOffset(8)}))
    look.settle()
    assert look.results == [PositionFound(A, 2, 8, NO_EPOCH, committed=True)]
    assert not look.deliver(CommittedFound(second.number, {A: None}))


def test_what_was_taken_away_before_its_offset_is_known_is_no_trouble() -> None:
    look = begun(NONE)
    look.positions.forget(A)
    look.committed({A: None})
    assert not look.results
    assert not look.all(ListOffsets)


def test_a_reset_of_another_generation_changes_nothing() -> None:
    look = begun(ALONE)
    look.positions.begin(look.now, A, 2, ID)
    look.settle()
    look.answer({A: listed(7)}, look.all(ListOffsets)[0])
    assert not look.results
    look.answer({A: listed(9)})
    assert look.results == [PositionFound(A, 2, 9, NO_EPOCH, committed=False)]


def test_a_negative_committed_offset_is_none() -> None:
    """A position below 0 would be a time with a meaning on the wire."""
    look = begun(GROUP)
    look.committed({A: StoredOffset(-1001)})
    look.answer({A: listed(0)})
    assert look.results == [PositionFound(A, 1, 0, NO_EPOCH, committed=False)]


# -- out of range --------------------------------------------------------------------------------


def test_a_position_that_is_in_the_log_stands_after_a_rest() -> None:
    look = checked(ALONE, offset=50)
    assert not look.results
    look.advance(100)
    assert look.results == [PositionStands(A, 1)]
    assert not look.all(Notice)
    assert look.deadline_ms is None


@pytest.mark.parametrize("offset", [0, 100])
def test_both_ends_of_the_log_are_in_it(offset: int) -> None:
    look = checked(ALONE, offset=offset)
    look.advance(100)
    assert look.results == [PositionStands(A, 1)]


def test_a_broker_is_believed_after_the_third_time() -> None:
    look = checked(ALONE, offset=50)
    look.advance(100)
    check(look, 50, 0, 100)
    look.advance(200)
    assert look.results == [PositionStands(A, 1)] * 2
    check(look, 50, 0, 100)
    assert look.newest(ListOffsets).wanted[A][0] == EARLIEST
    look.answer({A: listed(0)})
    assert look.results[2:] == [PositionFound(A, 1, 0, NO_EPOCH, committed=False)]


@pytest.mark.parametrize("between", ["fetched", "moved", "sought"])
def test_not_in_a_row_is_not_the_third_time(between: str) -> None:
    look = checked(ALONE, offset=50)
    for _ in range(5):
        look.advance(100)
        match between:
            case "fetched":
                look.positions.fetched(A)
                check(look, 50, 0, 100)
            case "moved":
                check(look, 51 if len(look.results) % 2 else 50, 0, 100)
            case _:
                look.positions.forget(A)
                check(look, 50, 0, 100)
    look.advance(100)
    assert look.results == [PositionStands(A, 1)] * 6


@pytest.mark.parametrize(
    ("policy", "offset", "found", "told"),
    [
        ("earliest", 5, 10, "reset to earliest: continues at 10, 5 offsets are skipped"),
        ("latest", 5, 20, "reset to latest: continues at 20, 15 offsets are skipped"),
        ("earliest", 25, 10, "reset to earliest: continues at 10, 15 offsets further back"),
        ("latest", 25, 20, "reset to latest: continues at 20, 5 offsets further back"),
    ],
)
def test_out_of_the_log_the_policy_decides_and_the_user_hears_how_far(
    policy: str, offset: int, found: int, told: str
) -> None:
    look = checked(FetchSettings(reset_policy=policy), offset=offset, start=10, end=20)
    look.answer({A: listed(found)})
    assert look.results == [PositionFound(A, 1, found, NO_EPOCH, committed=False)]
    (notice,) = look.all(Notice)
    assert notice.text == (
        f"t-0: offset {offset} is out of range: the log begins at 10 and ends at 20; {told}"
    )
    assert notice.warning
    assert notice.partition == A


def test_out_of_the_log_the_end_is_that_of_the_consumer() -> None:
    """For the range, what is not committed yet counts; for the position it does not."""
    settings = FetchSettings(reset_policy="latest", read_committed=True)
    look = checked(settings, offset=5, start=10, end=20)
    assert look.newest(ListOffsets).read_committed


def test_none_tells_the_user_what_the_log_has() -> None:
    look = checked(NONE, offset=5, start=10, end=20)
    (trouble,) = troubles(look)
    error = trouble.error
    assert trouble.lasting
    assert isinstance(error, OffsetOutOfRange)
    assert (error.topic, error.partition, error.offset, error.start, error.end) == (
        "t", 0, 5, 10, 20,
    )  # fmt: skip
    assert str(error).startswith(
        "t-0: offset 5 is out of range: the log begins at 10 and ends at 20, and auto_offset_reset "
        "is 'none'"
    )
    look.advance(60_000)
    assert look.results == [trouble]


def test_a_check_of_another_generation_changes_nothing() -> None:
    look = Looking({0: 1}, ALONE)
    look.positions.check(look.now, A, 1, ID, 5)
    look.settle()
    first = look.newest(ListOffsets)
    look.positions.forget(A)
    look.answer({A: listed(10)}, first)
    look.advance(60_000)
    assert not look.results
    assert len(look.all(ListOffsets)) == 1


def test_a_check_that_is_refused_for_good_is_told_and_begun_again() -> None:
    look = Looking({0: 1}, ALONE)
    look.positions.check(look.now, A, 1, ID, 5)
    look.settle()
    look.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert len(troubles(look)) == 1
    assert len(look.all(ListOffsets)) == 1, "the other end is of no use alone"
    look.advance(1_000)
    for _ in range(2):
        look.answer({A: listed(3 if look.newest(ListOffsets).wanted[A][0] == EARLIEST else 8)})
    look.advance(1_000)
    assert look.results[1:] == [PositionStands(A, 1)]


def test_a_check_that_is_begun_again_forgets_what_it_knew() -> None:
    look = Looking({0: 1}, ALONE)
    look.positions.check(look.now, A, 1, ID, 50)
    look.settle()
    look.refuse(ErrorCode.OFFSET_NOT_AVAILABLE)
    assert look.newest(ListOffsets).wanted[A][0] == LATEST
    look.answer({A: listed(100)})
    look.advance(100)
    look.refuse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    look.advance(1_000)
    look.answer({A: listed(0)})
    assert look.newest(ListOffsets).wanted[A][0] == LATEST
    look.advance(1_000)
    look.answer({A: listed(40)})
    assert look.newest(ListOffsets).wanted[A][0] == EARLIEST, "50 is beyond the end by now"
    look.answer({A: listed(0)})
    assert look.results[1:] == [PositionFound(A, 1, 0, NO_EPOCH, committed=False)]


def test_after_a_broker_was_believed_it_needs_three_times_again() -> None:
    look = Looking({0: 1}, FetchSettings(reset_policy="latest"))
    for _ in range(2):
        check(look, 100, 0, 100)
        look.advance(500)
    check(look, 100, 0, 100)
    look.answer({A: listed(100)})
    check(look, 100, 0, 100)
    look.advance(100)
    stands = PositionStands(A, 1)
    found = PositionFound(A, 1, 100, NO_EPOCH, committed=False)
    assert look.results == [stands, stands, found, stands]


# -- what is told --------------------------------------------------------------------------------


def test_a_search_that_lasts_is_told_once_a_minute_for_all_it_concerns() -> None:
    look = Looking({}, GROUP)
    for n in range(7):
        look.positions.begin(look.now, tp(n), 1, ID)
    look.settle()
    look.committed({tp(n): None for n in range(7)})
    look.advance(999)
    assert not look.all(Notice)
    assert not look.positions.waits(look.now)
    look.advance(1)
    (notice,) = look.take(Notice)
    assert notice.text == (
        "waiting for positions of t-0, t-1, t-2, t-3, t-4 and 2 more for 1 s: no leader is known"
    )
    assert notice.warning
    assert look.positions.waits(look.now) == {
        "no leader is known": (look.now - 1_000, [tp(n) for n in range(7)])
    }
    look.advance(59_999)
    assert not look.all(Notice)
    look.advance(1)
    assert len(look.all(Notice)) == 1


def test_the_end_of_a_search_that_was_told_is_told() -> None:
    look = begun(GROUP, 0, 1, 2)
    look.committed({A: None, B: None, tp(2): StoredOffset(3)})
    look.advance(2_000)
    assert len(look.take(Notice)) == 1
    look.answer({A: listed(7), B: listed(8)})
    look.settle()
    (notice,) = look.take(Notice)
    assert notice == Notice("done waiting for positions of t-0, t-1 after 2 s", warning=False)
    look.advance(120_000)
    assert not look.all(Notice)


def test_the_end_of_a_search_that_was_not_told_is_not_told() -> None:
    look = begun(GROUP, 0)
    look.committed({A: None})
    look.advance(900)
    look.answer({A: listed(7)})
    look.advance(1_000)
    assert not look.all(Notice)


def test_closing_tells_nothing_of_searches() -> None:
    look = begun(GROUP, 0)
    look.committed({A: None})
    look.advance(2_000)
    assert len(look.take(Notice)) == 1
    look.positions.close()
    look.settle()
    assert not look.all(Notice)


def test_what_the_user_was_told_is_not_logged_too() -> None:
    look = begun(GROUP)
    error = GroupAuthorizationFailed(30, "GROUP_AUTHORIZATION_FAILED")
    for number in range(1, 60):
        look.not_committed(CommittedFailed(number, error, passing=False))
        look.advance(1_000)
    assert len(troubles(look)) == 59
    assert not look.all(Notice)


def test_the_end_ends_all_searches() -> None:
    look = begun(GROUP, 0, 1)
    look.positions.check(look.now, C, 1, ID, 5)
    look.settle()
    look.positions.close()
    look.committed({A: None, B: StoredOffset(3)})
    look.settle()
    assert not look.results
    assert not look.queries.topics
    assert look.deadline_ms is None
