"""Deleting offsets and groups, retention: what the scenarios S54 to S56b do not show."""

from __future__ import annotations

import pytest

from kip848_client.core.wire.messages.groups import DeleteGroupsRequest, DeleteGroupsResponse
from kip848_client.core.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tests.unit.mock_coordinator.groups._group_harness import GroupHarness

CHECK_MS = 600_000


def _delete(
    harness: GroupHarness, topics: dict[str, list[int]], group: str = "g"
) -> int | dict[str, dict[int, int]]:
    response = harness.ask(
        OffsetDeleteRequest(
            group_id=group,
            topics=tuple(
                OffsetDeleteRequestTopic(
                    name=name,
                    partitions=tuple(
                        OffsetDeleteRequestPartition(partition_index=number) for number in numbers
                    ),
                )
                for name, numbers in topics.items()
            ),
        ),
        0,
    )
    assert isinstance(response, OffsetDeleteResponse)
    if response.error_code:
        return int(response.error_code)
    return {
        topic.name: {part.partition_index: int(part.error_code) for part in topic.partitions}
        for topic in response.topics
    }


def test_offsets_of_topics_of_a_regex_stay() -> None:
    harness = GroupHarness()
    harness.join("A", None, regex="fo+")
    harness.pass_ms(0)
    assert _delete(harness, {"foo": [0], "bar": [0]}) == {"foo": {0: 86}, "bar": {0: 0}}


def test_deleting_offsets_of_a_group_that_does_not_exist() -> None:
    harness = GroupHarness()
    assert _delete(harness, {"foo": [0]}) == 69
    assert _delete(harness, {"nope": [0]}) == 69
    assert _delete(harness, {}) == 69


def test_deleting_no_offsets_mentions_only_topics_that_do_not_exist() -> None:
    harness = GroupHarness()
    harness.join("A")
    assert _delete(harness, {"foo": [], "nope": []}) == {"nope": {}}


def test_deleting_offsets_of_a_group_without_a_name() -> None:
    harness = GroupHarness()
    assert _delete(harness, {"foo": [0]}, group="") == 24


def test_a_group_that_is_named_twice_is_deleted_and_answered_once() -> None:
    harness = GroupHarness()
    harness.commit("", -1, {"foo": {0: 5}})
    response = harness.ask(DeleteGroupsRequest(groups_names=("g", "x", "g")), 2)
    assert isinstance(response, DeleteGroupsResponse)
    assert [(each.group_id, each.error_code) for each in response.results] == [("g", 0), ("x", 69)]


def test_deleting_offsets_of_a_simple_group() -> None:
    harness = GroupHarness()
    harness.commit("", -1, {"foo": {0: 5}})
    assert _delete(harness, {"foo": [0]}) == {"foo": {0: 0}}
    assert harness.fetch(None) == {}
    assert harness.groups.group_ids == ("g",)


def test_offsets_of_subscribed_topics_never_expire() -> None:
    harness = GroupHarness(offsets_retention_minutes=1)
    harness.join("A")
    harness.commit("A", 2, {"foo": {0: 5}, "bar": {0: 6}})
    for _ in range(20):
        harness.pass_ms(30_000)
        harness.beat("A", 2)
    assert harness.fetch(None) == {"foo": {0: 5}}


@pytest.mark.parametrize("group", ["g", "simple"])
def test_offsets_of_simple_groups_expire_each_for_itself(group: str) -> None:
    harness = GroupHarness(offsets_retention_minutes=10)
    harness.commit("", -1, {"foo": {0: 5}}, group=group)
    harness.pass_ms(1)
    harness.commit("", -1, {"foo": {1: 5}}, group=group)
    harness.pass_ms(CHECK_MS - 1)
    assert harness.fetch(None, group=group) == {"foo": {1: 5}}
    harness.pass_ms(CHECK_MS)
    assert harness.groups.group_ids == ()


def test_an_offset_with_its_own_retention() -> None:
    harness = GroupHarness()
    harness.commit("", -1, {"foo": {0: 5}}, version=2, retention_ms=CHECK_MS)
    harness.commit("", -1, {"foo": {1: 5}}, version=2, retention_ms=CHECK_MS + 1)
    harness.pass_ms(CHECK_MS)
    assert harness.fetch(None) == {"foo": {1: 5}}


def test_offsets_of_deleted_topics_go_at_once_in_every_group() -> None:
    harness = GroupHarness()
    harness.join("A")
    harness.commit("A", 2, {"foo": {0: 5}, "bar": {0: 5}})
    harness.commit("", -1, {"foo": {1: 5}}, group="x")
    harness.delete("foo")
    assert harness.fetch(None) == {"bar": {0: 5}}
    assert harness.fetch(None, group="x") == {}
    assert harness.groups.group_ids == ("g", "x")
