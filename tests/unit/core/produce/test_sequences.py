"""Sequence numbers: a batch keeps its own for as long as a broker may have it, and order stays."""

from __future__ import annotations

import pytest

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._batches import Batch
from kip848_client.core.produce._model import NO_PRODUCER, Place, ProducerId, ProduceSettings
from kip848_client.core.produce._sequences import Sequences
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, DeliveryTimedOut
from tests.support.produced_batches import PlainBuilder
from tests.unit.core.produce._harness import Harness, tp

FIRST = ProducerId(7, 0)
AT_ONCE = ProduceSettings(linger_ms=0)
LAST = (1 << 31) - 1


def flying(records: int = 3) -> Harness:
    """Three batches on their way, one record each; the broker knows the producer."""
    h = Harness(AT_ONCE)
    h.send("zer")
    h.answer()
    for number in range(records):
        h.append(f"{number:03}")
    assert len(h.open) == records
    return h


def numbers(h: Harness) -> list[tuple[int, int, list[str]]]:
    """Epoch, first sequence and values of what is on its way."""
    found = [h.batch(request=each) for each in h.open]
    return [(each.producer.epoch, each.first, each.values) for each in found]


def test_no_batch_is_sent_before_there_is_a_producer_id() -> None:
    h = Harness(AT_ONCE, start=False)
    h.answers_ids = False
    h.want("t")
    h.append("one")
    asked = h.all(do.InitProducerId)
    assert [(each.node, each.transactional_id, each.producer) for each in asked] == [
        (None, None, NO_PRODUCER)
    ]
    assert not h.open
    h.give_id(asked[0])
    assert h.batch().producer == FIRST
    assert h.batch().first == 0


def test_the_id_is_asked_for_when_the_producer_starts() -> None:
    h = Harness(start=False)
    h.post(ev.StartRequested(4, h.now + 1_000))
    assert h.all(do.InitProducerId)
    assert h.tickets == [4]


def test_a_lost_question_for_the_id_is_repeated_with_pauses() -> None:
    h = Harness(start=False)
    h.answers_ids = False
    h.post(ev.StartRequested(4, h.now + 1_000))
    for pause in (100, 200, 400, 800, 1_000, 1_000):
        asked = h.all(do.InitProducerId)[-1]
        assert not h.post(ev.TxnLost(asked.number, "it broke", maybe_sent=True))
        assert not h.post(ev.TxnLost(asked.number, "again", maybe_sent=True))
        assert not h.advance(pause - 1)
        assert h.advance(1)


def test_how_long_the_id_has_been_waited_for_is_known() -> None:
    h = Harness(AT_ONCE, start=False)
    h.answers_ids = False
    begun_ms = h.now
    h.post(ev.StartRequested(4, h.now + 1_000))
    assert h.core.waits() == {}, "the first try is on its way"
    for _ in range(3):
        h.advance(1_000)
        h.post(ev.TxnLost(h.all(do.InitProducerId)[-1].number, "it broke", maybe_sent=True))
        assert h.core.waits()["a producer id"].since_ms == begun_ms
    h.advance(1_000)
    h.give_id(h.all(do.InitProducerId)[-1])
    assert h.core.waits() == {}


def test_who_may_not_be_idempotent_is_told_with_each_batch() -> None:
    h = Harness(AT_ONCE, start=False)
    h.answers_ids = False
    h.want("t")
    h.append("one")
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    asked = h.all(do.InitProducerId)[-1]
    h.post(ev.ProducerIdAnswered(asked.number, code, NO_PRODUCER))
    assert isinstance(h.failed[1], BrokerError)
    assert "IDEMPOTENT_WRITE" in str(h.failed[1])
    h.append("two")
    h.advance(100)
    h.give_id(h.all(do.InitProducerId)[-1])  # somebody has mended it
    h.answer()
    assert h.done.keys() == {2}


def test_without_idempotence_there_are_no_numbers() -> None:
    h = Harness(ProduceSettings(idempotent=False, acks=1))
    assert h.send("one").producer == NO_PRODUCER
    assert h.batch().first == -1
    assert not h.all(do.InitProducerId)


def test_until_the_first_batch_is_acknowledged_there_is_no_second_one() -> None:
    """A broker that does not know a producer takes any number from it first."""
    h = Harness(AT_ONCE)
    h.append("one")
    h.append("two")
    assert len(h.open) == 1
    h.answer()
    assert h.batch().values == ["two"]


def test_after_a_long_silence_the_first_batch_is_alone_again() -> None:
    """The broker may have forgotten the producer."""
    h = Harness(AT_ONCE)
    h.send("zer")
    h.answer()
    h.advance(599_999)
    h.want("t", ticket=3)  # it was forgotten meanwhile
    h.append("one")
    h.append("two")
    assert len(h.open) == 2
    h.answer()
    h.answer()
    h.advance(600_000)
    h.want("t", ticket=4)
    h.append("thr")
    h.append("fou")
    assert numbers(h) == [(0, 3, ["thr"])]


def test_numbers_follow_each_other() -> None:
    assert numbers(flying()) == [(0, 1, ["000"]), (0, 2, ["001"]), (0, 3, ["002"])]


def test_a_batch_keeps_its_numbers_and_its_place() -> None:
    h = flying()
    h.lose()
    h.answer()
    h.answer()
    assert h.done.keys() == {1, 3, 4}
    h.advance(100)
    assert numbers(h) == [(0, 1, ["000"])]
    h.answer()
    assert h.done.keys() == {1, 2, 3, 4}


def test_what_is_out_of_order_behind_an_earlier_batch_is_sent_after_it() -> None:
    h = flying()
    h.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
    h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    sent: list[tuple[int, int, list[str]]] = []
    while not h.failed and len(h.done) < 4:
        h.advance(1_000)
        sent += numbers(h)[:1]
        h.answer()
    assert sent == [(0, 1, ["000"]), (0, 2, ["001"]), (0, 3, ["002"])]
    assert not h.failed


def test_a_batch_that_the_broker_has_already_is_done_without_an_offset() -> None:
    h = flying(1)
    h.answer(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
    assert h.done[2] == Place(-1, -1)


@pytest.mark.parametrize(
    "code", [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID]
)
def test_a_broker_that_has_forgotten_us_gets_another_epoch(code: int) -> None:
    h = flying(2)
    h.answer(code)
    h.answer(code)
    h.advance(1_000)
    assert numbers(h) == [(1, 0, ["000"])]
    h.answer()
    assert numbers(h) == [(1, 1, ["001"])]
    h.answer()
    assert h.done.keys() == {1, 2, 3}
    assert len(h.all(do.InitProducerId)) == 1  # nobody else's numbers are in question


def lost(records: int) -> Harness:
    """So many batches, one record each, whose answers were all lost; the first is sent again."""
    h = flying(records)
    for _ in range(records):
        h.lose()
    h.advance(100)
    assert numbers(h) == [(0, 1, ["000"])]
    return h


def test_numbers_that_a_broker_may_have_are_not_used_again() -> None:
    """The broker may have written the batch and forgotten that: nobody can tell."""
    h = lost(1)
    h.append("new")
    h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    error = h.failed[2]
    assert isinstance(error, DeliveryTimedOut)
    assert error.maybe_written
    assert numbers(h) == [(1, 0, ["new"])]


def test_a_later_batch_that_the_broker_has_tells_of_those_before_it() -> None:
    """A broker that was restarted knows the last batch again, and refuses those before."""
    h = lost(3)
    h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert numbers(h) == [(0, 2, ["001"])]
    h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert numbers(h) == [(0, 3, ["002"])]
    assert h.done.keys() == {1}
    h.answer(base=44)
    assert h.done == {1: Place(10, -1), 2: Place(-1, -1), 3: Place(-1, -1), 4: Place(44, -1)}
    h.append("new")
    assert numbers(h) == [(0, 4, ["new"])]
    assert h.core.snapshot().unreported == 1


def test_where_no_later_batch_tells_all_of_them_fail() -> None:
    h = lost(3)
    h.append("new")
    for _ in range(3):
        assert not h.failed
        h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert list(h.failed) == [2, 3, 4]
    assert numbers(h) == [(1, 0, ["new"])]


def test_a_later_batch_that_was_acknowledged_tells_of_those_before_it() -> None:
    h = flying(2)
    h.lose()
    h.answer()
    h.advance(100)
    h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert h.done[2] == Place(-1, -1)
    h.append("new")
    assert numbers(h) == [(0, 3, ["new"])]


def test_a_batch_that_a_later_one_tells_of_does_not_expire() -> None:
    h = Harness(ProduceSettings(linger_ms=0, delivery_timeout_ms=1_000))
    h.send("zer")
    h.answer()
    h.append("one")
    h.append("two")
    h.answer(request=h.open[1])
    h.advance(1_000)
    assert h.done[2] == Place(-1, -1)
    h.lose()
    h.append("new")
    h.advance(1_000)
    assert not h.failed.keys() & {1, 2, 3}


def test_a_batch_that_waits_for_others_to_tell_may_expire() -> None:
    h = Harness(ProduceSettings(linger_ms=0, delivery_timeout_ms=1_000))
    h.send("zer")
    h.answer()
    h.append("one")
    h.append("two")
    h.lose()
    h.lose()
    h.advance(100)
    h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    h.advance(1_000)
    assert h.failed.keys() == {2, 3}
    h.lose()
    h.append("new")
    h.advance(200)
    assert numbers(h) == [(1, 0, ["new"])]


def test_a_batch_that_expires_on_its_way_makes_no_hole_if_it_arrives() -> None:
    h = Harness(ProduceSettings(linger_ms=0, delivery_timeout_ms=1_000))
    h.send("one")
    h.advance(1_000)
    error = h.failed[1]
    assert isinstance(error, DeliveryTimedOut)
    assert error.maybe_written
    h.append("two")
    assert len(h.open) == 1  # its answer decides
    h.answer()
    assert numbers(h) == [(0, 1, ["two"])]
    assert not h.done
    h.answer()
    assert h.done.keys() == {2}


def test_a_batch_that_expires_on_its_way_makes_a_hole_if_it_is_lost() -> None:
    h = Harness(ProduceSettings(linger_ms=0, delivery_timeout_ms=1_000))
    h.send("one")
    h.advance(1_000)
    h.append("two")
    h.lose()
    h.advance(100)
    assert numbers(h) == [(1, 0, ["two"])]


def test_a_refused_batch_leaves_a_hole_and_others_get_new_numbers() -> None:
    h = flying()
    h.answer(ErrorCode.INVALID_TIMESTAMP)
    assert isinstance(h.failed[2], BrokerError)
    h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    h.answer(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    h.advance(1_000)
    assert numbers(h) == [(1, 0, ["001"])]
    h.answer()
    h.advance(1_000)
    assert numbers(h) == [(1, 1, ["002"])]


def test_other_partitions_do_not_hear_of_a_hole() -> None:
    h = Harness(AT_ONCE, partitions=2)
    h.send("one", to=tp(0))
    h.send("two", to=tp(1))
    h.answer(ErrorCode.INVALID_TIMESTAMP)
    h.answer()
    h.send("thr", to=tp(1))
    assert h.batch(tp(1)).producer == FIRST
    assert h.batch(tp(1)).first == 1
    h.send("fou", to=tp(0))
    assert h.batch(tp(0)).producer == ProducerId(7, 1)


def test_another_producer_id_is_asked_for_where_a_broker_does_not_believe_ours() -> None:
    h = Harness(AT_ONCE, partitions=2)
    h.send("one")
    h.answer(ErrorCode.INVALID_PRODUCER_EPOCH)
    assert isinstance(h.failed[1], BrokerError)
    assert h.send("two").producer == ProducerId(8, 0)


def test_epochs_end_and_then_there_is_another_producer_id() -> None:
    h = Harness(AT_ONCE)
    h.send("one")
    h.core._accumulator.partitions[tp()].sequences.producer = ProducerId(7, (1 << 15) - 1)
    h.answer(ErrorCode.INVALID_TIMESTAMP)
    assert h.send("two").producer == ProducerId(8, 0)


def test_as_many_batches_are_on_their_way_as_a_broker_knows_again() -> None:
    h = Harness(ProduceSettings(linger_ms=0, in_flight_max=20))
    h.send("zer")
    h.answer()
    for number in range(9):
        h.append(f"{number:03}")
    assert len(h.open) == 5


def test_what_is_on_its_way_to_another_broker_is_not_overtaken() -> None:
    h = flying(1)
    h.topics["t"][1][0] = (2, 6)
    h.learn()
    h.append("new")
    assert [each.node for each in h.open] == [1]
    h.answer(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert [(each.node, h.batch(request=each).values) for each in h.open] == [
        (2, ["000"]),
        (2, ["new"]),
    ]


# -- the numbers themselves ----------------------------------------------------------------------


def _batch(number: int, records: int) -> Batch:
    builder = PlainBuilder(1_000)
    batch = Batch(number, (number,), tp(), builder, created_ms=0, deadline_ms=0, held_bytes=0)
    batch.records = records
    return batch


def _prepared(sequences: Sequences, number: int, records: int) -> int:
    batch = _batch(number, records)
    assert sequences.prepare(batch, [batch], FIRST, on_its_way=False)
    return batch.first_sequence


@pytest.mark.parametrize(
    ("before", "records", "after"),
    [(LAST, 1, 0), (LAST - 1, 1, LAST), (LAST - 1, 3, 1), (LAST, 5, 4)],
)
def test_after_the_last_number_comes_0(before: int, records: int, after: int) -> None:
    sequences = Sequences(alone=True)
    _prepared(sequences, 1, 1)
    sequences.next_number = before
    assert _prepared(sequences, 2, records) == before
    assert _prepared(sequences, 3, 1) == after


def test_parts_have_the_numbers_of_the_whole_even_across_the_end() -> None:
    sequences = Sequences(alone=True)
    _prepared(sequences, 1, 1)
    sequences.next_number = LAST
    whole = _batch(2, 4)
    assert sequences.prepare(whole, [whole], FIRST, on_its_way=False)
    parts = [_batch(3, 2), _batch(4, 2)]
    sequences.split(whole, parts)
    assert [each.first_sequence for each in parts] == [LAST, 1]
    assert sequences.next_number == 3


def test_in_a_transaction_the_coordinator_says_the_next_epoch() -> None:
    sequences = Sequences(alone=False)
    _prepared(sequences, 1, 1)
    sequences.broken = True
    batch = _batch(2, 1)
    assert not sequences.prepare(batch, [batch], FIRST, on_its_way=False)
    after = ProducerId(7, 4)
    assert not sequences.prepare(batch, [batch], after, on_its_way=True)
    assert sequences.prepare(batch, [batch], after, on_its_way=False)
    assert (batch.producer, batch.first_sequence) == (after, 0)
