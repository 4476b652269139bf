"""Targets through the coordinator: the recorded sequences, settings, failures (votes: S47)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client.core.assignors import (
    Assignment,
    Assignor,
    AssignorError,
    GroupSpec,
    TopicMetadata,
)
from kip848_client.core.types import TopicId, parse_topic_id
from kip848_client.core.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kip848_client.errors import ConfigError
from tests.unit.mock_coordinator.groups._group_harness import GroupHarness, parts

VECTORS: Final[list[dict[str, Any]]] = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "vectors" / "coordinator-assignor.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def _described(harness: GroupHarness) -> str:
    response = harness.ask(ConsumerGroupDescribeRequest(group_ids=("g",)), 1)
    assert isinstance(response, ConsumerGroupDescribeResponse)
    return response.groups[0].assignor_name


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
@pytest.mark.parametrize("profile", ["4.2", "4.4"])
def test_the_recorded_targets(vector: dict[str, Any], profile: str) -> None:
    harness = GroupHarness(profile)
    for name, topic in vector["topics"].items():
        harness.create(name, topic["partitions"], id_=parse_topic_id(topic["id"]))
    vote = vector["assignor"]
    compared = 0
    for number, (step, expected) in enumerate(
        zip(vector["steps"], vector["targets"], strict=True), 1
    ):
        member = step["member"]
        if step["op"] == "join":
            inst = step.get("instance")
            answer = harness.join(member, step["topics"], assignor=vote, inst=inst)
        elif step["op"] == "leave":
            answer = harness.beat(member, -1)
        else:
            answer = harness.beat(member, harness.member(member).epoch)
        assert answer.error == 0
        if expected is not None:
            targets = {member: harness.target(member) for member in harness.group().members}
            wanted = {member: parts(**topics) for member, topics in expected.items()}
            assert targets == wanted, f"{vector['id']} step {number}: {step}"
            compared += 1
    assert compared > 0


def test_the_sequences_are_all_played() -> None:
    assert len(VECTORS) == 80


def test_the_default_is_the_first_configured_assignor() -> None:
    harness = GroupHarness(group_consumer_assignors="range,uniform")
    harness.join("A", ["foo", "bar"])
    harness.join("B", ["foo", "bar"])
    assert harness.target("A") == parts(foo=range(3), bar=[0, 1])
    assert _described(harness) == "range"
    assert harness.join("C", assignor="sticky").message == (
        "ServerAssignor sticky is not supported. Supported assignors: range, uniform."
    )


def test_assignors_may_be_configured_by_class_name() -> None:
    harness = GroupHarness(
        group_consumer_assignors="org.apache.kafka.coordinator.group.assignor.RangeAssignor"
    )
    harness.join("A")
    assert _described(harness) == "range"


def test_an_assignor_that_is_not_kafkas_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="known: uniform, range"):
        GroupHarness(group_consumer_assignors="com.example.Mine")


class _Broken(Assignor):
    """An assignor that cannot."""

    @property
    def name(self) -> str:
        return "uniform"

    def assign(self, group: GroupSpec, topics: Mapping[TopicId, TopicMetadata]) -> Assignment:
        raise AssignorError(f"no way for {len(group.members)} of {len(topics)}")


def test_a_failing_assignor_refuses_the_heartbeat_and_changes_nothing() -> None:
    harness = GroupHarness("4.4")
    harness.groups._env.assignors["uniform"] = _Broken()
    answer = harness.join("A")
    assert (answer.error, answer.message) == (-1, None)
    assert harness.groups.records == []
    assert harness.groups.group_ids == ()
