"""Administrators' requests: no time to do it, things named twice, voters that cannot be."""

from __future__ import annotations

import time
from typing import Any, Final

from tests.support.odd_requests.talk import Talk

__all__ = ["alter_configs_oddly", "change_topics_oddly", "elect_oddly"]

_ID = b"\7" * 16
_TIMEOUTS = (1000, 0, -1)
_PATIENCE_S: Final = 20.0


def change_topics_oddly(talk: Talk) -> None:
    """CreateTopics, CreatePartitions and DeleteTopics, whose rows Kafka shuffles."""
    new = {"num_partitions": 1, "replication_factor": 1}
    for timeout in _TIMEOUTS:
        for version in talk.versions("CreateTopics", 2, 7):
            for what, names in (("nothing", []), ("some", ["", "two"]), ("twice", ["n", "n"])):
                topics = [{"name": name, **new} for name in names]
                within: dict[str, Any] = {"timeout_ms": timeout, "shuffled": True}
                talk.ask(f"{what} in {timeout}", "CreateTopics", version, topics=topics, **within)
        for version in talk.versions("CreatePartitions", 0, 3):
            for what, names in (("nothing", []), ("twice", ["two", "one", "no", "two", "no"])):
                topics = [{"name": name, "count": 3} for name in names]
                growing: dict[str, Any] = {"timeout_ms": timeout, "validate_only": True}
                name = f"{what} in {timeout}"
                talk.ask(name, "CreatePartitions", version, topics=topics, **growing)
        _delete_topics(talk, timeout)


def _delete_topics(talk: Talk, timeout: int) -> None:
    by_id: dict[str, Any] = {"name": None, "topic_id": _ID}
    malformed: list[dict[str, Any]] = [{"name": None}, {"name": "x", "topic_id": _ID}]
    lists: dict[str, list[dict[str, Any]]] = {
        "nothing": [],
        "unknown": [{"name": "no"}, by_id],
        "twice by name": [{"name": "no"}, {"name": "no"}],
        "twice by id": [by_id, by_id],
        "malformed": malformed,
        "malformed and unknown": [*malformed, {"name": "no"}],
        "many": [{"name": name} for name in ("nx", "", "no", "a b", "zz", "nx")],
    }
    within: dict[str, Any] = {"timeout_ms": timeout, "shuffled": True}
    for what, topics in lists.items():
        talk.ask(f"{what} in {timeout}", "DeleteTopics", 6, topics=topics, **within)
    for version in talk.versions("DeleteTopics", 1, 4, 5):
        names = ["nx", "", "no", "nx"]
        talk.ask(f"by name in {timeout}", "DeleteTopics", version, topic_names=names, **within)


def elect_oddly(talk: Talk) -> None:
    """ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments."""
    lists: dict[str, list[dict[str, Any]] | None] = {
        "all": None,
        "nothing": [],
        "no partitions": [{"topic": "two", "partitions": []}, {"topic": "no", "partitions": []}],
        "some": [{"topic": "two", "partitions": [0]}, {"topic": "no", "partitions": [0]}],
        "twice": [
            {"topic": "two", "partitions": [0, 1, 0, 7]},
            {"topic": "two", "partitions": [0]},
        ],
    }
    for what, topics in lists.items():
        for timeout in _TIMEOUTS:
            fields: dict[str, Any] = {"timeout_ms": timeout, "topic_partitions": topics}
            talk.ask(f"{what} in {timeout}", "ElectLeaders", 0, shuffled=True, **fields)
            for kind in (0, 1, 2, -1):
                fields["election_type"] = kind
                name = f"{what} by {kind} in {timeout}"
                talk.ask(name, "ElectLeaders", 2, shuffled=topics is None, **fields)
    _reassign(talk)


def _reassign(talk: Talk) -> None:
    stay = {"partition_index": 0, "replicas": [1]}
    two, no = {"name": "two", "partitions": [stay]}, {"name": "no", "partitions": [stay]}
    odd = [(0, None), (0, []), (0, [1, 1]), (0, [-1]), (0, [5]), (-1, [1]), (7, [1])]
    lists: dict[str, list[dict[str, Any]]] = {
        "nothing": [],
        "no partitions": [{"name": "two", "partitions": []}, {"name": "no", "partitions": []}],
        "twice": [{"name": "two", "partitions": [stay, stay]}, no, two],
        "impossible": [
            {
                "name": "two",
                "partitions": [{"partition_index": i, "replicas": where} for i, where in odd],
            }
        ],
    }
    for timeout in _TIMEOUTS:
        for version in talk.versions("AlterPartitionReassignments"):
            for what, topics in lists.items():
                fields: dict[str, Any] = {"timeout_ms": timeout, "topics": topics}
                talk.ask(f"{what} in {timeout}", "AlterPartitionReassignments", version, **fields)
        some = [{"name": name, "partition_indexes": [0, 0]} for name in ("two", "no", "two")]
        for topics_listed in (None, [], some):
            listing: dict[str, Any] = {"timeout_ms": timeout, "topics": topics_listed}
            talk.ask(f"in {timeout}", "ListPartitionReassignments", 0, **listing)


def alter_configs_oddly(talk: Talk) -> None:
    """AlterConfigs, IncrementalAlterConfigs and DescribeConfigs of one resource twice."""

    def topic(name: str, *values: str) -> dict[str, Any]:
        configs = [{"name": "retention.ms", "value": value} for value in values]
        return {"resource_type": 2, "resource_name": name, "configs": configs}

    seen = [
        {"resource_type": 2, "resource_name": n, "configuration_keys": ["retention.ms"]}
        for n in ("two", "one")
    ]
    talk.ask("nothing", "AlterConfigs", 2, resources=[])
    talk.ask("a key twice", "AlterConfigs", 2, resources=[topic("two", "7", "7")])
    twice = [topic("two", "7"), topic("one", "7"), topic("two")]
    talk.ask("twice", "AlterConfigs", 2, resources=twice, unanswered=True)
    _await_retention(talk, seen, "one", "7")
    talk.ask("after that", "DescribeConfigs", 4, resources=seen)
    unknown = [topic("no"), topic("no")]
    talk.ask("unknown twice", "AlterConfigs", 2, resources=unknown, unanswered=True)
    for version in talk.versions("IncrementalAlterConfigs"):
        for names in ([], ["two", "two"], ["two", "one", "two"]):
            resources = [topic(name, "8") for name in names]
            talk.ask(f"{names}", "IncrementalAlterConfigs", version, resources=resources)
        talk.ask(
            "a key twice", "IncrementalAlterConfigs", version, resources=[topic("two", "8", "8")]
        )
    _await_retention(talk, seen, "one", "8")
    talk.ask("after that", "DescribeConfigs", 4, resources=seen)
    talk.ask("twice", "DescribeConfigs", 4, resources=[*seen, *seen])
    key_twice = {**seen[0], "configuration_keys": ["retention.ms", "retention.ms"]}
    talk.ask("a key twice", "DescribeConfigs", 4, resources=[key_twice])


def _await_retention(talk: Talk, seen: list[dict[str, Any]], name: str, value: str) -> None:
    """A broker hears of changes from its controller, after whoever asked for them was answered."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        answer = talk.quietly("DescribeConfigs", 4, resources=seen)
        [found] = (each for each in answer.results if each.resource_name == name)
        if [config.value for config in found.configs] == [value]:
            break
        time.sleep(0.02)
