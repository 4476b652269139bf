"""With transactions V2 one addition is under way at a time, and none while markers are written."""

from __future__ import annotations

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce._model import TransactionVersion
from kip848_client.core.produce._partition_additions import ADDING_MS, GROUP, PartitionAdditions
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode
from tests.unit.core.produce._transactions import Harness

V2 = TransactionVersion.V2
ONE, TWO, THREE = (TopicPartition("t", number) for number in range(3))


def adding(now_ms: int = 1_000) -> PartitionAdditions:
    made = PartitionAdditions()
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
    a.ended(ONE)
    assert a.is_free(THREE, 2)


def test_two_additions_at_one_broker_are_both_waited_for() -> None:
    a = adding()
    a.sent(ONE, 1)
    a.sent(TWO, 1)
    a.ended(ONE)
    assert not a.is_free(THREE, 2)
    a.ended(TWO)
    assert a.is_free(THREE, 2)


def test_what_is_part_of_the_transaction_is_not_held_up() -> None:
    a = adding()
    a.sent(ONE, 1)
    a.ended(ONE)
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
