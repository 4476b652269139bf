"""What users may pass, and what is said of what they may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import TopicPartition as TheirTopicPartition

from kip848_client import TopicPartition
from kip848_client.consumer._arguments import checked_deserializer
from kip848_client.errors import ConfigError
from kip848_client.runtime.arguments import (
    checked_commit,
    checked_count,
    checked_offset,
    checked_partition,
    checked_partitions,
    checked_text,
    checked_timeout_ms,
    checked_times,
    checked_topic,
    checked_topics,
)

TP = TopicPartition("t", 0)


class Index:
    """As numpy's integers are."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


class NoIndex:
    """As numpy's arrays are; its repr fails, too."""

    def __index__(self) -> int:
        raise TypeError("only arrays of one element")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


@pytest.mark.parametrize(
    "partition", [TP, ("t", 0), ["t", 0], TheirTopicPartition("t", 0), ("t", Index(0))]
)
def test_a_partition(partition: object) -> None:
    found = checked_partition(partition)
    assert found == TP
    assert type(found) is TopicPartition
    assert type(found.partition) is int


@pytest.mark.parametrize(
    ("partition", "says"),
    [
        (None, "not None"),
        ("t", "not 't'"),
        ("t0", "not 't0'"),  # two characters, as a tuple has two items
        (b"t0", "not b't0'"),
        (5, "not 5"),
        (("t",), "topic, number"),
        (("t", 0, 0), "topic, number"),
        (("t", "0"), "int from 0 to 2147483647, not '0'"),
        (("t", 0.0), "not 0.0"),
        (("t", True), "not True"),
        (("t", None), "not None"),
        (("t", -1), "not -1"),
        (("t", 2**31), "not 2147483648"),
        (("t", NoIndex()), "not <NoIndex>"),
        ((None, 0), "not a topic name: None"),
        ((b"t", 0), "not a topic name: b't'"),
        (("", 0), "not a topic name: ''"),
        (("\ud800", 0), "not a topic name"),
        (("t" * 250, 0), "not a topic name"),
    ],
)
def test_what_is_no_partition(partition: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        checked_partition(partition)


def test_partitions_are_taken_once_and_in_order() -> None:
    given = (each for each in [("t", 1), ("t", 0), ("t", 1)])
    assert checked_partitions(given) == (("t", 1), ("t", 0))
    assert checked_partitions([]) == ()


@pytest.mark.parametrize("partitions", [None, 5, "t", b"t", TP, [None], ["t"], {"t": 0}])
def test_what_are_no_partitions(partitions: object) -> None:
    with pytest.raises(ConfigError):
        checked_partitions(partitions)


@pytest.mark.parametrize("name", ["t", "a.b-c_D9", "x" * 249])
def test_a_topic(name: str) -> None:
    assert checked_topic(name) == name
    assert checked_topics([name, name]) == {name}


@pytest.mark.parametrize(
    "name", ["", " ", ".", "..", "a b", "a/b", "\u00e9", "x" * 250, b"t", 5, None]
)
def test_what_is_no_topic(name: object) -> None:
    with pytest.raises(ConfigError, match="not a topic name"):
        checked_topic(name)
    with pytest.raises(ConfigError, match="not a topic name"):
        checked_topics([name])


@pytest.mark.parametrize("topics", ["t", b"t", None, 5])
def test_topics_are_a_list(topics: object) -> None:
    with pytest.raises(ConfigError, match="topics is a list of names"):
        checked_topics(topics)


@pytest.mark.parametrize("offset", [-1, 2**63, 1.0, "1", None, True, float("nan"), NoIndex()])
def test_what_is_no_offset(offset: object) -> None:
    with pytest.raises(ConfigError, match="an offset is an integer"):
        checked_offset(offset)
    assert checked_offset(Index(2**63 - 1)) == 2**63 - 1


def test_offsets_to_commit() -> None:
    assert checked_commit({("t", 0): 5, ("t", 1): (6, "m")}) == {
        ("t", 0): (5, ""),
        ("t", 1): (6, "m"),
    }


@pytest.mark.parametrize(
    "offsets",
    [
        5,
        [TP],
        {"t": 1},
        {None: 1},
        {TP: None},
        {TP: (1,)},
        {TP: (1, "m", 3)},
        {TP: ("1", "m")},
        {TP: (1, None)},
        {TP: (1, b"m")},
        {TP: (1, "\ud800")},
        {TP: (1, "m" * 32_768)},
    ],
)
def test_what_cannot_be_committed(offsets: object) -> None:
    with pytest.raises(ConfigError):
        checked_commit(offsets)


@pytest.mark.parametrize(
    "times", [None, 5, [TP], {TP: 1.5}, {TP: -1}, {TP: None}, {TP: 2**63}, {"t": 1}]
)
def test_what_are_no_times(times: object) -> None:
    with pytest.raises(ConfigError):
        checked_times(times)
    assert checked_times({("t", 0): Index(7)}) == {TP: 7}


@pytest.mark.parametrize(
    ("timeout_ms", "expected"),
    [(0, 0), (5, 5), (0.5, 0.5), (-1, 0), (-0.5, 0), (Index(3), 3), (10**400, 2**63 - 1)],
)
def test_a_time_to_wait(timeout_ms: object, expected: float) -> None:
    assert checked_timeout_ms(timeout_ms) == expected


@pytest.mark.parametrize(
    "timeout_ms", ["x", None, True, float("nan"), float("inf"), (1,), NoIndex(), 1j]
)
def test_what_is_no_time_to_wait(timeout_ms: object) -> None:
    with pytest.raises(ConfigError, match="timeout_ms is a number of milliseconds"):
        checked_timeout_ms(timeout_ms)


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (lambda value: checked_count(value, "max_records"), 0),
        (lambda value: checked_count(value, "max_records"), 1.5),
        (lambda value: checked_count(value, "max_records"), "1"),
        (lambda value: checked_deserializer(value, "key_deserializer"), "int"),
        (checked_text, None),
    ],
)
def test_other_arguments(check: Callable[[Any], Any], value: object) -> None:
    with pytest.raises(ConfigError):
        check(value)
