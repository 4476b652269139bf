"""Elections and reassignments, on one broker and on three."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.plain_message import message
from tests.unit.mock_coordinator.nodes.cluster_at_hand import ClusterAtHand


def elect(hand: ClusterAtHand, *partitions: int, kind: int = 0) -> dict[int, int]:
    asked = [{"topic": "all", "partitions": partitions}] if partitions else None
    request = message("ElectLeaders", election_type=kind, topic_partitions=asked)
    results = hand.at(None, request).replica_election_results
    found = next(each for each in results if each.topic == "all")
    return {each.partition_id: each.error_code for each in found.partition_result}


def preferred(hand: ClusterAtHand, partition: int) -> int:
    broker = hand.cluster.core.broker
    return broker.partition_state(broker.catalog.topics["all"], partition).replicas[0]


def test_the_preferred_replica_is_elected_again() -> None:
    hand = ClusterAtHand()
    first = preferred(hand, 0)
    assert elect(hand, 0) == {0: 84}
    hand.cluster.move_leader("all", 0, hand.other(first))
    assert elect(hand, 0, kind=1) == {0: 84}, "an unclean election is for those without leader"
    assert elect(hand, 0, 1) == {0: 0, 1: 84}
    assert hand.leader("all", 0) == first
    assert elect(hand, 0) == {0: 84}


def test_an_election_of_everything_tells_what_it_changed() -> None:
    hand = ClusterAtHand()
    assert elect(hand) == {}
    for partition in (1, 4):
        hand.cluster.move_leader("all", partition, hand.other(preferred(hand, partition)))
    assert elect(hand) == {1: 0, 4: 0}
    assert [hand.leader("all", p) for p in (1, 4)] == [preferred(hand, p) for p in (1, 4)]


@pytest.mark.asyncio
async def test_a_broker_that_is_down_is_not_elected() -> None:
    hand = ClusterAtHand()
    await hand.cluster.stop_broker(preferred(hand, 0))
    assert elect(hand, 0) == {0: 80}


def reassign(
    hand: ClusterAtHand, topic: str, replicas: list[int], **options: Any
) -> tuple[int, str | None]:
    partitions = [{"partition_index": 0, "replicas": replicas}]
    topics = [{"name": topic, "partitions": partitions}]
    answer = hand.at(None, message("AlterPartitionReassignments", topics=topics, **options))
    result = answer.responses[0].partitions[0]
    return result.error_code, result.error_message


def test_a_partition_moves_to_other_brokers_with_its_records() -> None:
    hand = ClusterAtHand()
    old = hand.leader("one")
    hand.produce(old, "one")
    new = hand.other(old)
    assert reassign(hand, "one", [new]) == (0, None)
    assert hand.leader("one") == new
    broker = hand.cluster.core.broker
    state = broker.partition_state(broker.catalog.topics["one"], 0)
    assert (state.replicas, state.isr, state.leader_epoch) == ((new,), (new,), 1)
    assert hand.at(new, hand.fetch_request("one")).responses[0].partitions[0].records
    assert reassign(hand, "one", [new, old]) == (0, None)
    assert hand.leader("one") == new, "a leader that stays among the replicas stays leader"


@pytest.mark.asyncio
async def test_reassignments_that_are_refused() -> None:
    hand = ClusterAtHand()
    text = "The replication factor is changed from 1 to 2"
    assert reassign(hand, "one", [1, 2], allow_replication_factor_change=False) == (38, text)
    assert reassign(hand, "one", [9])[0] == 39
    gone = hand.other(hand.leader("one"))
    await hand.cluster.stop_broker(gone)
    assert reassign(hand, "one", [gone])[0] == 39
    assert hand.leader("one") != gone


@pytest.mark.parametrize("allowed", [False, True])
def test_who_reassigns_nothing_is_told_the_default(allowed: bool) -> None:
    hand = ClusterAtHand()
    request = message(
        "AlterPartitionReassignments", topics=[], allow_replication_factor_change=allowed
    )
    assert hand.at(None, request).allow_replication_factor_change is True
