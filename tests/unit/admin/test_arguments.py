"""Arguments of an admin: what cannot be meant is refused before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kip848_client import ConfigError, TopicPartition
from kip848_client.admin import (
    EARLIEST,
    ByDuration,
    CommittedOffset,
    NewTopic,
    ShiftBy,
    ToEarliest,
    ToLatest,
    ToOffset,
    ToPlan,
    ToTime,
)
from kip848_client.admin import _arguments as arguments

A = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("checked", "wrong"),
    [
        (arguments.checked_group, ""),
        (arguments.checked_group, None),
        (arguments.checked_groups, "g"),
        (arguments.checked_groups, {"g": 1}),
        (arguments.checked_topic_names, ["a/b"]),
        (arguments.checked_some_partitions, []),
        (arguments.checked_some_partitions, A),
        (arguments.checked_offsets, [A]),
        (arguments.checked_offsets, {A: -1}),
        (arguments.checked_offsets, {A: CommittedOffset(2**63)}),
        (arguments.checked_offsets, {A: CommittedOffset(1, -1)}),
        (arguments.checked_offsets, {A: CommittedOffset(1, 2**31)}),
        (arguments.checked_offsets, {A: CommittedOffset(1, 1, "x" * 40_000)}),
        (arguments.checked_list_times, {A: -3}),
        (arguments.checked_list_times, {A: "latest"}),
        (arguments.is_read_committed, "READ_COMMITTED"),
        (arguments.is_read_committed, True),
        (arguments.checked_reset, None),
        (arguments.checked_reset, ToEarliest),
        (arguments.checked_reset, ToOffset(-1)),
        (arguments.checked_reset, ShiftBy(2**63)),
        (arguments.checked_reset, ShiftBy(True)),
        (arguments.checked_reset, ToTime(-1)),
        (arguments.checked_reset, ByDuration(-1)),
        (arguments.checked_reset, ToPlan({A: -1})),
        (arguments.checked_new_topics, ["t"]),
        (arguments.checked_new_topics, NewTopic("t")),
        (arguments.checked_new_topics, [NewTopic("t"), NewTopic("t")]),
        (arguments.checked_new_topics, [NewTopic("t", 0)]),
        (arguments.checked_new_topics, [NewTopic("t", 2**31)]),
        (arguments.checked_new_topics, [NewTopic("t", 1, 2**15)]),
        (arguments.checked_counts, {"t": 2**31}),
        (arguments.checked_counts, {"t": None}),
        (arguments.checked_counts, ["t"]),
    ],
)
def test_what_cannot_be_meant_is_refused(checked: Callable[[object], Any], wrong: object) -> None:
    with pytest.raises(ConfigError):
        checked(wrong)


@pytest.mark.parametrize(
    "configs", [None, "a=b", {"a": "b"}, ["ab", "abc"], [("a", 1)], [(1, "b")]]
)
def test_settings_of_a_new_topic_are_pairs_of_texts(configs: Any) -> None:
    with pytest.raises(ConfigError):
        arguments.checked_new_topics([NewTopic("t", configs=configs)])


@pytest.mark.parametrize(
    "wrong", [None, {"g": {}}, {"g": "a=b"}, {"g": {"a": 1}}, {"": {"a": "b"}}]
)
def test_changes_are_texts_by_name(wrong: object) -> None:
    with pytest.raises(ConfigError):
        arguments.checked_changes(wrong, arguments.checked_group)


def test_what_is_meant_is_taken() -> None:
    assert arguments.checked_words(
        ["stable", "EMPTY", "Stable"], ("Stable", "Empty"), "states"
    ) == (
        "Stable",
        "Empty",
    )
    assert arguments.checked_groups(iter(["b", "a", "b"])) == ("b", "a")
    assert arguments.checked_offsets({("t", 0): 5}) == {A: CommittedOffset(5)}
    assert arguments.checked_list_times({A: EARLIEST}) == {A: EARLIEST}
    assert arguments.is_read_committed("read_committed")
    assert not arguments.is_read_committed("read_uncommitted")
    assert arguments.checked_reset(ToPlan({A: 5})) == ToPlan({A: 5})
    assert arguments.checked_reset(ToLatest()) == ToLatest()
    assert arguments.checked_changes({"g": {"a": None}}, arguments.checked_group) == {
        "g": {"a": None}
    }
    (new,) = arguments.checked_new_topics([NewTopic("t", 2, 1, (("a", "b"),))])
    assert new.partitions == 2
