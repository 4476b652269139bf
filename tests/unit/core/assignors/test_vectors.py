"""The recorded sequences: every target after every step equals what Kafka's own classes computed.

``tests/vectors/coordinator-assignor.jsonl`` holds 80 sequences of joins, leaves and heartbeats with
random member and topic ids, recorded from Kafka 4.2 and the same on 4.3.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client.core.types import parse_topic_id
from tests.unit.core.assignors.replay import ReplayedGroup

VECTORS: Final[list[dict[str, Any]]] = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "vectors" / "coordinator-assignor.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


def test_all_recorded_sequences_are_here() -> None:
    assert len(VECTORS) == 80
    assert {vector["kind"] for vector in VECTORS} == {
        "uniform-homogeneous",
        "uniform-heterogeneous",
        "range",
    }


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_targets_equal_kafkas(vector: dict[str, Any]) -> None:
    group = ReplayedGroup(
        {
            name: (parse_topic_id(topic["id"]), topic["partitions"])
            for name, topic in vector["topics"].items()
        },
        assignor=vector["assignor"],
    )
    compared = 0
    for number, (step, expected) in enumerate(
        zip(vector["steps"], vector["targets"], strict=True), 1
    ):
        match step["op"]:
            case "join":
                group.join(step["member"], step["topics"], step.get("instance"))
            case "leave":
                group.leave(step["member"])
            case "heartbeat":
                group.heartbeat(step["member"])
            case unknown:
                pytest.fail(f"unknown step {unknown}")
        if expected is not None:
            assert group.shown() == expected, f"{vector['id']} step {number}: {step}"
            compared += 1
    assert compared > 0
