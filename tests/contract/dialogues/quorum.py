"""The quorum, features, and brokers and controllers that are not there."""

from __future__ import annotations

from typing import Any

from tests.contract.dialogues.step import Step, ask

__all__ = ["STEPS"]

UPGRADE, SAFE, UNSAFE = 1, 2, 3


def _quorum(topic: str, *partitions: int, version: int | None = None) -> Step:
    asked = {"topic_name": topic, "partitions": [{"partition_index": p} for p in partitions]}
    return ask("DescribeQuorum", version, topics=[asked])


def _features(*updates: tuple[str, int, int], dry: bool = True, version: int | None = None) -> Step:
    listed = [
        {"feature": name, "max_version_level": level, "upgrade_type": kind}
        for name, level, kind in updates
    ]
    return ask(
        "UpdateFeatures", version, timeout_ms=1000, feature_updates=listed, validate_only=dry
    )


def _oldest(name: str, level: int, *, downgrade: bool) -> Step:
    update = {"feature": name, "max_version_level": level, "allow_downgrade": downgrade}
    return ask("UpdateFeatures", 0, timeout_ms=1000, feature_updates=[update])


_LISTENERS = [{"name": "CONTROLLER", "host": "localhost", "port": 1}]
_VOTER: dict[str, Any] = {"voter_id": 9, "voter_directory_id": b"1" * 16}

STEPS: list[Step] = [
    _quorum("__cluster_metadata", 0, version=0),
    _quorum("__cluster_metadata", 0, version=1),
    _quorum("__cluster_metadata", 0),
    _quorum("__cluster_metadata", 1),
    _quorum("__cluster_metadata", 0, 1),
    _quorum("__cluster_metadata"),
    _quorum("elsewhere", 0),
    _quorum("elsewhere", 0, version=1),
    ask("DescribeQuorum", topics=[]),
    _features(),
    _features(("group.version", 1, UPGRADE)),
    _features(("group.version", 1, UPGRADE), dry=False),
    _features(("group.version", 1, SAFE)),
    _features(("group.version", 0, UPGRADE)),
    _features(("group.version", 0, SAFE)),
    _features(("group.version", 0, UNSAFE)),
    _features(("group.version", 9, UPGRADE)),
    _features(("group.version", 1, 9)),
    _features(("group.version", 1, 0)),
    _features(("group.version", -1, UPGRADE)),
    _features(("group.version", 1, UPGRADE), ("group.version", 1, UPGRADE)),
    _features(("group.version", 1, UPGRADE), ("nope", 1, UPGRADE)),
    _features(("group.version", 1, UPGRADE), ("nope", 1, UPGRADE), version=1),
    _features(("group.version", 1, UPGRADE), version=1),
    _features(("nope", 1, UPGRADE)),
    _features(("nope", 0, UPGRADE)),
    _features(("nope", 0, SAFE)),
    _features(("", 1, UPGRADE)),
    _features(("transaction.version", 1, SAFE)),
    _features(("transaction.version", 1, UNSAFE)),
    _features(("kraft.version", 0, UPGRADE)),
    _features(("metadata.version", 7, UPGRADE)),
    _features(("metadata.version", 7, SAFE)),
    _features(("metadata.version", 7, UNSAFE)),
    _features(("metadata.version", 99, UPGRADE)),
    _features(("metadata.version", 0, SAFE)),
    _oldest("group.version", 1, downgrade=False),
    _oldest("group.version", 9, downgrade=False),
    ask("UnregisterBroker", broker_id=9),
    ask("AddRaftVoter", 0, cluster_id=None, timeout_ms=500, listeners=[], **_VOTER),
    ask("AddRaftVoter", 0, cluster_id=None, timeout_ms=500, listeners=_LISTENERS, **_VOTER),
    ask("AddRaftVoter", cluster_id="x", timeout_ms=500, listeners=[], **_VOTER),
    ask("RemoveRaftVoter", cluster_id=None, **_VOTER),
    ask("RemoveRaftVoter", cluster_id="x", **_VOTER),
    ask("UnregisterController", since="4.4", controller_id=9),
]
