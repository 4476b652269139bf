"""What administrators ask: topics, configurations, the cluster, users."""

from __future__ import annotations

from typing import Any, Final

from tests.support.security.prepared import (
    NAMES,
    Case,
    case,
    partitions,
)

__all__ = ["ADMINISTRATION_CASES"]

from tests.support.security.principals import Right

_RESOURCES: Final = [(2, "yes-a"), (2, "no-a"), (2, "no-missing"), (4, "1"), (32, "yes-group"),
             (32, "no-group")]  # fmt: skip
_DESCRIBED: Final = [
    {"resource_type": kind, "resource_name": name, "configuration_keys": ("retention.ms",)}
    for kind, name in _RESOURCES
]
_CHANGES: Final = {2: ("retention.ms", "604800000"), 4: ("log.cleaner.threads", "1"),
           32: ("consumer.session.timeout.ms", "45000"), 8: ("root", "INFO")}  # fmt: skip


def _altered(*, old: bool) -> dict[str, Any]:
    each: dict[str, Any] = {} if old else {"config_operation": 0}
    return {
        "validate_only": True,
        "resources": [
            {
                "resource_type": kind,
                "resource_name": name,
                "configs": [{"name": _CHANGES[kind][0], "value": _CHANGES[kind][1], **each}],
            }
            for kind, name in _RESOURCES
        ],
    }


def _created(*names: str) -> dict[str, Any]:
    return {
        "timeout_ms": 5000,
        "validate_only": True,
        "topics": [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names],
    }


ADMINISTRATION_CASES: Final[tuple[Case, ...]] = (
    case("CreateTopics", 7, lambda _s, _w: _created("yes-new", "no-new", "yes-a", "no-a")),
    case("CreateTopics v4", 4, lambda _s, _w: _created("yes-new", "no-new")),
    case("CreateTopics cluster metadata", 7, lambda _s, _w: _created("__cluster_metadata")),
    case("CreateTopics twice", 7, lambda _s, _w: _created("no-twice", "no-twice", "yes-new")),
    case(
        "CreatePartitions",
        3,
        lambda _s, _w: {
            "timeout_ms": 5000,
            "validate_only": True,
            "topics": [{"name": name, "count": 5, "assignments": None} for name in NAMES],
        },
    ),
    case(
        "CreatePartitions twice",
        3,
        lambda _s, _w: {
            "timeout_ms": 5000,
            "validate_only": True,
            "topics": [
                {"name": name, "count": 5, "assignments": None}
                for name in ("no-a", "no-a", "yes-a")
            ],
        },
    ),
    case(
        "DescribeConfigs",
        4,
        lambda _s, _w: {"resources": _DESCRIBED},
    ),
    case("IncrementalAlterConfigs", 1, lambda _s, _w: _altered(old=False)),
    case("AlterConfigs", 2, lambda _s, _w: _altered(old=True)),
    case(
        "IncrementalAlterConfigs odd",
        1,
        lambda _s, _w: {
            "validate_only": True,
            "resources": [
                {"resource_type": 77, "resource_name": "x", "configs": []},
                {
                    "resource_type": 2,
                    "resource_name": "no-a",
                    "configs": [{"name": "a", "config_operation": 0, "value": None}],
                },
                {"resource_type": 2, "resource_name": "no-b", "configs": []},
                {"resource_type": 2, "resource_name": "no-b", "configs": []},
            ],
        },
    ),
    case(
        "DescribeConfigs odd",
        4,
        lambda _s, _w: {"resources": [{"resource_type": 77, "resource_name": "x"}]},
    ),
    case("ListConfigResources", 0, lambda _s, _w: {}),
    case("ListConfigResources groups", 1, lambda _s, _w: {"resource_types": (32,)}),
    case("DescribeCluster", 1, lambda _s, _w: {"include_cluster_authorized_operations": True}),
    case("DescribeCluster plain", 1, lambda _s, _w: {}),
    case(
        "DeleteRecords",
        2,
        lambda _s, _w: {
            "timeout_ms": 5000,
            "topics": [
                {"name": name, "partitions": partitions(partition_index=0, offset=0)}
                for name in NAMES
            ],
        },
    ),
    case(
        "ElectLeaders",
        2,
        lambda _s, _w: {
            "election_type": 0,
            "timeout_ms": 5000,
            "topic_partitions": [{"topic": "yes-a", "partitions": (0,)}],
        },
    ),
    case(
        "AlterPartitionReassignments",
        0,
        lambda _s, _w: {
            "timeout_ms": 5000,
            "topics": [
                {
                    "name": "yes-missing",
                    "partitions": partitions(partition_index=0, replicas=(1,)),
                }
            ],
        },
    ),
    case("ListPartitionReassignments", 0, lambda _s, _w: {"timeout_ms": 5000, "topics": None}),
    case("DescribeClientQuotas", 1, lambda _s, _w: {"components": (), "strict": False}),
    case(
        "AlterClientQuotas",
        1,
        lambda _s, _w: {
            "validate_only": True,
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "x"}],
                    "ops": [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}],
                }
            ],
        },
    ),
    case("DescribeUserScramCredentials", 0, lambda _s, _w: {"users": [{"name": "x"}]}),
    case(
        "AlterUserScramCredentials",
        0,
        lambda _s, _w: {"deletions": [{"name": "x", "mechanism": 1}], "upsertions": ()},
    ),
    case(
        "DescribeAcls",
        3,
        lambda _s, _w: {
            "resource_type_filter": 2,
            "resource_name_filter": None,
            "pattern_type_filter": 1,
            "principal_filter": "User:consumer",
            "host_filter": None,
            "operation": 1,
            "permission_type": 1,
        },
    ),
    case(
        "CreateAcls",
        3,
        lambda _s, _w: {
            "creations": [
                Right("TOPIC", "READ", "").acl("User:x"),
                {**Right("TOPIC", "READ").acl("User:x"), "host": ""},
            ]
        },
    ),
    case(
        "DeleteAcls",
        3,
        lambda _s, _w: {
            "filters": [
                {
                    "resource_type_filter": 2,
                    "resource_name_filter": "no-such",
                    "pattern_type_filter": 3,
                    "principal_filter": None,
                    "host_filter": None,
                    "operation": 1,
                    "permission_type": 1,
                }
            ]
        },
    ),
    case("SaslHandshake", 1, lambda _s, _w: {"mechanism": "PLAIN"}),
    case("SaslAuthenticate", 2, lambda _s, _w: {"auth_bytes": b"\0a\0b"}),
)
