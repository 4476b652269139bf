"""InitProducerId: epochs, fencing, and producers that go on after an error."""

from __future__ import annotations

import pytest

from mock_coordinator.core.transaction_coordinator.records import (
    TransactionMetadata,
    TransactionState,
)
from tests.unit.mock_coordinator.transactions.transactions_harness import TransactionsHarness

LAST_EPOCH = 32_766


def test_every_init_raises_the_epoch_and_fences_the_one_before() -> None:
    broker = TransactionsHarness()
    first = broker.begin()
    second = broker.begin()
    assert second == (first[0], first[1] + 1)
    assert broker.write("x", first, b"late") == 47
    assert broker.write("x", second, b"1") == 0
    assert broker.begin("y")[0] != first[0], "another transactional id is another producer"


@pytest.mark.parametrize(
    ("timeout_ms", "limit", "code"),
    [(1, "60000", 0), (60_000, "60000", 0), (60_001, "60000", 50), (0, "60000", 50)],
)
def test_the_time_out_has_bounds(timeout_ms: int, limit: str, code: int) -> None:
    broker = TransactionsHarness(transaction_max_timeout_ms=limit)
    assert broker.init("x", timeout_ms)[0][0] == code


def test_a_producer_that_names_itself_goes_on_and_may_ask_twice() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    _, after = broker.init("x", producer=producer)
    assert after == (producer[0], producer[1] + 1)
    assert broker.init("x", producer=producer)[1] == after, "the first answer was lost"
    broker.begin()
    assert broker.init("x", producer=after)[0][0] == 90, "somebody came in between"
    assert broker.init("x", producer=(producer[0] + 7, 0))[0][0] == 90
    assert broker.init("x", producer=after, version=3)[0][0] == 47, "in words that version 3 knows"


@pytest.mark.parametrize("producer", [(5, -1), (-1, 0)])
def test_half_a_name_is_none(producer: tuple[int, int]) -> None:
    assert TransactionsHarness().init("x", producer=producer)[0][0] == 42


def test_a_new_transactional_id_takes_nobodys_name_amiss() -> None:
    broker = TransactionsHarness()
    answer, producer = broker.init("x", producer=(999, 5))
    assert answer[0] == 0
    assert producer[1] == 0


def test_an_open_transaction_is_aborted_first() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    assert broker.init("x")[0][0] == 51
    assert broker.state() == "CompleteAbort"
    assert broker.begin() == (producer[0], producer[1] + 2), "one epoch was for the abort"
    assert broker.values() == []


def used_up(profile: str = "4.4") -> TransactionsHarness:
    """A broker with a producer that has only one epoch left."""
    broker = TransactionsHarness(profile=profile)
    producer_id = broker.begin("other")[0]
    value = TransactionMetadata(
        producer_id=producer_id + 100,
        producer_epoch=LAST_EPOCH - 1,
        timeout_ms=60_000,
        state=TransactionState.EMPTY,
        last_update_ms=0,
    )
    broker.put("x", value)
    broker.restart()
    return broker


def test_after_the_last_epoch_comes_another_producer_id() -> None:
    broker = used_up()
    producer = broker.begin()
    assert producer[1] == LAST_EPOCH
    _, after = broker.init("x", producer=producer)
    assert after[0] != producer[0]
    assert after[1] == 0
    assert broker.init("x", producer=producer)[1] == after, "whoever has not heard of it may ask"


@pytest.mark.parametrize("commit", [True, False])
def test_the_end_of_a_transaction_may_use_up_the_epochs(commit: bool) -> None:
    broker = used_up()
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    after = broker.finish("x", producer, commit=commit)
    assert after[0] != producer[0]
    assert after[1] == 0
    assert broker.finish("x", producer, commit=commit) == after, "asked again, said again"
    assert broker.values() == ([b"1"] if commit else [])
    assert broker.write("x", after, b"2") == 0
    broker.finish("x", after, commit=True)
    assert broker.values()[-1] == b"2"


@pytest.mark.parametrize(("profile", "epoch"), [("4.2", 0), ("4.3", 1)])
def test_fencing_may_use_up_the_epochs(profile: str, epoch: int) -> None:
    broker = used_up(profile)
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    assert broker.init("x")[0][0] == 51
    after = broker.begin()
    assert after[0] != producer[0]
    assert after[1] == epoch


def test_an_outdated_epoch_beside_the_last_one_is_not_foreseen() -> None:
    broker = used_up()
    producer = broker.begin()
    assert broker.init("x", producer=(producer[0], 5))[0][0] == -1


def test_who_asks_for_the_coordinator_makes_its_topic_visible() -> None:
    broker = TransactionsHarness()
    assert broker.find_coordinator("x") == (0, True)
