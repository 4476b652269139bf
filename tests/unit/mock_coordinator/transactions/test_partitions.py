"""Transactions in partitions: what may be written, and what readers get to see."""

from __future__ import annotations

import pytest

from kip848_client.core.wire.messages.fetch import FetchRequest, FetchRequestFetchPartition
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC
from tests.unit.mock_coordinator.transactions.transactions_harness import TOPIC, TransactionsHarness

OTHER_PRODUCER = 1000


def test_readers_wait_for_the_end_of_the_oldest_open_transaction() -> None:
    broker = TransactionsHarness()
    x, y = broker.begin("x"), broker.begin("y")
    assert broker.write("x", x, b"x1") == 0
    assert broker.write("y", y, b"y1") == 0
    broker.finish("y", y, commit=True)
    assert broker.list_offsets(TOPIC) == (0, 0, 0)
    assert broker.list_offsets(TOPIC, committed=False) == (0, 3, 0)
    assert broker.values() == []
    broker.finish("x", x, commit=True)
    assert broker.values() == [b"x1", b"y1"]
    assert broker.list_offsets(TOPIC) == (0, 4, 0)


@pytest.mark.parametrize("oldest_first", [True, False])
@pytest.mark.parametrize("commit", [True, False])
def test_what_is_stable_ends_where_the_oldest_of_three_open_transactions_begins(
    oldest_first: bool, commit: bool
) -> None:
    """However they end, and in whichever order."""
    broker = TransactionsHarness()
    producers = {name: broker.begin(name) for name in ("x", "y", "z")}
    begins: dict[str, int] = {}
    for name, producer in producers.items():
        begins[name] = broker.list_offsets(TOPIC, committed=False)[1]
        assert broker.write(name, producer, name.encode()) == 0
        assert broker.list_offsets(TOPIC)[1] == begins["x"]
    assert broker.write("x", producers["x"], b"more", sequence=1) == 0
    assert broker.list_offsets(TOPIC)[1] == begins["x"], "it has begun before"
    open_still = list(producers)
    for name in ("x", "y", "z") if oldest_first else ("z", "y", "x"):
        broker.finish(name, producers[name], commit=commit)
        open_still.remove(name)
        end = broker.list_offsets(TOPIC, committed=False)[1]
        expected = begins[open_still[0]] if open_still else end
        assert broker.list_offsets(TOPIC)[1] == expected
        assert broker.fetch(TOPIC)[2] == expected
    assert broker.values() == ([b"x", b"y", b"z", b"more"] if commit else [])


def test_a_time_is_not_found_in_what_is_not_committed() -> None:
    broker = TransactionsHarness()
    x = broker.begin("x")
    assert broker.write("x", x, b"x1") == 0
    assert broker.list_offsets(TOPIC, timestamp=0) == (0, -1, -1)
    assert broker.list_offsets(TOPIC, timestamp=0, committed=False) == (0, 0, 0)


def test_aborted_records_are_there_but_hidden() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    for value, commit in ((b"1", True), (b"2", False), (b"3", True)):
        assert broker.write("x", producer, value) == 0
        producer = broker.finish("x", producer, commit=commit)
    assert broker.values() == [b"1", b"3"]
    _, end, stable, _, aborted, batches = broker.fetch(TOPIC)
    assert (end, stable, aborted) == (6, 6, (("P1", 2),))
    assert [attributes for _, attributes, *_ in batches] == [16, 48] * 3
    assert broker.fetch(TOPIC, committed=False)[4] is None, "who reads all is told nothing"
    assert broker.fetch(TOPIC, offset=4)[4] == (), "past the marker nobody needs to know"
    assert len(broker.harness.broker.records(TOPIC)) == 3, "markers are no records"


def test_only_aborted_transactions_near_what_is_read_are_told() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    for _ in range(20):
        assert broker.write("x", producer, b"x" * 1000) == 0
        producer = broker.finish("x", producer, commit=False)
    request = broker.harness.fetch_request(
        FetchRequestFetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2000),
        isolation_level=1,
    )
    told = broker.harness.ask(request, 12).responses[0].partitions[0].aborted_transactions
    offsets = [each.first_offset for each in told]
    assert offsets[:2] == [0, 2]
    assert len(offsets) < 10


def test_a_fetch_that_waits_is_woken_by_the_marker() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    partition = FetchRequestFetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=1_000_000
    )
    request: FetchRequest = broker.harness.fetch_request(
        partition, topic=TOPIC, isolation_level=1, max_wait_ms=60_000, min_bytes=1
    )
    core = broker.harness.broker.core
    with pytest.raises(Exception, match="has no response yet"):
        broker.harness.ask(request, 12)
    assert core.parked_requests == 1
    assert broker.write("x", producer, b"2", sequence=1) == 0
    assert core.parked_requests == 1, "records of an open transaction are nothing to read"
    broker.finish("x", producer, commit=True)
    assert core.parked_requests == 0


def test_old_producers_must_add_partitions_first() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    message = "Partition was not added to the transaction"
    for version, code, text in ((9, 48, message), (10, 48, message), (11, 120, None)):
        answer = broker.produce("x", producer, 0, {(TOPIC, 0): [b"1"]}, version)
        assert answer == ((TOPIC, 0, code, -1, -1, text, ()),)
    assert broker.state() == "Empty"
    broker.add_partitions("x", producer, [(TOPIC, 0), (TOPIC, 1)])
    assert broker.write("x", producer, b"1", version=9) == 0
    assert broker.write("x", producer, b"1", partition=2, version=11) == 120


def test_nobody_asks_when_verification_is_off() -> None:
    broker = TransactionsHarness(transaction_partition_verification_enable="false")
    producer = broker.begin()
    assert broker.write("x", producer, b"1", version=11) == 0
    assert broker.state() == "Empty", "and so nothing was added"


def test_the_transaction_is_named_by_its_id() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    batch = {(TOPIC, 0): [b"1"]}
    assert broker.produce(None, producer, 0, batch)[0][2] == 53
    assert broker.produce("y", producer, 0, batch)[0][2] == 49
    assert broker.produce("", producer, 0, batch)[0][2] == 42
    assert broker.write("x", (producer[0] + OTHER_PRODUCER, 0), b"1") == 49


def test_within_a_transaction_everything_belongs_to_it() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    answer = broker.produce(None, producer, 1, {(TOPIC, 0): [b"2"]}, transactional=False)
    assert answer[0][2] == 48


def test_sequences_begin_anew_with_each_epoch() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    assert broker.write("x", producer, b"1", b"2") == 0
    assert broker.write("x", producer, b"1", b"2") == 0, "a retry"
    assert broker.write("x", producer, b"4", sequence=3) == 45
    assert broker.write("x", producer, b"3", sequence=2) == 0
    producer = broker.finish("x", producer, commit=True)
    assert broker.write("x", producer, b"4", sequence=3) == 45
    assert broker.write("x", producer, b"4") == 0
    assert broker.values() == [b"1", b"2", b"3"]


@pytest.mark.parametrize(("profile", "code"), [("4.0", 0), ("4.1", 45)])
def test_whom_a_partition_does_not_know_begins_at_zero(profile: str, code: int) -> None:
    broker = TransactionsHarness(profile=profile)
    assert broker.write("x", broker.begin(), b"1", sequence=7) == code


def test_what_was_asked_about_is_not_overtaken() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    stranger = (producer[0], producer[1] + 1)
    assert broker.write("x", stranger, b"late", sequence=0) == 47
    assert broker.write("x", producer, b"2", sequence=1) == 45
    assert broker.write("x", producer, b"1") == 0


def test_partitions_are_added_all_or_none() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    answer = broker.add_partitions("x", producer, [(TOPIC, 0), ("missing", 0)])
    assert answer == (0, (("", "missing", 0, 3), ("", TOPIC, 0, 55)))
    assert broker.state() == "Empty"
    assert broker.add_partitions("", producer, [(TOPIC, 0)])[1][0][3] == 42
    assert broker.add_partitions("y", producer, [(TOPIC, 0)])[1][0][3] == 49


def test_brokers_may_ask_for_several_transactions() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    places = [(TOPIC, 0), (TOPIC, 1)]
    assert broker.add_partitions("x", producer, places[:1], 5) == (0, (("x", TOPIC, 0, 0),))
    verified = broker.add_partitions("x", producer, places, 5, verify_only=True)
    assert verified == (0, (("x", TOPIC, 0, 0), ("x", TOPIC, 1, 120)))


def test_producers_of_a_partition() -> None:
    broker = TransactionsHarness(
        producer_id_expiration_ms="1000", producer_id_expiration_check_interval_ms="500"
    )
    x, y = broker.begin("x"), broker.begin("y")
    assert broker.write("x", x, b"1", b"2") == 0
    assert broker.write("y", y, b"3") == 0
    broker.finish("y", y, commit=True)
    assert broker.producers(TOPIC) == (0, None, (("P1", 0, 1, -1, 0), ("P2", 1, -1, 0, -1)))
    broker.advance(1000)
    assert broker.producers(TOPIC) == (0, None, (("P1", 0, 1, -1, 0),)), "open, so not forgotten"
    assert broker.producers(TOPIC, 9) == (3, None, ())
    assert broker.producers("missing")[0] == 3
    assert broker.producers("no such name")[0] == 17


def test_an_administrator_ends_a_hanging_transaction() -> None:
    broker = TransactionsHarness()
    broker.begin()
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    places = [(TOPIC, 0), ("missing", 0)]
    stale = (producer[0], producer[1] - 1)
    assert broker.write_markers(stale, places, commit=False) == (
        ("P1", (("missing", 0, 3), (TOPIC, 0, 47))),
    )
    assert broker.list_offsets(TOPIC) == (0, 0, 0)
    assert broker.write_markers(producer, places, commit=False)[0][1][1] == (TOPIC, 0, 0)
    assert broker.list_offsets(TOPIC) == (0, 2, 0)
    assert broker.values() == []
    again = broker.write_markers(producer, places[:1], commit=True, coordinator_epoch=-1)
    assert again[0][1] == ((TOPIC, 0, 52),), "a coordinator of the past"
    nobody = (producer[0], -1)
    assert broker.write_markers(nobody, places[:1], commit=True)[0][1] == ((TOPIC, 0, -1),)


def test_a_marker_of_version_2_is_not_for_a_transaction_of_its_own_epoch() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    place = [(TOPIC, 0)]

    def code(epoch: int, transaction_version: int) -> int:
        answer = broker.write_markers(
            (producer[0], epoch),
            place,
            commit=False,
            version=2,
            transaction_version=transaction_version,
        )
        found: int = answer[0][1][0][2]
        return found

    assert code(producer[1], -1) == -1
    assert code(producer[1], 2) == 47
    assert broker.list_offsets(TOPIC) == (0, 0, 0)
    assert code(producer[1] + 1, 2) == 0
    assert code(producer[1] + 1, 2) == 0, "nothing is open any more: a retry"
    assert broker.values() == []


def test_markers_for_groups() -> None:
    broker = TransactionsHarness(offsets_topic_num_partitions="1")
    producer = broker.begin()
    broker.txn_commit("x", producer, "g", {(TOPIC, 0): 5})
    assert broker.write_markers(producer, [(OFFSETS_TOPIC, 0)], commit=True)[0][1][0][2] == 0
    assert broker.offsets("g", [(TOPIC, 0)])[1][0][3] == 5


def test_a_deleted_topic_needs_no_marker() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    assert broker.write("x", producer, b"1") == 0
    broker.harness.broker.delete_topic(TOPIC)
    broker.finish("x", producer, commit=True)
    assert broker.state() == "CompleteCommit"
