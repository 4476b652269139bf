"""Produce requests that lack something, or name something twice."""

from __future__ import annotations

import time
from typing import Any

from mock_coordinator.batches import NewRecord, encode_batch
from tests.support.odd_requests.talk import Talk

__all__ = ["produce_oddly"]


def produce_oddly(talk: Talk) -> None:
    """In versions with and without topic ids; and where each partition ends up."""
    batch = encode_batch([NewRecord(b"x")], int(time.time() * 1000))

    def part(index: int, records: bytes | None = batch) -> dict[str, Any]:
        return {"index": index, "records": records}

    requests: dict[str, list[tuple[str, list[dict[str, Any]]]]] = {
        "no topics": [],
        "no partitions": [("two", [])],
        "no partitions of one topic": [("two", []), ("one", [part(0)])],
        "no partitions of an unknown topic": [("no", [])],
        "empty records": [("two", [part(0, b"")])],
        "null for an unknown partition": [("two", [part(7, None)])],
        "null for an unknown topic": [("no", [part(0, None)])],
        "a partition twice": [("two", [part(1), part(1)])],
        "a partition twice, first badly": [("two", [part(1, b""), part(1)])],
        "a partition twice, then badly": [("two", [part(1), part(1, b"")])],
        "a topic twice": [("two", [part(1)]), ("one", [part(0)]), ("two", [part(0)])],
        "a topic twice for one partition": [("two", [part(1)]), ("two", [part(1)])],
        "an unknown topic twice": [("no", [part(1)]), ("two", [part(1)]), ("no", [part(1)])],
        "unknown partitions": [
            ("two", [part(7)]),
            ("one", []),
            ("two", [part(7), part(8), part(7)]),
        ],
        "six in all": [
            ("two", [part(7), part(1), part(0)]),
            ("one", [part(0), part(3)]),
            ("no", [part(0)]),
        ],
    }
    for version in talk.versions("Produce", 3, 12, 13):
        for acks in (-1, 0, 5):
            for what, topics in requests.items():
                _produce(talk, what, version, acks, topics)
    for acks in (-1, 0):
        null = [("two", [part(1), part(0, None)])]
        _produce(talk, "null records", 12, acks, null, unanswered=True)
    for acks in (-1, 1):
        _produce(talk, "too few replicas there can be", 12, acks, [("strict", [part(0)])])
    ends = [
        {"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]}
        for name in ("one", "two")
    ]
    talk.ask("what is there then", "ListOffsets", 9, replica_id=-1, topics=ends)


def _produce(
    talk: Talk,
    what: str,
    version: int,
    acks: int,
    topics: list[tuple[str, list[dict[str, Any]]]],
    *,
    unanswered: bool = False,
) -> None:
    data = [
        talk.topic(name, by_id=version >= 13, partition_data=parts)  # ids since version 13
        for name, parts in topics
    ]
    fields: dict[str, Any] = {"acks": acks, "timeout_ms": 900, "topic_data": data}
    talk.ask(f"{what}, acks {acks}", "Produce", version, unanswered=unanswered, **fields)
