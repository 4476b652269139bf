"""The core and its pace: no loops, no storms, no starvation, bytes in one budget."""

from __future__ import annotations

import itertools

import pytest

from kip848_client.core.cluster import LearnLeaders
from kip848_client.core.fetch import (
    AssignmentChanged,
    BufferRead,
    FetchSettings,
    PartitionAnswer,
    Paused,
    SendFetch,
    Sought,
    Started,
)
from kip848_client.core.fetch._planner import FIRST_WAIT_MS, HOLD_MS
from kip848_client.error_codes import ErrorCode
from tests.unit.core.fetch._harness import Harness, Topic, data, key, row, tid, tp


def sends_in(h: Harness, ms: int, *rows: PartitionAnswer, error: int = 0) -> int:
    """How often the broker is asked in that time, when it answers so at once."""
    start, count = h.now, len(h.all(SendFetch))
    while h.now < start + ms:
        if 1 in h.open:
            assert len(h.all(SendFetch)) - count < 1_000, "a tight loop"
            h.answer(None, *rows, error=error, after_ms=0)
        else:
            h.advance(10)
    return len(h.all(SendFetch)) - count


def test_answers_that_come_early_and_bring_nothing_are_paced() -> None:
    """sarama #1759."""
    h = Harness().assign(0)
    h.answer()
    assert sends_in(h, 10_000) < 20
    h.advance(1_000)
    h.answer({0: data(0)})
    assert h.open, "progress ends it"


def test_an_answer_that_waited_is_followed_at_once() -> None:
    h = Harness().assign(0)
    for _ in range(10):
        h.answer(after_ms=300)
        assert h.open


def test_who_does_not_want_to_wait_is_paced_gently() -> None:
    h = Harness(FetchSettings(max_wait_ms=0)).assign(0)
    h.answer(after_ms=15)
    assert h.open
    h.answer(after_ms=0)
    assert not h.open


def test_beyond_the_last_stable_offset_a_partition_rests_by_itself() -> None:
    """Brokers answer at once there, without an error, for ever."""
    h = Harness(FetchSettings(read_committed=True), partitions=2).assign(0, 1)
    h.post(Sought(tp(0), 9))
    h.answer()
    beyond = row(high_watermark=9, last_stable_offset=3)
    start, count, served = h.now, len(h.all(SendFetch)), 0
    while h.now < start + 10_000:
        if key(0) in h.sessions[1] and 1 in h.open:
            h.answer(None, beyond)
        elif 1 in h.open:
            served += 1
            h.answer(after_ms=500)
        else:
            h.advance(10)
    assert len(h.all(SendFetch)) - count < 60
    assert served > 5, "the neighbour is fetched meanwhile"
    assert not h.notices, "it is no failure"


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ],
)
def test_an_error_that_does_not_end_is_paced(code: ErrorCode) -> None:
    h = Harness().assign(0)
    h.log[tp(0)] = (0, 10)
    h.answer()
    asked = len(h.all(LearnLeaders))
    assert sends_in(h, 10_000, row(error_code=code)) < 60
    assert len(h.all(LearnLeaders)) - asked < 25


def test_at_the_last_stable_offset_a_partition_does_not_rest() -> None:
    """It is where an idle partition stands, and its next record must not wait."""
    h = Harness(FetchSettings(read_committed=True)).assign(0)
    h.post(Sought(tp(0), 9))
    h.answer()
    for _ in range(5):
        h.answer(None, row(high_watermark=9, last_stable_offset=9), after_ms=300)
        assert h.asked() == {0: 9}
        assert h.open


def test_many_partitions_that_fail_do_not_cost_a_request_each() -> None:
    pauses = itertools.cycle(range(-20, 21))
    varied = Harness(partitions=50, jitter=lambda ms: ms + ms * next(pauses) // 100)
    h = varied.assign(*range(50))
    h.answer()
    start, count = h.now, len(h.all(SendFetch))
    while h.now < start + 10_000:
        if 1 in h.open:
            code = ErrorCode.UNKNOWN_TOPIC_ID
            h.answer(None, *[PartitionAnswer(*each, error_code=code) for each in h.sessions[1]])
        else:
            h.advance(7)
    assert len(h.all(SendFetch)) - count < 110


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_SERVER_ERROR, 4_711])
def test_a_request_that_is_refused_again_and_again_is_paced(code: int) -> None:
    h = Harness().assign(0)
    h.answer()
    assert sends_in(h, 10_000, error=code) < 20
    assert len([text for text in h.notices if "refused a Fetch" in text]) == 1


def test_a_broker_that_cannot_be_reached_is_paced_and_told_once() -> None:
    h = Harness(partitions=2, leader=lambda number: 1 + number).assign(0, 1)
    start, count = h.now, len(h.all(SendFetch))
    while h.now < start + 20_000:
        if 1 in h.open:
            h.lose(1)
        else:
            h.advance(10)
    assert len(h.all(SendFetch)) - count < 30
    assert len([text for text in h.notices if "broker 1 has not answered" in text]) == 1
    assert h.fetch(2).fetch == 2, "the other broker is not disturbed"


# -- throttling ----------------------------------------------------------------------------------


def test_a_throttled_broker_is_left_alone_for_that_time() -> None:
    h = Harness().assign(0)
    h.answer()
    h.answer({0: data(0)}, throttle_ms=3_000)
    h.advance(2_990)
    assert not h.open
    h.advance(10)
    assert h.asked() == {0: 1}


def test_a_throttled_first_answer_is_no_breach() -> None:
    h = Harness().assign(0)
    h.answer(throttle_ms=200, session_id=0)
    assert not h.notices
    h.advance(200)
    assert h.fetch().intent.session_epoch == 0


def test_throttled_answers_do_not_count_as_useless() -> None:
    h = Harness().assign(0)
    h.answer()
    for _ in range(10):
        h.answer(throttle_ms=50)
        h.advance(50)
        assert h.open, "the time that the broker named is all"


# -- bytes ---------------------------------------------------------------------------------------


def test_what_is_buffered_and_asked_for_stays_in_the_budget() -> None:
    """KIP-81, zio-kafka #918, Dekaf #2257."""
    settings = FetchSettings(max_partition_bytes=1_000, buffer_bytes=3_000, max_bytes=50_000)
    h = Harness(settings, partitions=30, leader=lambda number: 1 + number % 3).assign(*range(30))
    for turn in range(200):
        snapshot = h.core.snapshot()
        assert snapshot.reserved_bytes == sum(h.open[n].intent.max_bytes for n in h.open)
        assert snapshot.buffered_bytes + snapshot.reserved_bytes <= 3_000 + 3 * 1_000
        if not h.open:
            break
        node = sorted(h.open)[turn % len(h.open)]
        first = next(iter(h.sessions[node]))
        offset = h.sessions[node][first].offset
        h.answer({first[1]: data(offset, size=900)}, node=node)
    assert not h.open
    assert h.core.snapshot().reserved_bytes == 0
    h.read()
    assert len(h.open) == 3


def test_an_answer_gives_its_reservation_back() -> None:
    h = Harness().assign(0)
    reserved = h.core.snapshot().reserved_bytes
    assert reserved == h.fetch().intent.max_bytes == h.settings.max_partition_bytes
    h.lose()
    assert h.core.snapshot().reserved_bytes == 0


def test_a_broker_gets_its_share_of_the_budget() -> None:
    settings = FetchSettings(max_bytes=50_000_000, buffer_bytes=30_000_000)
    h = Harness(settings, partitions=90, leader=lambda number: 1 + number % 3)
    h.answers_metadata = False
    h.assign(*range(90))
    h.learn(h.all(LearnLeaders)[-1])
    assert min(h.fetch(node).intent.max_bytes for node in (1, 2, 3)) > 3_000_000


def test_a_broker_of_which_nothing_is_buffered_is_asked_all_the_same() -> None:
    settings = FetchSettings(max_partition_bytes=1_000, buffer_bytes=2_000)
    h = Harness(settings, partitions=2, leader=lambda number: 1 + number).assign(0, 1)
    h.answer({0: data(0, size=5_000)}, node=1)
    h.answer({1: data(0, size=900)}, node=2)
    assert not h.open
    h.read()
    h.answer({0: data(1, size=5_000)}, node=1)
    h.answer(node=2)
    assert h.fetch(2).intent.max_bytes == 1, "one batch"


def test_a_partition_is_full_for_as_long_as_half_of_it_is_unread() -> None:
    h = Harness(FetchSettings(max_partition_bytes=1_000), partitions=2).assign(0, 1)
    for offset in range(3):
        h.answer({0: data(offset, size=900)})
    h.advance(HOLD_MS)
    h.answer()
    assert h.asked() == {1: 0}
    for expected in ({1: 0}, {0: 3, 1: 0}):
        piece = h.core.next_slice()
        assert piece is not None
        h.core.finish(piece)
        h.post(BufferRead())
        h.answer()
        assert h.asked() == expected


def full_beside_idle() -> Harness:
    """Partition 0 has just become full, and nothing comes for partition 1."""
    h = Harness(FetchSettings(max_partition_bytes=1_000), partitions=2).assign(0, 1)
    for offset in range(3):
        h.answer({0: data(offset, size=900)})
    return h


def test_who_reads_a_full_partition_does_not_wait_for_an_idle_one() -> None:
    """A request for the idle one alone would wait at the broker long after the full one was read:
    a consumer that is a little slower than its broker would get 2 MB in each 500 ms."""
    h = full_beside_idle()
    assert not h.open, "it is about to be read"
    h.advance(HOLD_MS - 10)
    assert not h.open
    h.read()
    assert h.asked() == {0: 3, 1: 0}
    assert h.fetch().intent.max_wait_ms == 500


def test_who_does_not_read_a_full_partition_gets_the_others() -> None:
    h = full_beside_idle()
    h.advance(HOLD_MS)
    waits: list[int] = []
    for _ in range(6):
        waits.append(h.fetch().intent.max_wait_ms)
        assert h.asked() == {1: 0}
        h.answer()
    assert waits == [100, 200, 400, 500, 500, 500], "no longer than it was full"
    h.answer({1: data(0)})
    assert h.open


def test_a_full_partition_that_is_paused_holds_nobody_back() -> None:
    h = full_beside_idle()
    h.post(Paused((tp(0),)))
    assert h.asked() == {1: 0}
    assert h.fetch().intent.max_wait_ms == 500


def test_min_bytes_do_not_exceed_what_may_come() -> None:
    h = Harness(FetchSettings(min_bytes=6_000, max_partition_bytes=100)).assign(0)
    assert h.fetch().intent.min_bytes == 100


# -- fairness ------------------------------------------------------------------------------------


def test_who_brought_data_is_served_last_in_a_new_session() -> None:
    h = Harness(partitions=3).assign(0, 1, 2)
    h.answer({0: data(0)})
    h.answer({1: data(0)})
    h.answer(error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert [each.partition for each in h.fetch().intent.add] == [2, 0, 1]


def test_no_partition_starves_where_answers_hold_one() -> None:
    """A broker without sessions serves the first partition of the request that has data."""
    h = Harness(partitions=5).assign(0, 1, 2, 3, 4)
    served = []
    for _ in range(20):
        first = h.fetch().intent.add[0]
        served.append(first.partition)
        h.answer({first.partition: data(first.offset)}, session_id=0)
        h.read()
    assert all(served.count(number) == 4 for number in range(5))


def test_no_topic_starves_behind_its_neighbour() -> None:
    """A broker without sessions has little room in its answers, and a topic that never ends."""
    h = Harness(partitions=2)
    h.cluster["u"] = Topic(tid(2), {0: (1, 5)})
    topics = {tp(0): tid(1), tp(1): tid(1), tp(0, "u"): tid(2)}
    h.post(AssignmentChanged(topics, frozenset()))
    h.post(Started(tuple(topics)))
    served = []
    for _ in range(8):
        first = h.fetch().intent.add[0]
        served.append(first.topic_id)
        records = data(first.offset)
        topic = 1 if first.topic_id == tid(1) else 2
        h.answer(None, row(first.partition, records, topic=topic), session_id=0)
        h.read()
    assert served.count(tid(2)) == 4


def test_brokers_take_turns_where_the_budget_is_enough_for_one() -> None:
    settings = FetchSettings(max_partition_bytes=1_000, buffer_bytes=2_700)
    h = Harness(settings, partitions=4, leader=lambda number: 1 + number % 2).assign(0, 1, 2, 3)
    h.answer({0: data(0, size=550)}, node=1)
    h.answer({1: data(0, size=550)}, node=2)
    h.post(Paused((tp(0), tp(1))))  # of each broker something stays in the buffer
    for node in tuple(h.open):
        h.answer(node=node)
    asked: list[int] = []
    for _ in range(8):
        (node,) = h.open
        asked.append(node)
        offset = h.asked(node)[node + 1]
        h.answer({node + 1: data(offset, size=900)}, node=node)
        h.read()
    assert asked.count(1) == asked.count(2), asked


# -- first waits ---------------------------------------------------------------------------------


def test_requests_are_short_while_partitions_wait_for_their_first() -> None:
    h = Harness(partitions=2)
    h.answers_offsets = False
    h.assign(0, 1)
    h.post(Sought(tp(0), 0))
    assert h.fetch().intent.max_wait_ms == FIRST_WAIT_MS
    h.post(Sought(tp(1), 0))
    h.answer()
    assert h.fetch().intent.max_wait_ms == 500
    assert h.asked() == {0: 0, 1: 0}


def test_a_partition_without_a_leader_does_not_keep_them_short() -> None:
    h = Harness(partitions=2, leader=lambda number: 1 if number else -1).assign(0, 1)
    assert h.fetch().intent.max_wait_ms == FIRST_WAIT_MS
    h.advance(10_000)
    h.answer({1: data(0)})
    assert h.fetch().intent.max_wait_ms == 500


def test_a_paused_partition_does_not_keep_them_short() -> None:
    h = Harness(partitions=2).assign(0)
    h.assign(0, 1)
    h.post(Paused((tp(1),)))
    h.post(Started((tp(1),)))
    h.answer({0: data(0)})
    assert h.fetch().intent.max_wait_ms == 500


def test_requests_are_short_while_a_position_is_checked() -> None:
    """What is out of range has another position in a moment, and idle partitions beside it."""
    h = Harness(partitions=2).assign(0, 1)
    h.answers_offsets = False
    h.answer()
    h.answer(None, row(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))
    assert h.asked() == {1: 0}
    assert h.fetch().intent.max_wait_ms == FIRST_WAIT_MS
