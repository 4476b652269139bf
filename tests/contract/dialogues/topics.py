"""Topics that come and go: creation with all its refusals, growth, deletion by name and id, and
creation on first mention."""

from __future__ import annotations

from typing import Any

from mock_coordinator.batches import NewRecord, encode_batch
from mock_coordinator.core.release_line import ReleaseLine
from tests.contract.dialogues.step import FIRST_LINE, IdOf, Step, ask

__all__ = ["STEPS"]

_BATCH = encode_batch([NewRecord(b"value")], 1000)


def _topic(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": factor, **more}


def _placed(*replicas: tuple[int, list[int]]) -> list[dict[str, Any]]:
    return [{"partition_index": index, "broker_ids": nodes} for index, nodes in replicas]


def _create(
    *topics: dict[str, Any], dry: bool = False, version: int | None = None, timeout_ms: int = 5000
) -> Step:
    return ask("CreateTopics", version, topics=topics, timeout_ms=timeout_ms, validate_only=dry)


def _grow(
    name: str,
    count: int,
    *assignments: list[int],
    dry: bool = False,
    since: ReleaseLine = FIRST_LINE,
) -> Step:
    topic = {
        "name": name,
        "count": count,
        "assignments": [{"broker_ids": nodes} for nodes in assignments] or None,
    }
    return ask("CreatePartitions", since=since, topics=[topic], timeout_ms=5000, validate_only=dry)


def _delete(*states: dict[str, Any], version: int | None = None) -> Step:
    if version is not None and version < 6:
        names = [state["name"] for state in states]
        return ask("DeleteTopics", version, topic_names=names, timeout_ms=5000)
    return ask("DeleteTopics", version, topics=states, timeout_ms=5000)


def _metadata(*names: str, create: bool = True, version: int | None = None) -> Step:
    topics = [{"name": name} for name in names]
    options: dict[str, Any] = (
        {} if version is not None and version < 4 else {"allow_auto_topic_creation": create}
    )
    return ask("Metadata", version, topics=topics, **options)


def _by_id(topic: str) -> Step:
    return ask("Metadata", topics=[{"name": None, "topic_id": IdOf(topic)}])


def _produced(name: str) -> Step:
    data = {"name": name, "partition_data": [{"index": 0, "records": _BATCH}]}
    return ask("Produce", 9, acks=-1, timeout_ms=5000, topic_data=[data])


def _configs(*pairs: tuple[str, str | None]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in pairs]


STEPS: list[Step] = [
    _create(_topic("t1", 2)),
    _create(_topic("t1", 2)),
    _create(_topic("t2", -1, -1)),
    _create(_topic("t3", 0)),
    _create(_topic("t3", -2)),
    _create(_topic("t3", 1, 0)),
    _create(_topic("t3", 1, 2)),
    _create(_topic("t3", 1, -2)),
    _create(_topic("t3", 10_001)),
    _create(_topic("t3"), timeout_ms=0),
    _create(_topic("t3"), timeout_ms=-1),
    _create(_topic("t3"), _topic("t3")),
    _create(_topic("")),
    _create(_topic(".")),
    _create(_topic("a/b")),
    _create(_topic("x" * 250)),
    _create(_topic("under_score")),
    _create(_topic("under.score")),
    _create(_topic("dots.1"), _topic("dots_1")),
    _create(_topic("t3"), dry=True),
    _create(_topic("t1"), dry=True),
    _create(_topic("t3"), version=2),
    _create(_topic("t4"), version=5),
    _create(_topic("__share_group_state")),
    _create(_topic("t5", configs=_configs(("retention.ms", "x")))),
    _create(_topic("t5", configs=_configs(("retention.ms", "-2")))),
    _create(_topic("t5", configs=_configs(("nope", "1")))),
    _create(_topic("t5", configs=_configs(("retention.ms", None)))),
    _create(_topic("t5", configs=_configs(("cleanup.policy", "compact,nope")))),
    _create(_topic("t5", configs=_configs(("cleanup.policy", "")))),
    _create(_topic("t5", configs=_configs(("min.insync.replicas", "0")))),
    _create(_topic("t5", configs=_configs(("compression.type", "what")))),
    _create(_topic("t5", configs=_configs(("message.timestamp.type", "LogAppendTime")))),
    _create(_topic("t6", 1, 1, assignments=_placed((0, [1])))),
    _create(_topic("t6", -1, -1, assignments=_placed((0, [1]), (1, [1])))),
    _create(_topic("t7", -1, -1, assignments=_placed((0, [2])))),
    _create(_topic("t7", -1, -1, assignments=_placed((0, [])))),
    _create(_topic("t7", -1, -1, assignments=_placed((0, [1, 1])))),
    _create(_topic("t7", -1, -1, assignments=_placed((1, [1])))),
    _create(_topic("t7", -1, -1, assignments=_placed((0, [1]), (0, [1])))),
    _create(_topic("t7", 3, -1, assignments=_placed((0, [1])))),
    # growth
    _grow("t1", 4),
    _grow("t1", 4),
    _grow("t1", 3),
    _grow("t1", 0),
    _grow("t1", -1),
    _grow("unknown", 3),
    _grow("t1", 5, [1]),
    _grow("t1", 6, [1], [1]),
    _grow("t1", 6, [2]),
    _grow("t1", 6, []),
    _grow("t1", 6, [1, 1]),
    _grow("t1", 6, dry=True),
    _grow("t1", 20_000, since=ReleaseLine(4, 4)),  # older brokers refuse it and do it all the same
    ask(
        "CreatePartitions",
        topics=[{"name": "t1", "count": 9, "assignments": None}] * 2,
        timeout_ms=5000,
    ),
    _metadata("t1"),
    # deletion
    _by_id("t2"),
    _delete({"name": "t2", "topic_id": bytes(16)}),
    _delete({"name": "t2", "topic_id": bytes(16)}),
    _delete({"name": None, "topic_id": IdOf("t3")}),
    _delete({"name": None, "topic_id": b"0123456789abcdef"}),
    _delete({"name": None, "topic_id": bytes(16)}),
    _delete({"name": "t4", "topic_id": IdOf("t4")}),
    _delete({"name": "t4"}, {"name": "t4"}),
    _delete({"name": "t4"}, {"name": None, "topic_id": IdOf("t4")}),
    _delete({"name": "t4"}, {"name": "unknown"}),
    _delete({"name": "t6"}, version=1),
    _delete({"name": "t6"}, version=5),
    _create(_topic("t6", 3)),
    _by_id("t6"),
    _metadata("t6"),
    # creation on first mention
    _metadata("auto1"),
    _metadata("auto1"),
    _metadata("auto2", create=False),
    _metadata("auto2", create=False),
    _metadata("auto3", version=1),
    _metadata("auto3", version=1),
    _metadata("auto4", "auto5", "a/b", "auto.1", "auto_1"),
    _metadata("auto4", "auto5"),
    _metadata("auto.1", "auto_1"),
    _produced("never"),
    _metadata("never", create=False),
    _metadata("__share_group_state", create=False),
]
