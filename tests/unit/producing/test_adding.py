"""With transactions V2 one addition is under way at a time, and none while markers are written."""

from __future__ import annotations

from kip848_client._types import TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.producing import _commands as do
from kip848_client.producing import _events as ev
from kip848_client.producing._adding import ADDING_MS, GROUP, Adding
from kip848_client.producing._markers import PAUSE_MS, Markers
from kip848_client.producing._model import TransactionVersion
from tests.unit.producing._transactions import Harness

V2 = TransactionVersion.V2
ONE, TWO, THREE = (TopicPartition("t", number) for number in range(3))


def adding(now_ms: int = 1_000) -> Adding:
    made = Adding()
    made.settle(now_ms)
    made.begin(V2)
    return made


# -- one after the other -------------------------------------------------------------------------


def test_another_broker_waits_for_the_answer_and_the_same_one_does_not() -> None:
    a = adding()
    assert a.is_free(ONE, 1)
    a.sent(ONE, 1)
    assert a.is_free(ONE, 1)
    assert a.is_free(TWO, 1)
    assert a.due_ms() is None, "nobody waits"
    assert not a.is_free(THREE, 2)
    assert not a.is_free("group", GROUP)
    assert a.due_ms() == 1_000 + ADDING_MS
    a.answered(1_001, ONE)
    assert a.is_free(THREE, 2)


def test_two_additions_at_one_broker_are_both_waited_for() -> None:
    a = adding()
    a.sent(ONE, 1)
    a.sent(TWO, 1)
    a.answered(1_001, ONE)
    assert not a.is_free(THREE, 2)
    a.answered(1_001, TWO)
    assert a.is_free(THREE, 2)


def test_what_is_part_of_the_transaction_is_not_held_up() -> None:
    a = adding()
    a.sent(ONE, 1)
    a.answered(1_001, ONE)
    a.sent(TWO, 2)
    assert a.is_free(ONE, 1)
    a.sent(ONE, 1)
    assert not a.is_free(THREE, 1), "TWO is still being added"


def test_the_wait_has_an_end() -> None:
    a = adding()
    a.sent(ONE, 1)
    assert not a.is_free(TWO, 2)
    a.settle(1_000 + ADDING_MS - 1)
    assert not a.is_free(TWO, 2)
    a.settle(1_000 + ADDING_MS)
    assert a.due_ms() is None
    assert a.is_free(TWO, 2)
    a.sent(TWO, 2)
    assert not a.is_free(THREE, 3)
    assert a.is_free(ONE, 1), "it counts as added"


def test_each_transaction_begins_with_nothing() -> None:
    a = adding()
    a.sent(ONE, 1)
    a.begin(V2)
    assert a.is_free(TWO, 2)
    a.sent(TWO, 2)
    assert not a.is_free(ONE, 1)


def test_what_was_refused_is_added_again() -> None:
    a = adding()
    a.sent("group", GROUP)
    a.was_refused("group")
    assert a.is_free(ONE, 1)
    a.sent(ONE, 1)
    assert not a.is_free("group", GROUP)


def test_offsets_wait_for_the_partition_that_is_being_added_and_the_other_way_round() -> None:
    h = Harness(2).begun()
    h.record()
    offsets = h.offsets()
    assert not h.open
    h.written()
    h.asked(do.CommitOffsets)
    h.record(1)
    assert not h.batches.flying
    h.answer()
    assert h.is_done(offsets)
    assert h.batches.flying


def test_partitions_of_two_brokers_are_added_one_after_the_other() -> None:
    h = Harness(2).begun()
    h.record(0)
    h.record(1)
    assert [each.tp.partition for each in h.batches.flying] == [0]
    h.advance(ADDING_MS)
    assert [each.tp.partition for each in h.batches.flying] == [0, 1], "long enough"


def test_offsets_that_came_too_early_are_sent_again_soon() -> None:
    h = Harness(2).begun()
    offsets = h.offsets()
    times: list[int] = []
    for _ in range(4):
        h.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
        times.append(h.ms_until_asked())
    assert times == [2, 4, 8, 16]
    h.answer()
    assert h.is_done(offsets)


# -- the markers ---------------------------------------------------------------------------------


class Transactions:
    """One after the other, each added to as soon as that is allowed."""

    def __init__(self, usual_ms: int = 1) -> None:
        self.markers = Markers()
        self.usual_ms = usual_ms
        self.now = 1_000

    def run(self, count: int, took_ms: int, later_ms: int = 0) -> int:
        markers = self.markers
        for _ in range(count):
            markers.ended(self.now, self.usual_ms)
            self.now = markers.until_ms + later_ms
            markers.sent_first(self.now)
            self.now += took_ms
            markers.answered_first(self.now)
        return markers.pause_ms


def test_the_pause_is_longer_where_markers_take_longer() -> None:
    t = Transactions()
    assert t.run(1, 22) == PAUSE_MS, "one may be by chance"
    assert t.run(1, 22) == PAUSE_MS + 1
    assert t.run(2, 22) == PAUSE_MS + 2
    assert t.run(100, 22) == 10, "it has a limit"


def test_the_pause_is_shorter_where_they_are_always_written_in_time() -> None:
    t = Transactions()
    assert t.run(4, 22) == PAUSE_MS + 2
    assert t.run(15, 2) == PAUSE_MS + 2
    assert t.run(1, 2) == PAUSE_MS + 1
    assert t.run(100, 2) == PAUSE_MS, "it has a limit"


def test_now_and_then_one_too_early_is_cheaper_than_a_longer_pause() -> None:
    t = Transactions()
    for _ in range(10):
        t.run(15, 2)
        assert t.run(1, 25) == PAUSE_MS


def test_whoever_comes_later_tells_nothing_of_the_pause() -> None:
    t = Transactions()
    t.run(2, 22)
    assert t.run(100, 2, later_ms=5) == PAUSE_MS + 1


def test_a_slow_cluster_is_not_taken_for_markers() -> None:
    t = Transactions(usual_ms=25)
    assert t.run(100, 40) == PAUSE_MS
    assert t.run(2, 45) == PAUSE_MS + 1


def test_an_addition_without_an_answer_tells_nothing() -> None:
    markers = Markers()
    for now in range(100):
        markers.ended(now, 1)
        markers.sent_first(now)
    markers.answered_first(1_000_000)
    markers.answered_first(2_000_000)
    assert markers.pause_ms == PAUSE_MS


def test_the_producer_learns_how_long_it_has_to_wait() -> None:
    h = Harness(2).begun()
    waits: list[int] = []
    for number in range(6):
        h.record()
        h.advance(25)
        h.written()
        h.commit()
        h.answer()
        h.post(ev.BeginRequested(50 + number, h.now + 1_000))
        h.record()
        waits.append(h.ms_until(lambda: h.batches.flying))
        h.advance(25)
        h.written()
    assert waits[0] == PAUSE_MS
    assert waits[-1] > PAUSE_MS


def ended_and_begun(h: Harness) -> None:
    """The transaction is committed, and the next one is begun."""
    h.commit()
    h.answer()
    h.post(ev.BeginRequested(1_000 + h.ticket(), h.now + 1_000))


def pause_before_offsets(h: Harness, refusals: int = 0) -> int:
    """A transaction of offsets, which come too early so often; returns how long they waited."""
    h.offsets()
    pause_ms = h.ms_until_asked()
    for _ in range(refusals):
        h.answer(ErrorCode.CONCURRENT_TRANSACTIONS)
        h.ms_until_asked()
    h.answer()
    ended_and_begun(h)
    return pause_ms


def test_a_transaction_that_was_too_early_counts_once() -> None:
    """Two of 16 make the pause longer: these are the first and the last."""
    h = Harness(2).begun()
    pause_before_offsets(h, refusals=3)
    for _ in range(14):
        assert pause_before_offsets(h) == PAUSE_MS
    pause_before_offsets(h, refusals=1)
    assert pause_before_offsets(h) == PAUSE_MS + 1


def test_with_v1_what_is_slow_tells_nothing_of_markers() -> None:
    """Additions are requests of their own: what is written does not wait for them."""
    h = Harness(1).begun()
    for _ in range(6):
        h.record()
        assert h.ms_until_asked() <= PAUSE_MS
        h.answer()
        h.advance(25)
        h.written()
        h.offsets()
        h.answer()
        h.advance(25)
        h.answer()
        ended_and_begun(h)
    h.record()
    assert h.ms_until_asked() == PAUSE_MS


def test_what_was_lost_tells_nothing_of_markers() -> None:
    h = Harness(2).begun()
    for _ in range(3):
        h.record()
        h.ms_until(lambda: h.batches.flying)
        h.advance(25)
        h.batch_lost()
        h.written()
        ended_and_begun(h)
        h.offsets()
        assert h.ms_until_asked() == PAUSE_MS
        h.advance(25)
        h.lose()
        h.ms_until_asked()
        h.answer()
        ended_and_begun(h)
    h.record()
    assert h.ms_until(lambda: h.batches.flying) == PAUSE_MS
