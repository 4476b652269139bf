"""How long the pause for markers becomes: it is learnt from first additions."""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode
from kip848_client.producing import _events as ev
from kip848_client.producing._markers import PAUSE_MS, Markers
from tests.unit.producing._transactions import Harness


class Transactions:
    """One after the other, each added to as soon as that is allowed."""

    def __init__(self, usual_ms: int = 1) -> None:
        self.markers = Markers()
        self.usual_ms = usual_ms
        self.now = 1_000
        self.early = 0

    def run(self, count: int, took_ms: int, later_ms: int = 0) -> int:
        markers = self.markers
        for _ in range(count):
            markers.ended(self.now, self.usual_ms)
            self.now = markers.until_ms + later_ms
            markers.sent_first(self.now)
            self.now += took_ms
            self.early += took_ms >= self.usual_ms + 20
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
    assert t.run(100, 2) == PAUSE_MS - 1, "it has a limit"


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
    assert t.run(100, 40) == PAUSE_MS - 1
    assert t.run(2, 45) == PAUSE_MS


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


def early(t: Transactions, count: int, needs_ms: int) -> int:
    """So many of these were too early, on a cluster whose markers take so long."""
    before = t.early
    for _ in range(count):
        t.run(1, 25 if t.markers.pause_ms < needs_ms else 2)
    return t.early - before


def test_what_was_too_little_is_tried_less_and_less_often() -> None:
    t = Transactions()
    assert early(t, 2 + 16 + 2 + 32 + 2 + 64 + 2, needs_ms=4) == 4 * 2
    assert [early(t, 128 + 2, needs_ms=4) for _ in range(10)] == [2] * 10


def test_what_became_enough_is_found() -> None:
    """The load has gone, and with it the reason to try seldom."""
    t = Transactions()
    early(t, 1_000, needs_ms=5)
    assert not early(t, 128 + 128 + 16, needs_ms=2)
    assert t.markers.pause_ms == PAUSE_MS - 1
