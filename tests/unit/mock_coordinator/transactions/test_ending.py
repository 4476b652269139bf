"""EndTxn: which ends are accepted, which repeated, which refused."""

from __future__ import annotations

import pytest

from tests.unit.mock_coordinator.transactions.transactions_harness import TOPIC, TransactionsHarness


@pytest.mark.parametrize("version", [1, 3, 4])
def test_old_clients_keep_their_epoch(version: int) -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    broker.add_partitions("x", producer, [(TOPIC, 0)])
    assert broker.write("x", producer, b"1", version=11) == 0
    answer, after = broker.end("x", producer, commit=True, version=version)
    assert answer[0] == 0
    assert after == producer
    assert broker.end("x", producer, commit=True, version=version)[0][0] == 0, "again"
    assert broker.end("x", producer, commit=False, version=version)[0][0] == 48
    assert broker.values() == [b"1"]


def test_new_clients_get_another_epoch_with_every_end() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    after = broker.finish("x", producer, commit=True)
    assert after == (producer[0], producer[1] + 1)
    assert broker.finish("x", producer, commit=True) == after, "the first answer was lost"
    assert broker.end("x", producer, commit=False)[0][0] == 48
    assert broker.end("x", after, commit=True)[0][0] == 48, "nothing was begun"
    assert broker.write("x", producer, b"late") == 47


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_has_nothing_of_the_one_before(commit: bool) -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    for partition in (0, 1):
        assert broker.write("x", producer, b"1", partition=partition) == 0
    producer = broker.finish("x", producer, commit=commit)
    assert broker.describe("x")[0][-1] == ()
    ends = [broker.list_offsets(TOPIC, index, committed=False) for index in (0, 1)]
    assert broker.write("x", producer, b"2", partition=2) == 0
    assert broker.describe("x")[0][-1] == ((TOPIC, (2,)),)
    broker.finish("x", producer, commit=commit)
    after = [broker.list_offsets(TOPIC, index, committed=False) for index in (0, 1)]
    assert after == ends, "no marker where nothing was written"


def test_an_abort_of_nothing_gives_certainty() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    after = broker.finish("x", producer, commit=False)
    assert after == (producer[0], producer[1] + 1)
    assert broker.state() == "CompleteAbort"
    assert broker.end("x", after, commit=False, version=4)[0][0] == 0
    assert broker.end("x", after, commit=True, version=4)[0][0] == 48


@pytest.mark.parametrize(
    ("change", "code"),
    [((0, -1), 90), ((0, 1), 90), ((1, 0), 49)],
)
@pytest.mark.parametrize("version", [2, 5])
def test_strangers_end_nothing(change: tuple[int, int], code: int, version: int) -> None:
    broker = TransactionsHarness()
    broker.begin()
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    stranger = (producer[0] + change[0], producer[1] + change[1])
    assert broker.end("x", stranger, commit=True, version=version)[0][0] == code
    assert broker.state() == "Ongoing"


@pytest.mark.parametrize("version", [2, 5])
def test_there_must_be_a_transactional_id(version: int) -> None:
    broker = TransactionsHarness()
    assert broker.end("nobody", (0, 0), commit=True, version=version)[0][0] == 49
    assert broker.end("", (0, 0), commit=True, version=version)[0][0] == 42


def test_version_1_does_not_know_of_fencing() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    stale = (producer[0], producer[1] + 1)
    assert broker.end("x", stale, commit=True, version=1)[0][0] == 47
    assert broker.add_offsets("x", stale, "g", version=1) == 47
    assert broker.add_partitions("x", stale, [(TOPIC, 0)], version=1)[1][0][3] == 47


def test_looking_at_transactions() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    broker.begin("y")
    assert broker.write("x", producer, b"1", partition=2) == 0
    ((_, code, state, timeout_ms, started, _, epoch, topics),) = broker.describe("x")
    assert (code, state, timeout_ms, started, epoch) == (0, "Ongoing", 60_000, True, 0)
    assert topics == ((TOPIC, (2,)),)
    assert broker.state("nobody") == "105"
    assert broker.state("") == "42"

    def listed(**filters: object) -> list[str]:
        code, unknown, found = broker.list(**filters)  # type: ignore[arg-type]  # filters by name
        assert (code, unknown) == (0, ())
        return [name for name, _, _ in found]

    assert listed() == ["x", "y"]
    assert listed(states=("Ongoing",)) == ["x"]
    assert listed(producers=(producer[0],)) == ["x"]
    assert listed(version=2, transactional_id_pattern="y|z") == ["y"]
    broker.advance(1000)
    assert listed(duration_filter=999) == ["x", "y"], "what never began began long ago"
    assert listed(duration_filter=1000) == ["y"]
    assert broker.list(states=("Bogus",)) == (0, ("Bogus",), ())
    assert broker.list(version=2, transactional_id_pattern="(")[0] == 128
