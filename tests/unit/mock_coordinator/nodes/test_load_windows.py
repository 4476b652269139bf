"""A coordinator that takes over has to load first: what it answers meanwhile, and what it does with
transactions that somebody else has left behind."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kip848_client.core.wire import api_named
from kip848_client.core.wire.messages.find_coordinator import FindCoordinatorRequest
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from mock_coordinator.core.transaction_coordinator.records import TransactionLog, TransactionState
from tests.support.raw_transactions import Producer, RawTransactions
from tests.unit.mock_coordinator.nodes.cluster_harness import ClusterHarness, join

LOADING, NOT_COORDINATOR, NOT_AVAILABLE = 14, 16, 15


class TransactionalHarness(ClusterHarness):
    """Three brokers and the requests of producers, to any of them (``node_id``; ``None``: to
    whichever it takes)."""

    def __init__(self, **config: str) -> None:
        super().__init__(config={name.replace("_", "."): v for name, v in config.items()})
        self.found("x")
        self.coordinator("g")  # so that offsets have a place, too
        topics = self.cluster.core.broker.catalog.topics
        self.ids = {name: topic.topic_id for name, topic in topics.items()}

    def raw(self, node_id: int | None = None) -> RawTransactions:
        at = self.at

        class Speaking:
            def request(self, message: Any, version: int) -> Any:
                return at(node_id, message, version)

            def close(self) -> None:
                """Nothing."""

        return RawTransactions(Speaking, dict(self.ids), self.clock)

    def found(self, name: str) -> Any:
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=(name,))
        return self.at(None, request, 4).coordinators[0]

    def begin(self, name: str = "x", timeout_ms: int = 60_000) -> Producer:
        answer, producer = self.raw().init(name, timeout_ms)
        assert answer[0] == 0
        return producer

    def write(self, name: str, producer: Producer, *, topic: str = "all", version: int = 12) -> Any:
        answer = self.raw().produce(name, producer, 0, {(topic, 0): [b"1"]}, version)
        return answer[0][2], answer[0][5]

    def state(self, name: str = "x") -> str:
        found = self.raw().describe(name)[0]
        return str(found[2] or found[1])

    def move(self, name: str = "x") -> tuple[int, int]:
        """Let another broker coordinate an id: the old one, and the new one."""
        old = self.cluster.transaction_coordinator_of(name)
        assert old is not None
        new = self.other(old)
        self.cluster.move_transaction_coordinator(name, new)
        return old, new

    def put(self, name: str, state: TransactionState) -> None:
        """Write another state into the log behind the broker's back."""
        disk = self.cluster.core.broker.disk
        stored = disk.transactions.records
        value = [r.value for r in stored if r.transactional_id == name][-1]
        assert value is not None
        disk.transactions.append(self.clock(), TransactionLog(name, replace(value, state=state)))


def codes(raw: RawTransactions, producer: Producer) -> list[int]:
    """What all requests about a transaction are told."""
    return [
        raw.init("x")[0][0],
        raw.add_partitions("x", producer, [("all", 0)], 3)[1][0][3],
        raw.add_offsets("x", producer, "g"),
        raw.end("x", producer, commit=True)[0][0],
        raw.describe("x")[0][1],
    ]


def test_a_moved_coordinator_loads_and_the_old_one_sends_clients_away() -> None:
    harness = TransactionalHarness()
    producer = harness.begin()
    assert harness.write("x", producer)[0] == 0
    harness.cluster.load_time_ms = 300
    old, new = harness.move()
    assert codes(harness.raw(old), producer) == [NOT_COORDINATOR] * 5
    assert codes(harness.raw(new), producer) == [LOADING] * 5
    assert harness.found("x").node_id == new
    assert harness.raw(new).list()[0] == LOADING
    assert harness.raw(old).list()[:1] == (0,)
    harness.cluster.advance(299)
    assert codes(harness.raw(new), producer) == [LOADING] * 5
    harness.cluster.advance(1)
    assert codes(harness.raw(old), producer) == [NOT_COORDINATOR] * 5
    assert harness.raw(new).describe("x")[0][2] == "Ongoing"
    assert harness.raw(new).end("x", producer, commit=True)[0][0] == 0
    assert harness.state() == "CompleteCommit"


def test_requests_that_make_no_sense_are_refused_before_anybody_looks_for_a_coordinator() -> None:
    harness = TransactionalHarness()
    harness.begin()
    harness.cluster.load_time_ms = 300
    harness.move()
    assert harness.raw().init("", 1000)[0][0] == 42
    assert harness.raw().init("x", 0)[0][0] == 50
    assert harness.raw().init(None)[0][0] == 0, "a producer without an id needs no coordinator"


@pytest.mark.parametrize("version", [11, 12])
def test_a_leader_that_cannot_ask_the_coordinator_lets_producers_try_again(version: int) -> None:
    harness = TransactionalHarness()
    producer = harness.begin()
    harness.cluster.load_time_ms = 300
    harness.move()
    text = "Unable to verify the partition has been added to the transaction. Underlying error: "
    assert harness.write("x", producer, version=version) == (
        19,
        text + "COORDINATOR_LOAD_IN_PROGRESS",
    )
    assert harness.raw().txn_commit("x", producer, "g", {("all", 0): 5})[0][2] == LOADING
    harness.cluster.advance(300)
    harness.cluster.load_time_ms = 0
    assert harness.write("x", producer)[0] == 0


@pytest.mark.asyncio
async def test_while_nobody_coordinates_an_id_nothing_is_written_in_its_transactions() -> None:
    harness = TransactionalHarness()
    producer = harness.begin()
    coordinator = harness.cluster.transaction_coordinator_of("x")
    assert coordinator is not None
    harness.cluster.move_leader("all", 0, harness.other(coordinator))
    await harness.cluster.crash_broker(coordinator, noticed_after_ms=5000)
    assert harness.cluster.transaction_coordinator_of("x") is None
    code, said = harness.write("x", producer)
    assert code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert said.endswith("Underlying error: COORDINATOR_NOT_AVAILABLE")
    assert harness.raw().init("x")[0][0] == NOT_COORDINATOR
    harness.cluster.advance(5000)
    assert harness.write("x", producer)[0] == 0, "somebody else coordinates it now"


@pytest.mark.parametrize("commit", [True, False])
def test_what_was_decided_is_carried_out_by_the_next_coordinator(commit: bool) -> None:
    harness = TransactionalHarness()
    producer = harness.begin()
    assert harness.write("x", producer)[0] == 0
    state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
    harness.put("x", state)
    harness.cluster.load_time_ms = 300
    harness.move()
    harness.cluster.advance(299)
    assert harness.raw().fetch("all")[2] == 0, "the last stable offset, before the load is done"
    harness.cluster.advance(1)
    assert harness.state() == ("CompleteCommit" if commit else "CompleteAbort")
    fetched = harness.raw().fetch("all")
    assert fetched[2] == 2
    assert len(fetched[4]) == (0 if commit else 1)
    marker = fetched[5][1]
    (kind, (_, epoch)) = marker[6][0]
    assert kind[1] == int(commit)
    assert epoch == 1, "the coordinator's epoch is the leader epoch of the id's partition"


def test_markers_of_offsets_have_the_coordinators_epoch_too() -> None:
    harness = TransactionalHarness()
    producer = harness.begin()
    for _ in range(2):
        harness.move()
    assert harness.raw().txn_commit("x", producer, "g", {("all", 0): 5})[0][2] == 0
    harness.raw().end("x", producer, commit=True)
    partition = harness.cluster.core.groups.partition_of("g")
    fetched = harness.raw().fetch(OFFSETS_TOPIC, partition)
    kind, (_, epoch) = fetched[5][-1][6][0]
    assert (kind[1], epoch) == (1, 2)
    after = (producer[0], producer[1] + 1)
    stale = harness.raw().write_markers(
        after, [(OFFSETS_TOPIC, partition)], commit=False, coordinator_epoch=1
    )
    assert stale[0][1][0][2] == 52


def test_an_open_transaction_that_is_too_old_is_aborted_after_the_load() -> None:
    harness = TransactionalHarness(
        transaction_abort_timed_out_transaction_cleanup_interval_ms="100"
    )
    producer = harness.begin(timeout_ms=1000)
    assert harness.write("x", producer)[0] == 0
    harness.cluster.advance(900)
    harness.cluster.load_time_ms = 5000
    harness.move()
    harness.cluster.advance(4999)
    assert harness.raw().fetch("all")[2] == 0
    harness.cluster.advance(101)
    assert harness.state() == "CompleteAbort"


@pytest.mark.asyncio
async def test_a_partition_without_a_leader_gets_its_marker_when_it_has_one() -> None:
    harness = TransactionalHarness()
    producer = harness.begin()
    leader = harness.leader("one")
    harness.cluster.move_transaction_coordinator("x", harness.other(leader))
    assert harness.write("x", producer, topic="one")[0] == 0
    assert harness.raw().add_partitions("x", producer, [("all", 1)], 3)[0] == 0
    await harness.cluster.stop_broker(leader)
    answer, after = harness.raw().end("x", producer, commit=True)
    assert answer[0] == 0
    assert harness.state() == "PrepareCommit"
    assert harness.raw().fetch("all", 1)[1] == 1, "the others have their markers"
    assert harness.raw().init("x")[0][0] == 51
    assert harness.raw().end("x", producer, commit=True)[0][0] == 51
    code, said = harness.write("x", after, version=11)
    assert (code, said[-23:]) == (19, "CONCURRENT_TRANSACTIONS")
    assert harness.write("x", after)[0] == 51
    harness.cluster.advance(120_000)
    assert harness.state() == "PrepareCommit", "it does not time out"
    await harness.cluster.start_broker(leader)
    assert harness.state() == "CompleteCommit"
    assert harness.raw().fetch("one")[2] == 2
    assert harness.raw().init("x")[0][0] == 0


@pytest.mark.asyncio
async def test_markers_that_wait_are_the_business_of_whoever_coordinates() -> None:
    harness = TransactionalHarness()
    producer = harness.begin()
    leader = harness.leader("one")
    harness.cluster.move_transaction_coordinator("x", harness.other(leader))
    assert harness.write("x", producer, topic="one")[0] == 0
    await harness.cluster.stop_broker(leader)
    assert harness.raw().end("x", producer, commit=True)[0][0] == 0
    here = harness.cluster.transaction_coordinator_of("x")
    there = next(n.node_id for n in harness.cluster.nodes if n.up and n.node_id != here)
    harness.cluster.move_transaction_coordinator("x", there)
    assert harness.state() == "PrepareCommit"
    await harness.cluster.start_broker(leader)
    assert harness.state() == "CompleteCommit"
    assert harness.raw().fetch("one")[2] == 2


def test_a_restart_has_a_load_window_for_both_coordinators() -> None:
    harness = TransactionalHarness()
    producer = harness.begin()
    assert harness.write("x", producer)[0] == 0
    assert harness.at(None, join(), 1).error_code == 0
    harness.cluster.load_time_ms = 700
    harness.cluster.restart()
    assert harness.cluster.load_time_ms == 700
    assert harness.at(None, join("another"), 1).error_code == LOADING
    assert codes(harness.raw(), producer) == [LOADING] * 5
    harness.cluster.advance(699)
    assert codes(harness.raw(), producer) == [LOADING] * 5
    harness.cluster.advance(1)
    assert harness.at(None, join(epoch=2), 1).error_code == 0
    assert harness.at(None, join("another"), 1).error_code == 0
    assert harness.raw().end("x", producer, commit=True)[0][0] == 0
    assert harness.state() == "CompleteCommit"


def test_every_id_is_loaded_where_its_partition_goes() -> None:
    harness = TransactionalHarness()
    names = [f"id-{number}" for number in range(40)]
    for name in names:
        harness.begin(name)
    for name in names[::3]:
        harness.move(name)
    answer = harness.raw().list()
    assert [found[0] for found in answer[2]] == sorted(names)
    by_node = [harness.raw(node.node_id).list()[2] for node in harness.cluster.nodes]
    assert sorted(found[0] for part in by_node for found in part) == sorted(names)
    topic = harness.cluster.core.broker.catalog.topics[TRANSACTIONS_TOPIC]
    for name in names:
        place = harness.cluster.core.broker.disk.transactions.partition_of(name)
        leader = harness.cluster.core.broker.partition_state(topic, place).leader
        assert harness.found(name).node_id == leader


def test_describe_transactions_at_every_broker() -> None:
    harness = TransactionalHarness()
    harness.begin("a")
    request = api_named("DescribeTransactions").request(transactional_ids=("a", "missing"))
    here = harness.cluster.transaction_coordinator_of("a")
    for node in harness.cluster.nodes:
        found = harness.at(node.node_id, request, 0).transaction_states[0]
        assert found.error_code == (0 if node.node_id == here else NOT_COORDINATOR)
