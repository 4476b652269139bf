"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs of topics, brokers, groups, loggers."""

from __future__ import annotations

from mock_coordinator.core.release_line import ReleaseLine
from tests.contract.dialogues.step import Step, ask

__all__ = ["STEPS"]

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def _whole(kind: int, name: str, *configs: tuple[str, str | None], dry: bool = False) -> Step:
    given = [{"name": key, "value": value} for key, value in configs]
    resource = {"resource_type": kind, "resource_name": name, "configs": given}
    return ask("AlterConfigs", resources=[resource], validate_only=dry)


def _alter(kind: int, name: str, *configs: tuple[str, int, str | None], dry: bool = False) -> Step:
    given = [
        {"name": key, "config_operation": operation, "value": value}
        for key, operation, value in configs
    ]
    resource = {"resource_type": kind, "resource_name": name, "configs": given}
    return ask("IncrementalAlterConfigs", resources=[resource], validate_only=dry)


def _described(kind: int, name: str, *keys: str) -> Step:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    return ask("DescribeConfigs", resources=[resource], include_synonyms=True)


_OWN = ("retention.ms", "cleanup.policy", "segment.bytes", "max.message.bytes")

STEPS: list[Step] = [
    ask(
        "CreateTopics",
        topics=[{"name": "c", "num_partitions": 1, "replication_factor": 1}],
        timeout_ms=5000,
    ),
    _described(TOPIC, "c", *_OWN),
    _whole(TOPIC, "c", ("retention.ms", "1000"), ("segment.bytes", "2000000")),
    _described(TOPIC, "c", *_OWN),
    _whole(TOPIC, "c", ("cleanup.policy", "compact")),
    _described(TOPIC, "c", *_OWN),
    _whole(TOPIC, "unknown", ("cleanup.policy", "compact")),
    _whole(TOPIC, "c", ("nope", "1")),
    _whole(TOPIC, "c", ("retention.ms", None)),
    _whole(TOPIC, "c", ("retention.ms", "1"), ("retention.ms", "2")),
    _whole(TOPIC, "", ("retention.ms", "1")),
    _whole(TOPIC, "c", ("retention.ms", "5"), dry=True),
    _whole(TOPIC, "c"),
    _described(TOPIC, "c", *_OWN),
    _alter(TOPIC, "c", ("cleanup.policy", APPEND, "compact")),
    _alter(TOPIC, "c", ("cleanup.policy", SUBTRACT, "delete")),
    _alter(TOPIC, "c", ("cleanup.policy", SUBTRACT, "compact")),
    _alter(TOPIC, "c", ("retention.ms", APPEND, "1")),
    _alter(TOPIC, "c", ("retention.ms", 9, "1")),
    _alter(TOPIC, "c", ("nope", DELETE, None)),
    _alter(TOPIC, "c", ("retention.ms", SET, "7"), ("segment.ms", SET, "0")),
    _alter(TOPIC, "c", ("retention.ms", SET, "7"), ("segment.ms", SET, "8")),
    _described(TOPIC, "c", *_OWN, "segment.ms"),
    # brokers
    _whole(BROKER, "1", ("log.index.interval.bytes", "2")),
    _described(BROKER, "1", "log.index.interval.bytes", "num.io.threads"),
    _whole(BROKER, "1"),
    _described(BROKER, "1", "log.index.interval.bytes"),
    _whole(BROKER, "", ("log.index.interval.bytes", "2")),
    _alter(BROKER, "", ("log.index.interval.bytes", SET, "2")),
    _described(BROKER, "", "log.index.interval.bytes"),
    _alter(BROKER, "", ("log.index.interval.bytes", DELETE, None)),
    _alter(BROKER, "", ("min.insync.replicas", DELETE, None)),
    _alter(BROKER, "1", ("min.insync.replicas", SET, "1")),
    _alter(BROKER, "1", ("log.index.interval.bytes", SET, "x")),
    _alter(BROKER, "1", ("log.index.interval.bytes", SET, "-1")),
    _alter(BROKER, "1", ("message.max.bytes", SET, "99999")),
    _described(TOPIC, "c", "max.message.bytes"),
    _alter(BROKER, "1", ("message.max.bytes", DELETE, None)),
    _alter(BROKER, "1", ("no.such.setting", SET, "5")),
    _alter(BROKER, "1", ("no.such.setting", DELETE, None)),
    _whole(BROKER, "9", ("log.index.interval.bytes", "2")),
    _alter(BROKER, "9", ("log.index.interval.bytes", SET, "2")),
    _whole(BROKER, "1", ("node.id", "2")),
    _alter(BROKER, "1", ("node.id", SET, "2")),
    _whole(BROKER, "x", ("log.index.interval.bytes", "2")),
    # groups
    _alter(GROUP, "g1", ("consumer.session.timeout.ms", SET, "50000")),
    _described(GROUP, "g1", "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"),
    _whole(GROUP, "g1", ("consumer.heartbeat.interval.ms", "6000")),
    _described(GROUP, "g1", "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"),
    _whole(GROUP, "g1", ("nope", "6000")),
    _whole(GROUP, "", ("consumer.heartbeat.interval.ms", "6000")),
    ask("ListConfigResources", 1, ReleaseLine(4, 1), resource_types=[GROUP]),
    _whole(GROUP, "g1"),
    ask("ListConfigResources", 1, ReleaseLine(4, 1), resource_types=[GROUP]),
    # what is no such resource
    _whole(LOGGER, "1", ("root", "INFO")),
    _whole(99, "x", ("a", "b")),
    _alter(99, "x", ("a", SET, "b")),
    # loggers
    _described(LOGGER, "2"),
    _described(LOGGER, "x"),
    _described(LOGGER, ""),
    _alter(LOGGER, "2", ("root", SET, "DEBUG")),
    _alter(LOGGER, "", ("root", SET, "DEBUG")),
    _alter(LOGGER, "1", ("root", APPEND, "DEBUG")),
    _alter(LOGGER, "1", ("root", SET, None)),
    _alter(LOGGER, "1"),
]
