"""Lines of JSON: what is written is read, and what is no event says why."""

from __future__ import annotations

import dataclasses
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kip848_client.history.core import (
    FIELDS,
    KINDS,
    LINE_BYTES_MAX,
    TABLES,
    BadLine,
    HeartbeatSla,
    HistoryEvent,
    PartitionDowntime,
    RebalanceDuration,
    ZombieCommit,
    line_of,
    parse_line,
)
from tests.support.histories import any_history, event

GOOD = json.loads(line_of(event("assigned", 5, cause="\N{SNOWMAN}\n")))


def test_the_schema_is_what_events_and_rows_have() -> None:
    assert [each.name for each in FIELDS] == [f.name for f in dataclasses.fields(HistoryEvent)]
    named = {each.name for each in FIELDS}
    assert all(set(kind.fields) <= named for kind in KINDS)
    rows: dict[str, type[Any]] = {
        "partition_downtime": PartitionDowntime,
        "heartbeat_sla": HeartbeatSla,
        "rebalance_duration": RebalanceDuration,
        "zombie_commits": ZombieCommit,
    }
    for name, columns in TABLES.items():
        assert rows[name]._fields == tuple(column.name for column in columns)


@given(st.integers(0, 1 << 32))
def test_what_is_written_is_read(seed: int) -> None:
    for each in any_history(Random(seed), "g", 10):
        line = line_of(each)
        assert line.endswith(b"}\n")
        assert line.count(b"\n") == 1
        assert parse_line(line) == each


@given(st.binary(max_size=200))
def test_no_bytes_do_harm(line: bytes) -> None:
    with pytest.raises(BadLine):
        parse_line(line)


def _json(depth: int = 3) -> st.SearchStrategy[object]:
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    return st.recursive(
        leaves, lambda of: st.lists(of) | st.dictionaries(st.text(), of), max_leaves=6
    )


@given(st.dictionaries(st.sampled_from(sorted({f.name for f in FIELDS})), _json()))
def test_no_values_do_harm(changes: dict[str, object]) -> None:
    try:
        read = parse_line(json.dumps(GOOD | changes).encode())
    except BadLine:
        return
    assert parse_line(line_of(read)) == read


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"schema": 2}, "its schema is 2; this version reads 1"),
        ({"schema": None}, "its schema is None"),
        ({"writer": None}, "writer is None, not a text"),
        ({"role": "king"}, "role 'king' is none of consumer, coordinator, worker"),
        ({"time_ms": 1.5}, "time_ms is 1.5, not a number"),
        ({"time_ms": True}, "time_ms is True, not a number"),
        ({"time_ms": -1}, "time_ms is -1"),
        ({"seq": 1 << 60}, "not a number"),
        ({"cause": 4}, "cause is 4, not a text"),
        ({"partitions": {"a": [1]}}, "not topics with their partitions"),
        ({"partitions": [{"topic": "a"}]}, "not topics with their partitions"),
        ({"partitions": [{"topic": "a", "partitions": [True]}]}, "not topics with their"),
        ({"partitions": [{"topic": "a" * 999, "partitions": 1}]}, r"aaa\.\.\., not topics"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, object], why: str) -> None:
    with pytest.raises(BadLine, match=why):
        parse_line(json.dumps(GOOD | change).encode())


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"\xff\xfe", "not text"),
        (b'{"schema":1,', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not an object"),
        (b"{}", "it has no schema: it is not an event of a group's history"),
        (b" " * (LINE_BYTES_MAX + 1), "more than"),
    ],
)
def test_what_is_no_event_says_why(line: bytes, why: str) -> None:
    with pytest.raises(BadLine, match=why):
        parse_line(line)


def test_fields_and_kinds_of_tomorrow_are_taken() -> None:
    line = json.dumps(GOOD | {"kind": "of tomorrow", "colour": "red"}).encode()
    assert parse_line(line).kind == "of tomorrow"
