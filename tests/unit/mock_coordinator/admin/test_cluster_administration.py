"""Elections, reassignments, the quorum and features, on one broker and on three."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.profile import PROFILES
from tests.support.plain_message import message
from tests.unit.mock_coordinator.broker_at_hand import AtHand
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


def update(hand: AtHand, level: int, *, dry: bool, name: str = "group.version") -> tuple[int, str]:
    update = {"feature": name, "max_version_level": level, "upgrade_type": 2}
    answer = hand.ask(message("UpdateFeatures", feature_updates=[update], validate_only=dry), 2)
    return answer.error_code, answer.error_message or ""


@pytest.mark.parametrize("dry", [True, False])
@pytest.mark.parametrize("name", ["share.version", "streams.version"])
def test_features_that_are_not_implemented_are_not_even_promised(name: str, *, dry: bool) -> None:
    hand = AtHand()
    code, text = update(hand, 1, dry=dry, name=name)
    groups = name.partition(".")[0]
    assert code == ErrorCode.FEATURE_UPDATE_FAILED
    assert text.endswith(
        f"Invalid update version 1 for feature {name}. "
        f"This broker does not implement {groups} groups"
    )
    assert update(hand, 0, dry=dry, name=name) == (0, "")


@pytest.mark.parametrize("profile", PROFILES)
def test_features_are_checked_and_never_changed(profile: str) -> None:
    hand = AtHand(profile=profile)
    assert update(hand, 0, dry=True) == (0, "")
    assert update(hand, 1, dry=False) == (0, "")
    code, text = update(hand, 0, dry=False)
    assert code == ErrorCode.FEATURE_UPDATE_FAILED
    assert "cannot be changed" in text
    code, text = update(hand, 7, dry=True, name="metadata.version")
    assert code == ErrorCode.INVALID_UPDATE_VERSION
    assert ("downgrade from" in text) is (profile >= "4.2")


def test_the_quorum_is_the_broker_itself() -> None:
    hand = AtHand({"t": 1}, node_id="4")
    partitions = [{"partition_index": 0}]
    topics = [{"topic_name": "__cluster_metadata", "partitions": partitions}]
    for version in (0, 1, 2):
        answer = hand.ask(message("DescribeQuorum", topics=topics), version)
        found = answer.topics[0].partitions[0]
        assert found.error_code == 0
        assert found.leader_id == 4
        assert [voter.replica_id for voter in found.current_voters] == [4]
        assert len(answer.nodes) == (1 if version == 2 else 0)


def test_only_what_is_gone_could_be_unregistered() -> None:
    hand = AtHand()
    assert (
        hand.ask(message("UnregisterBroker", broker_id=9)).error_code
        == ErrorCode.BROKER_ID_NOT_REGISTERED
    )
    assert (
        hand.ask(message("UnregisterBroker", broker_id=1)).error_code == ErrorCode.INVALID_REQUEST
    )
    assert (
        hand.ask(message("UnregisterController", controller_id=9)).error_code
        == ErrorCode.CONTROLLER_ID_NOT_REGISTERED
    )


@pytest.mark.parametrize("allowed", [False, True])
def test_who_reassigns_nothing_is_told_the_default(allowed: bool) -> None:
    hand = ClusterAtHand()
    request = message(
        "AlterPartitionReassignments", topics=[], allow_replication_factor_change=allowed
    )
    assert hand.at(None, request).allow_replication_factor_change is True
