"""Elections and reassignments, on one broker and on three."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.plain_message import message
from tests.unit.mock_coordinator.nodes.cluster_harness import ClusterHarness


def elect(harness: ClusterHarness, *partitions: int, kind: int = 0) -> dict[int, int]:
    asked = [{"topic": "all", "partitions": partitions}] if partitions else None
    request = message("ElectLeaders", election_type=kind, topic_partitions=asked)
    results = harness.at(None, request).replica_election_results
    found = next(each for each in results if each.topic == "all")
    return {each.partition_id: each.error_code for each in found.partition_result}


def preferred(harness: ClusterHarness, partition: int) -> int:
    broker = harness.cluster.core.broker
    return broker.partition_state(broker.catalog.topics["all"], partition).replicas[0]


def test_the_preferred_replica_is_elected_again() -> None:
    harness = ClusterHarness()
    first = preferred(harness, 0)
    assert elect(harness, 0) == {0: 84}
    harness.cluster.move_leader("all", 0, harness.other(first))
    assert elect(harness, 0, kind=1) == {0: 84}, "an unclean election is for those without leader"
    assert elect(harness, 0, 1) == {0: 0, 1: 84}
    assert harness.leader("all", 0) == first
    assert elect(harness, 0) == {0: 84}


def test_an_election_of_everything_tells_what_it_changed() -> None:
    harness = ClusterHarness()
    assert elect(harness) == {}
    for partition in (1, 4):
        harness.cluster.move_leader("all", partition, harness.other(preferred(harness, partition)))
    assert elect(harness) == {1: 0, 4: 0}
    assert [harness.leader("all", p) for p in (1, 4)] == [preferred(harness, p) for p in (1, 4)]


@pytest.mark.asyncio
async def test_a_broker_that_is_down_is_not_elected() -> None:
    harness = ClusterHarness()
    await harness.cluster.stop_broker(preferred(harness, 0))
    assert elect(harness, 0) == {0: 80}


def reassign(
    harness: ClusterHarness, topic: str, replicas: list[int], **options: Any
) -> tuple[int, str | None]:
    partitions = [{"partition_index": 0, "replicas": replicas}]
    topics = [{"name": topic, "partitions": partitions}]
    answer = harness.at(None, message("AlterPartitionReassignments", topics=topics, **options))
    result = answer.responses[0].partitions[0]
    return result.error_code, result.error_message


def test_a_partition_moves_to_other_brokers_with_its_records() -> None:
    harness = ClusterHarness()
    old = harness.leader("one")
    harness.produce(old, "one")
    new = harness.other(old)
    assert reassign(harness, "one", [new]) == (0, None)
    assert harness.leader("one") == new
    broker = harness.cluster.core.broker
    state = broker.partition_state(broker.catalog.topics["one"], 0)
    assert (state.replicas, state.isr, state.leader_epoch) == ((new,), (new,), 1)
    assert harness.at(new, harness.fetch_request("one")).responses[0].partitions[0].records
    assert reassign(harness, "one", [new, old]) == (0, None)
    assert harness.leader("one") == new, "a leader that stays among the replicas stays leader"


@pytest.mark.asyncio
async def test_reassignments_that_are_refused() -> None:
    harness = ClusterHarness()
    text = "The replication factor is changed from 1 to 2"
    assert reassign(harness, "one", [1, 2], allow_replication_factor_change=False) == (38, text)
    assert reassign(harness, "one", [9])[0] == 39
    gone = harness.other(harness.leader("one"))
    await harness.cluster.stop_broker(gone)
    assert reassign(harness, "one", [gone])[0] == 39
    assert harness.leader("one") != gone


@pytest.mark.parametrize("allowed", [False, True])
def test_who_reassigns_nothing_is_told_the_default(allowed: bool) -> None:
    harness = ClusterHarness()
    request = message(
        "AlterPartitionReassignments", topics=[], allow_replication_factor_change=allowed
    )
    assert harness.at(None, request).allow_replication_factor_change is True
