"""How records become batches, and when these are sent."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._model import Place, ProduceSettings
from kip848_client.core.produce._sender import BATCHES_A_STEP
from kip848_client.errors import ConfigError, DeliveryTimedOut, LocalProtocolError, RecordTooLarge
from tests.unit.core.produce._harness import Harness, batch_bytes, tp

SMALL = ProduceSettings(batch_bytes=batch_bytes(3), linger_ms=50)


def test_a_batch_lingers() -> None:
    h = Harness(ProduceSettings(linger_ms=50))
    h.append("one", "two")
    h.advance(49)
    assert not h.open
    h.append("thr")
    h.advance(1)
    assert h.batch().values == ["one", "two", "thr"]


def test_without_linger_a_batch_is_sent_at_once() -> None:
    h = Harness(ProduceSettings(linger_ms=0))
    h.append("one")
    assert h.batch().values == ["one"]


def test_a_full_batch_does_not_linger() -> None:
    h = Harness(SMALL)
    placed = h.append("one", "two", "thr", "fou")
    assert [(each.batch, each.row, each.notify) for each in placed] == [
        (1, 0, True),
        (1, 1, False),
        (1, 2, False),
        (2, 0, True),
    ]
    assert h.batch().values == ["one", "two", "thr"]


def test_a_batch_asks_for_no_step_while_another_one_lingers() -> None:
    """That one is due before, and its timer is set."""
    h = Harness(ProduceSettings(linger_ms=50), partitions=2)
    h.append("one", to=tp(0))
    h.advance(20)
    (placed,) = h.append("two", to=tp(1))
    assert not placed.notify
    h.advance(30)
    assert [each.tp for each in h.open[0].batches] == [tp(0)]
    h.advance(20)
    assert [each.tp for each in h.open[1].batches] == [tp(1)]


def test_the_end_of_a_batch_tells_where_it_is() -> None:
    h = Harness()
    h.send("one")
    h.answer(base=42, log_append_time_ms=7)
    assert h.done == {1: Place(42, 7)}
    assert h.core.snapshot().held_bytes == 0


def test_with_acks_0_the_request_is_all_there_is() -> None:
    h = Harness(ProduceSettings(acks=0, idempotent=False))
    h.send("one")
    assert h.open[0].acks == 0
    h.answer()
    assert h.done == {1: Place(-1, -1)}


def test_with_acks_0_a_lost_connection_is_told_and_not_tried_again() -> None:
    h = Harness(ProduceSettings(acks=0, idempotent=False))
    h.send("one")
    h.lose()
    error = h.failed[1]
    assert isinstance(error, DeliveryTimedOut)
    assert error.maybe_written
    h.advance(1_000)
    assert not h.open


def test_idempotence_needs_all_replicas() -> None:
    with pytest.raises(ConfigError, match="acks"):
        Harness(ProduceSettings(acks=1))
    with pytest.raises(ConfigError, match="transactional_id"):
        Harness(ProduceSettings(idempotent=False, transactional_id="x"))


@pytest.mark.parametrize("limits", [{"request_bytes": 300}, {"buffer_bytes": 300}])
def test_a_record_that_is_too_large_is_refused_and_nothing_is_changed(
    limits: dict[str, int],
) -> None:
    settings: dict[str, Any] = {"batch_bytes": 100, **limits}
    h = Harness(ProduceSettings(**settings))
    h.append("one")
    with pytest.raises(RecordTooLarge, match=r"t-0: .*300"):
        h.core.append(h.now, tp(), h.now, b"k", b"x" * 250, [("h", b"v")])
    h.advance(10)
    assert h.batch().values == ["one"]


def test_a_record_larger_than_a_batch_has_one_of_its_own() -> None:
    h = Harness(SMALL)
    h.append("one", "x" * 200, "y" * 30)
    sent: list[list[str]] = []
    for _ in range(3):
        h.advance(50)
        sent.append(h.batch(request=h.open[0]).values)
        h.answer()
    assert sent == [["one"], ["x" * 200], ["y" * 30]]


def test_there_is_no_room_beyond_the_budget_until_a_batch_has_ended() -> None:
    h = Harness(ProduceSettings(batch_bytes=500, buffer_bytes=1_000), partitions=3)
    h.append("one", to=tp(0))
    h.append("two", to=tp(1))
    assert h.try_append("thr", to=tp(2)) is None
    # what waits does not linger while somebody waits for room
    assert {each.tp for request in h.open for each in request.batches} >= {tp(0)}
    while h.open:
        h.answer()
    assert h.all(do.RoomMade)
    assert h.try_append("thr", to=tp(2)) is not None


def test_room_is_told_only_to_those_who_wait_for_it() -> None:
    h = Harness()
    h.send("one")
    h.answer()
    assert not h.all(do.RoomMade)


def test_a_batch_that_no_broker_takes_expires() -> None:
    h = Harness(ProduceSettings(delivery_timeout_ms=5_000))
    h.topics["t"][1][0] = (-1, 6)
    h.learn()
    h.append("one")
    h.advance(4_999)
    assert not h.failed
    h.advance(1)
    error = h.failed[1]
    assert isinstance(error, DeliveryTimedOut)
    assert not error.maybe_written
    assert "delivery_timeout_ms=5000" in str(error)
    assert h.core.snapshot().held_bytes == 0


def test_flush_does_not_linger_and_waits_for_the_end() -> None:
    h = Harness(ProduceSettings(linger_ms=10_000))
    h.append("one")
    h.post(ev.FlushRequested(9))
    assert h.batch().values == ["one"]
    assert 9 not in h.tickets
    h.append("two")
    h.answer()
    assert 9 in h.tickets  # what came later is not waited for


def test_flush_is_over_when_nothing_waits_and_also_where_a_batch_failed() -> None:
    h = Harness()
    h.post(ev.FlushRequested(8))
    assert 8 in h.tickets
    h.send("one")
    h.post(ev.FlushRequested(9))
    h.answer(-1)
    assert h.failed
    assert 9 in h.tickets


def test_who_gives_up_on_a_flush_is_not_told() -> None:
    h = Harness()
    h.send("one")
    h.post(ev.FlushRequested(9))
    h.post(ev.WaitEnded(9))
    h.answer()
    assert 9 not in h.tickets


def test_closing_sends_what_waits_and_takes_nothing_more() -> None:
    h = Harness(ProduceSettings(linger_ms=10_000))
    h.append("one")
    h.post(ev.CloseRequested(9, h.now + 1_000))
    with pytest.raises(LocalProtocolError, match="closed"):
        h.append("two")
    h.want("u", ticket=5)
    assert isinstance(h.refused[5], LocalProtocolError)
    h.answer()
    assert h.done.keys() == {1}
    assert h.tickets[-1] == 9
    assert h.core.deadline_ms is None
    assert h.post(ev.TimerFired()) == ()


def test_closing_has_a_deadline() -> None:
    h = Harness()
    h.send("one")
    h.post(ev.FlushRequested(8))
    h.post(ev.CloseRequested(9, h.now + 1_000))
    h.advance(1_000)
    error = h.failed[1]
    assert isinstance(error, DeliveryTimedOut)
    assert error.maybe_written
    assert h.tickets[-2:] == [8, 9]


def test_of_two_deadlines_of_closing_the_nearer_one_counts() -> None:
    for first_ms, second_ms in ((1_000, 300), (300, 1_000)):
        h = Harness()
        h.send("one")
        h.post(ev.CloseRequested(9, h.now + first_ms))
        h.post(ev.CloseRequested(10, h.now + second_ms))
        h.advance(299)
        assert not h.failed
        h.advance(1)
        assert isinstance(h.failed[1], DeliveryTimedOut)
        assert h.tickets[-2:] == [10, 9]


def test_a_request_is_not_larger_than_allowed_and_partitions_take_turns() -> None:
    settings = ProduceSettings(batch_bytes=batch_bytes(3), request_bytes=2 * batch_bytes(3))
    h = Harness(settings, partitions=3)
    for partition in range(3):
        h.send("aaa", to=tp(partition))
        h.answer()
    h.open.clear()
    for _ in range(6):
        for partition in range(3):
            h.core.append(h.now, tp(partition), h.now, None, b"xxx", ())
    h.post(ev.FlushRequested(9))
    asked = [[each.tp.partition for each in request.batches] for request in h.open]
    assert asked == [[0, 1], [2, 0], [1, 2]]


def test_a_step_compresses_so_much_and_the_next_one_follows_at_once() -> None:
    """Whoever drives the core has other things to do as well."""
    h = Harness(ProduceSettings(linger_ms=10), partitions=3 * BATCHES_A_STEP)
    for partition in range(3 * BATCHES_A_STEP):
        h.append("one", to=tp(partition))
    h.now += 10
    for turn in (1, 2, 3):
        h.post(ev.TimerFired())
        assert sum(len(each.batches) for each in h.open) == turn * BATCHES_A_STEP
        assert (h.core.deadline_ms == h.now) is (turn < 3)


def test_so_many_requests_are_open_to_a_broker_and_no_more() -> None:
    h = Harness(ProduceSettings(in_flight_max=2, linger_ms=0), partitions=4)
    for partition in range(4):
        h.append("one", to=tp(partition))
    assert len(h.open) == 2
    h.answer()
    assert [[each.tp for each in request.batches] for request in h.open] == [
        [tp(1)],
        [tp(2), tp(3)],
    ]


def test_each_broker_gets_what_it_leads() -> None:
    h = Harness(partitions=2, leader=lambda partition: partition + 1)
    h.append("one", to=tp(0))
    h.append("two", to=tp(1))
    h.advance(5)
    assert [(each.node, each.batches[0].tp) for each in h.open] == [(1, tp(0)), (2, tp(1))]
    assert h.open[0].batches[0].topic_id == h.topics["t"][0]
    assert h.open[0].timeout_ms == 30_000


def test_a_batch_that_nobody_takes_does_not_keep_others_in_memory() -> None:
    h = Harness(ProduceSettings(linger_ms=0), partitions=2, leader=lambda n: -1 if n else 1)
    h.append("one", to=tp(1))
    h.append("two")
    kept = weakref.ref(h.core._accumulator.partitions[tp()].flying[0].builder)
    h.answer()
    for _ in range(200):
        h.send("thr")
        h.answer()
    gc.collect()
    assert kept() is None
    assert h.core.snapshot().unreported == 1
