"""DeleteRecords, DescribeTopicPartitions, ElectLeaders and reassignments."""

from __future__ import annotations

from typing import Any

from mock_coordinator.batches import NewRecord, encode_batch
from mock_coordinator.core.release_line import ReleaseLine
from tests.contract.dialogues.step import Step, ask

__all__ = ["STEPS"]

_BATCH = encode_batch([NewRecord(b"value") for _ in range(5)], 1000)


def _created(name: str, partitions: int, **config: str) -> Step:
    configs = [{"name": key.replace("_", "."), "value": value} for key, value in config.items()]
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    return ask("CreateTopics", topics=[{**topic, "configs": configs}], timeout_ms=5000)


def _produced(name: str) -> Step:
    data = {"name": name, "partition_data": [{"index": 0, "records": _BATCH}]}
    return ask("Produce", 9, acks=-1, timeout_ms=5000, topic_data=[data])


def _deleted(name: str, *wanted: tuple[int, int], version: int | None = None) -> Step:
    partitions = [{"partition_index": index, "offset": offset} for index, offset in wanted]
    topics = [{"name": name, "partitions": partitions}]
    return ask("DeleteRecords", version, timeout_ms=1000, topics=topics)


def _pages(*names: str, **options: Any) -> Step:
    return ask("DescribeTopicPartitions", topics=[{"name": n} for n in names], **options)


def _cursor(name: str, partition: int) -> dict[str, Any]:
    return {"cursor": {"topic_name": name, "partition_index": partition}}


def _listed(timestamp: int) -> Step:
    partitions = [{"partition_index": 0, "timestamp": timestamp}]
    topics = [{"name": "a", "partitions": partitions}]
    return ask("ListOffsets", 7, replica_id=-1, topics=topics)


def _elected(*asked: tuple[str, list[int]], kind: int = 0, version: int | None = None) -> Step:
    wanted = [{"topic": name, "partitions": partitions} for name, partitions in asked]
    return ask(
        "ElectLeaders", version, timeout_ms=1000, topic_partitions=wanted, election_type=kind
    )


def _reassigned(name: str, *asked: tuple[int, list[int] | None], **options: Any) -> Step:
    partitions = [{"partition_index": index, "replicas": replicas} for index, replicas in asked]
    topics = [{"name": name, "partitions": partitions}]
    return ask("AlterPartitionReassignments", timeout_ms=1000, topics=topics, **options)


STEPS: list[Step] = [
    _created("a", 3),
    _created("b.c", 1),
    _created("kept", 1, cleanup_policy="compact"),
    _created("both", 1, cleanup_policy="compact,delete"),
    _produced("a"),
    _produced("a"),
    _produced("kept"),
    _produced("both"),
    _deleted("a", (0, 3)),
    _deleted("a", (0, 3)),
    _deleted("a", (0, 2)),
    _deleted("a", (0, 11)),
    _deleted("a", (0, -2)),
    _deleted("a", (7, 0)),
    _deleted("a", (0, 4), (1, 0), (2, -1)),
    _listed(-2),
    _listed(-1),
    _listed(0),
    _listed(1000),
    _listed(-3),
    _deleted("unknown", (0, 0)),
    _deleted("a", (0, -1), version=0),
    _listed(1000),
    _deleted("__consumer_offsets", (0, 0)),
    _deleted("b.c", (0, 0)),
    _deleted("kept", (0, 1)),
    _deleted("both", (0, 1)),
    _deleted("a", (0, 10), (0, 10)),
    _produced("a"),
    _listed(-2),
    _listed(1000),
    # pages of topics
    _pages("a", "b.c"),
    _pages(),
    _pages("unknown", "a"),
    _pages("a", "a"),
    _pages("a", "b.c", response_partition_limit=2),
    _pages("a", "b.c", response_partition_limit=0),
    _pages("a", "b.c", response_partition_limit=3),
    _pages("a", "aa", response_partition_limit=3),
    _pages("a", "aa", "b.c", response_partition_limit=4),
    _pages("a", response_partition_limit=3),
    _pages("a", response_partition_limit=-1),
    _pages(response_partition_limit=2),
    _pages("a", "b.c", **_cursor("a", 2)),
    _pages("a", "b.c", **_cursor("aa", 2)),
    _pages("a", "b.c", **_cursor("b.c", 0)),
    _pages("a", **_cursor("zz", 0)),
    _pages("b.c", **_cursor("a", 0)),
    _pages(**_cursor("b", 0)),
    _pages(**_cursor("b.c", -1)),
    _pages(**_cursor("a", 1), response_partition_limit=1),
    _pages("a", **_cursor("a", 9)),
    _pages("a", **_cursor("a", -1)),
    _pages(""),
    _pages("a b"),
    _pages("a", ""),
    _pages("__transaction_state"),
    # elections
    ask("ElectLeaders", timeout_ms=1000, topic_partitions=None),
    ask("ElectLeaders", timeout_ms=1000, topic_partitions=None, election_type=1),
    _elected(),
    _elected(("a", [0, 1, 7])),
    _elected(("unknown", [0])),
    _elected(("a", [0]), kind=1),
    _elected(("a", [0]), kind=7),
    _elected(("a", [0]), version=0),
    _elected(("a", [2, 1]), version=1),
    _elected(("a", [0, 0])),
    _elected(("a", [0]), ("a", [1])),
    # reassignments
    _reassigned("a", (0, [1])),
    _reassigned("a", (0, [2])),
    _reassigned("a", (0, [1, 2])),
    _reassigned("a", (0, [])),
    _reassigned("a", (0, [1, 1])),
    _reassigned("a", (0, None)),
    _reassigned("a", (7, [1])),
    _reassigned("a", (7, None)),
    _reassigned("unknown", (0, [1])),
    _reassigned("a", (0, [-1])),
    _reassigned("a", (0, [1]), (0, [1])),
    _reassigned("a", (1, [1]), (0, [3])),
    ask("AlterPartitionReassignments", timeout_ms=1000, topics=[]),
    _reassigned("a", (0, [1]), since=ReleaseLine(4, 1), allow_replication_factor_change=False),
    _reassigned("a", (0, [1, 2]), since=ReleaseLine(4, 1), allow_replication_factor_change=False),
    ask("ListPartitionReassignments", timeout_ms=1000, topics=None),
    ask("ListPartitionReassignments", timeout_ms=1000, topics=[]),
    ask(
        "ListPartitionReassignments",
        timeout_ms=1000,
        topics=[{"name": "a", "partition_indexes": [0, 9]}],
    ),
]
