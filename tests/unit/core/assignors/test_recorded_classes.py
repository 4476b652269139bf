"""Single computations recorded from Kafka's assignor classes, compared with every order in them.

``tests/vectors/assignor-classes.jsonl`` holds 60 random sequences that were played on the classes
of Kafka 4.0.2, 4.1.2, 4.2.1, 4.3.1 and 4.4.0 (Java 17) with one result: joins, leaves, subscription
changes, topics that grow or do not exist, static members, a change between the assignors, groups
declared heterogeneous although they are not. Beside the partitions they fix the order of the
members, and that of topics and partitions in the target assignment records.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client.core.assignors import (
    BUILTIN,
    NO_PARTITIONS,
    GroupSpec,
    MemberSpec,
    Partitions,
    SubscriptionType,
    TimelineOrder,
    TopicMetadata,
    member_order,
    string_set_order,
)
from kip848_client.core.types import MemberId, TopicId, format_topic_id, parse_topic_id

RECORDED: Final[list[dict[str, Any]]] = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "vectors" / "assignor-classes.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


class _Group:
    """The group of one recorded sequence."""

    def __init__(self, topics: dict[str, tuple[str, int]]) -> None:
        self.ids: dict[str, TopicId] = {
            name: parse_topic_id(id_) for name, (id_, _) in topics.items()
        }
        self.counts = {name: count for name, (_, count) in topics.items()}
        self.timeline = TimelineOrder()
        self.members: dict[str, dict[str, Any]] = {}
        self.targets: dict[str, Partitions] = {}

    def play(self, op: dict[str, Any]) -> dict[str, Any] | None:
        """Apply one operation; a computation gives what the record holds for it."""
        match op["op"]:
            case "remove":
                self.timeline.remove(op["m"])
                self.members.pop(op["m"], None)
                self.targets.pop(op["m"], None)
            case "partitions":
                self.counts[op["topic"]] = op["n"]
            case "put":
                for _ in range(op["times"]):
                    self.timeline.put(op["m"])
                self.members[op["m"]] = op
            case _:
                return self._compute(op)
        return None

    def _spec(self, member_id: str, member: dict[str, Any]) -> MemberSpec:
        names = string_set_order(member["names"])
        return MemberSpec(
            topic_ids=tuple(self.ids[name] for name in names if name in self.ids),
            target=self.targets.get(member_id, NO_PARTITIONS),
            instance_id=member.get("inst"),
            subscription_size=len(names),
        )

    def _compute(self, op: dict[str, Any]) -> dict[str, Any]:
        members = {**self.members, op["m"]: op} if "m" in op else self.members
        joining = MemberId(op["m"]) if "m" in op else None
        order = member_order(map(MemberId, self.timeline), joining=joining)
        group = GroupSpec(
            {member_id: self._spec(member_id, members[member_id]) for member_id in order},
            SubscriptionType(op["type"]),
        )
        topics = {id_: TopicMetadata(name, self.counts[name]) for name, id_ in self.ids.items()}
        result = BUILTIN[op["assignor"]].assign(group, topics)
        assert list(result.members) == order
        changed: dict[str, list[Any]] = {}
        for member_id, target in result.members.items():
            if member_id not in self.targets or target is not self.targets[member_id]:
                self.targets[member_id] = target
                changed[member_id] = [[format_topic_id(t), list(p)] for t, p in target.items()]
        return {"order": order, "changed": changed}


def test_the_records_cover_what_they_say() -> None:
    operations = [op for recorded in RECORDED for op in recorded["ops"]]
    assert len(RECORDED) == 60
    assert {op["assignor"] for op in operations if op["op"] == "compute"} == {"uniform", "range"}
    assert any("inst" in op for op in operations)
    assert any(op["op"] == "partitions" for op in operations)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded["id"])
def test_records_equal_kafkas(recorded: dict[str, Any]) -> None:
    group = _Group(recorded["topics"])
    results = [result for op in recorded["ops"] if (result := group.play(op)) is not None]
    assert len(results) == len(recorded["results"]) > 0
    for number, (mine, kafkas) in enumerate(zip(results, recorded["results"], strict=True)):
        assert mine["order"] == kafkas["order"], f"computation {number}"
        # as lists: the order of the records, and of what is in them, counts too
        assert list(mine["changed"].items()) == list(kafkas["changed"].items()), f"{number}"
