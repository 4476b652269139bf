"""Fetch, ListOffsets, DeleteRecords and DescribeTopicPartitions with odd fields."""

from __future__ import annotations

import time
from typing import Any

from mock_coordinator.batches import NewRecord, encode_batch
from tests.support.odd_requests.talk import Talk

__all__ = ["describe_partitions_oddly", "fetch_oddly", "find_offsets_oddly"]

Parts = list[dict[str, Any]]


def fetch_oddly(talk: Talk) -> None:
    """Limits, isolation levels, replicas, sessions and offsets that cannot be."""
    batch = encode_batch([NewRecord(b"x" * 50)] * 3, int(time.time() * 1000))
    for name, count in (("two", 2), ("one", 1)):
        data = [{"index": index, "records": batch} for index in range(count)]
        topics = [{"name": name, "partition_data": data}]
        talk.quietly("Produce", 12, acks=1, timeout_ms=900, topic_data=topics)
    for version in talk.versions("Fetch", 4, 7, 12, 17):
        fetching = _Fetching(talk, version)
        fetching.lists()
        fetching.limits()
        fetching.isolation_levels()
        if version >= 7:
            fetching.sessions()
        if version >= 12:
            fetching.epochs()


def _part(index: int = 0, **fields: int) -> dict[str, Any]:
    return {"partition": index, "fetch_offset": 0, "partition_max_bytes": 1000, **fields}


class _Fetching:
    """Fetches of one version."""

    def __init__(self, talk: Talk, version: int) -> None:
        self._talk = talk
        self._version = version

    def _fetch(self, what: str, *topics: tuple[str, Parts], **fields: Any) -> None:
        named = [
            self._talk.topic(name, "topic", by_id=self._version >= 13, partitions=parts)
            for name, parts in topics
        ]
        usual: dict[str, Any] = {
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": 10_000,
            "topics": named,
        }
        self._talk.ask(what, "Fetch", self._version, **{**usual, **fields})

    def lists(self) -> None:
        self._fetch("nothing")
        self._fetch("no partitions", ("two", []), ("no", []))
        twice = ("two", [_part(), _part(fetch_offset=3)])
        no = ("no", [_part()])
        self._fetch("twice", twice, no, ("one", [_part()]), ("two", [_part(), _part(1)]), no)
        self._fetch("in another order", ("two", [_part(1), _part()]))

    def limits(self) -> None:
        for limit in (-1, 0, 1):
            for offset in (0, 1, 3, -1, 4):
                part = _part(partition_max_bytes=limit, fetch_offset=offset)
                where = f"{limit} bytes at {offset}"
                self._fetch(where, ("two", [part]))
                self._fetch(f"{where} after others", ("one", [_part()]), ("two", [part]))
            self._fetch(f"{limit} bytes in all", ("two", [_part(), _part(1)]), max_bytes=limit)
            self._fetch(
                f"at least {limit} bytes", ("two", [_part(fetch_offset=3)]), min_bytes=limit
            )

    def isolation_levels(self) -> None:
        for level in (2, -1):
            self._fetch(f"isolation {level}", ("no", [_part()]), isolation_level=level)
            both = [("no", [_part()]), ("two", [_part()])]
            self._fetch(f"isolation {level}, both", *both, isolation_level=level)
            self._fetch(f"isolation {level}, part", ("two", [_part(7)]), isolation_level=level)

    def sessions(self) -> None:
        for session in (-1, 0, 5):
            for epoch in (-1, 0, 1, -2, 2_147_483_647):
                ids = {"session_id": session, "session_epoch": epoch}
                self._fetch(f"session {session} {epoch}", ("two", [_part()]), **ids)
                self._fetch(f"session {session} {epoch}, nothing", **ids)

    def epochs(self) -> None:
        for replica in (-2, 1, 5):
            of_replica: dict[str, Any] = {"replica_id": replica}
            if self._version >= 15:
                of_replica = {"replica_state": {"replica_id": replica, "replica_epoch": -1}}
            for epoch in (-1, 0, 5, -2):
                parts = [_part(current_leader_epoch=epoch), _part(1, fetch_offset=99)]
                self._fetch(f"replica {replica} in {epoch}", ("two", parts), **of_replica)
        for epoch in (0, 5, -2):
            for offset in (0, 3, 99):
                part = _part(last_fetched_epoch=epoch, fetch_offset=offset)
                self._fetch(f"last fetched {epoch} {offset}", ("two", [part]))


def find_offsets_oddly(talk: Talk) -> None:
    """ListOffsets and DeleteRecords."""

    def part(index: int) -> dict[str, Any]:
        return {"partition_index": index, "timestamp": -1}

    one, two, no = ("one", [part(0)]), ("two", [part(0), part(0), part(1)]), ("no", [part(1)])
    requests: dict[str, list[tuple[str, Parts]]] = {
        "nothing": [],
        "no partitions": [("two", []), ("no", [])],
        "twice": [two, no, one, ("two", [part(0)]), no],
        "a topic twice": [("two", [part(0)]), ("two", [part(1)])],
        "many": [("two", [part(1), part(0)]), one, *((f"no{i}", [part(0)]) for i in range(6))],
        **{f"name {name!r}": [(name, [part(0)])] for name in ("", "a b", ".", "x" * 300)},
    }
    for what, topics in requests.items():
        named = [{"name": name, "partitions": parts} for name, parts in topics]
        for version in talk.versions("ListOffsets", 1, 4, 9):
            talk.ask(what, "ListOffsets", version, replica_id=-1, topics=named)
        below = [
            {
                "name": name,
                "partitions": [
                    {"partition_index": p["partition_index"], "offset": 0} for p in parts
                ],
            }
            for name, parts in topics
        ]
        for timeout in (1000, -1):
            talk.ask(f"{what} {timeout}", "DeleteRecords", 2, topics=below, timeout_ms=timeout)


def describe_partitions_oddly(talk: Talk) -> None:
    """DescribeTopicPartitions with cursors and limits that make no sense."""
    cursors = [("two", 0), ("two", 1), ("two", 9), ("two", -1), ("", 0), ("zz", 0), ("one", 0)]
    for limit in (2000, 0, -1, 1):
        for names in ([], ["two", "one"], ["two", "two"], ["no"], [""], ["a b"]):
            topics = [{"name": name} for name in names]
            for cursor in (None, *cursors):
                at = None
                if cursor is not None:
                    at = {"topic_name": cursor[0], "partition_index": cursor[1]}
                talk.ask(
                    f"{names} from {cursor}, {limit} at most",
                    "DescribeTopicPartitions",
                    0,
                    topics=topics,
                    response_partition_limit=limit,
                    cursor=at,
                )
