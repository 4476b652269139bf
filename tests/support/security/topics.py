"""Metadata, fetching, looking up offsets, and what changes topics."""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.types import ZERO_TOPIC_ID
from tests.support.security.prepared import (
    BOTH,
    NAMES,
    UNKNOWN_ID,
    Case,
    Prepared,
    case,
    partitions,
)

__all__ = ["LAST_CASES", "TOPIC_CASES"]


def _fetch(topics: list[dict[str, Any]]) -> dict[str, Any]:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 0}
    return {
        "max_wait_ms": 0,
        "min_bytes": 0,
        "max_bytes": 1000,
        "session_epoch": -1,
        "topics": [{**topic, "partitions": [partition]} for topic in topics],
    }


_NAMED: Final = [{"name": name} for name in NAMES]


def _ids(prepared: Prepared, _who: str) -> dict[str, Any]:
    wanted = [prepared.ids["yes-a"], prepared.ids["no-a"], UNKNOWN_ID]
    return {
        "topics": [{"topic_id": each, "name": None} for each in wanted],
        "include_topic_authorized_operations": True,
    }


_EVERY: Final = {"topics": None, "include_topic_authorized_operations": True}
_QUIET: Final = {"allow_auto_topic_creation": False}
TOPIC_CASES: Final[tuple[Case, ...]] = (
    case("Metadata all", 12, lambda _s, _w: {**_EVERY, **_QUIET}),
    case("Metadata all v0", 0, lambda _s, _w: {"topics": ()}),
    case("Metadata none", 9, lambda _s, _w: {"topics": (), **_QUIET}),
    case("Metadata names", 12, lambda _s, _w: {"topics": _NAMED, **_QUIET}),
    case(
        "Metadata names with operations",
        10,
        lambda _s, _w: {
            "topics": _NAMED,
            "include_topic_authorized_operations": True,
            "include_cluster_authorized_operations": True,
            **_QUIET,
        },
    ),
    case("Metadata ids", 12, _ids),
    case(
        "DescribeTopicPartitions",
        0,
        lambda _s, _w: {"topics": _NAMED, "response_partition_limit": 2000, "cursor": None},
    ),
    case(
        "DescribeTopicPartitions all",
        0,
        lambda _s, _w: {"topics": (), "cursor": None, "response_partition_limit": 2000},
    ),
    case(
        "Fetch names",
        12,
        lambda _s, _w: _fetch([{"topic": name} for name in NAMES]),
    ),
    case("Fetch v4", 4, lambda _s, _w: _fetch([{"topic": name} for name in NAMES])),
    case(
        "Fetch ids",
        17,
        lambda prepared, _w: _fetch(
            [{"topic_id": prepared.ids[name]} for name in BOTH] + [{"topic_id": UNKNOWN_ID}]
        ),
    ),
    case(
        "ListOffsets",
        7,
        lambda _s, _w: {
            "replica_id": -1,
            "topics": [
                {"name": name, "partitions": partitions(partition_index=0, timestamp=-2)}
                for name in NAMES
            ],
        },
    ),
    case(
        "OffsetForLeaderEpoch",
        4,
        lambda _s, _w: {
            "replica_id": -2,
            "topics": [
                {"topic": name, "partitions": partitions(partition=0, leader_epoch=0)}
                for name in NAMES
            ],
        },
    ),
)


def _auto_created(_stage: Prepared, who: str) -> dict[str, Any]:
    names = (f"yes-auto-{who.replace('_', '-')}", f"no-auto-{who.replace('_', '-')}")
    return {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": True}


LAST_CASES: Final[tuple[Case, ...]] = (
    case(
        "DeleteTopics names",
        5,
        lambda _s, _w: {
            "timeout_ms": 5000,
            "topic_names": ("no-doomed", "yes-missing", "no-missing"),
        },
    ),
    case(
        "DeleteTopics twice",
        5,
        lambda _s, _w: {"timeout_ms": 5000, "topic_names": ("no-missing", "no-missing")},
    ),
    case(
        "DeleteTopics unknown ids",
        6,
        lambda _s, _w: {
            "timeout_ms": 5000,
            "topics": [{"name": None, "topic_id": UNKNOWN_ID}, {"name": "yes-missing"}],
        },
    ),
    case("Metadata that creates", 12, _auto_created),
    case(
        "DeleteTopics ids",
        6,
        lambda prepared, _w: {
            "timeout_ms": 5000,
            "topics": [
                {"name": None, "topic_id": prepared.ids["yes-a"]},
                {"name": None, "topic_id": prepared.ids["no-a"]},
                {"name": "yes-b", "topic_id": ZERO_TOPIC_ID},
            ],
        },
    ),
)
