"""OffsetCommit and OffsetFetch: topic ids, retention, KIP-1251 (who may do what: S49 to S52)."""

from __future__ import annotations

import pytest

from kip848_client.core.wire import decode, encode
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tests.unit.mock_coordinator.groups._group_harness import (
    EVERY_PROFILE,
    FOO,
    GroupHarness,
    topic_id,
)


@EVERY_PROFILE
def test_long_metadata_is_refused_by_itself(profile: str) -> None:
    harness = GroupHarness(profile)
    harness.join("A")
    refused = harness.commit("A", harness.first, {"foo": {0: 1}}, metadata="x" * 4097)
    assert refused == {"foo": {0: 12}}
    assert harness.commit("A", harness.first, {"foo": {0: 1}}, metadata="x" * 4096) == {
        "foo": {0: 0}
    }
    # Java counts UTF-16 units: a character outside of the BMP is two
    assert harness.commit("A", harness.first, {"foo": {1: 1}}, metadata="\U0001f600" * 2049) == {
        "foo": {1: 12}
    }


@EVERY_PROFILE
def test_topics_and_partitions_that_do_not_exist(profile: str) -> None:
    harness = GroupHarness(profile)
    harness.join("A")
    committed = harness.commit("A", harness.first, {"foo": {0: 1, 6: 1, -1: 1}, "nope": {0: 1}})
    assert committed == {"foo": {0: 0, 6: 3, -1: 3}, "nope": {0: 3}}
    # with nothing left the group is not even looked at
    assert harness.commit("Z", 7, {"nope": {0: 1}}, group="x") == {"nope": {0: 3}}


def test_kip_1251_forgets_after_a_static_member_was_away() -> None:
    harness = GroupHarness("4.4")
    harness.join("A", inst="i")
    harness.beat("A", -2, inst="i")
    assert harness.commit("A", -2, {"foo": {0: 1}}) == {"foo": {0: 0}}
    assert harness.commit("A", 2, {"foo": {0: 1}}) == {"foo": {0: 113}}
    harness.join("A", inst="i")
    assert harness.commit("A", 1, {"foo": {0: 1}}) == {"foo": {0: 0}}  # epoch 0 is long ago


def test_an_empty_commit_is_answered_by_nothing() -> None:
    harness = GroupHarness()
    assert harness.commit("A", 1, {}) == {}
    assert harness.commit("A", 1, {"foo": {}}) == {}
    assert harness.commit("A", 1, {"foo": {}, "nope": {}}) == {"nope": {}}


def test_a_commit_that_stores_nothing_makes_a_group_that_no_record_knows() -> None:
    harness = GroupHarness()
    assert harness.commit("", -1, {"foo": {0: 1}}, metadata="x" * 5000) == {"foo": {0: 12}}
    assert harness.groups.group_ids == ("g",)
    harness.restart()
    assert harness.groups.snapshot("g") is None


def test_null_metadata_is_stored_as_none() -> None:
    harness = GroupHarness()
    harness.commit("", -1, {"foo": {0: 1}}, metadata=None)
    stored = harness.group().offsets["foo"][0]
    assert (stored.metadata, stored.leader_epoch, stored.commit_timestamp_ms) == (
        "",
        3,
        harness.now,
    )


def test_version_10_names_topics_by_id() -> None:
    harness = GroupHarness("4.4")
    harness.join("A")
    assert harness.commit("A", 2, {"foo": {0: 7}, "nope": {0: 1}}, version=10) == {
        "foo": {0: 0},
        "nope": {0: 100},
    }
    assert harness.group().offsets["foo"][0].topic_id == FOO
    request = OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(
                group_id="g",
                topics=(
                    OffsetFetchRequestTopics(topic_id=FOO, partition_indexes=(0, 1)),
                    OffsetFetchRequestTopics(topic_id=topic_id(99), partition_indexes=(0,)),
                ),
            ),
        )
    )
    response = harness.ask(request, 10)
    response = decode(OffsetFetchResponse, 10, encode(response, 10))
    known, unknown = response.groups[0].topics
    assert (known.topic_id, known.name) == (FOO, "")
    assert [part.committed_offset for part in known.partitions] == [7, -1]
    assert [part.error_code for part in unknown.partitions] == [100]


def test_version_10_leaves_out_topics_without_an_id() -> None:
    harness = GroupHarness("4.4")
    harness.join("A")
    harness.commit("A", 2, {"foo": {0: 7}}, version=9)
    harness.catalog.delete("foo")  # before the coordinator is told
    every = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),))
    by_id, by_name = harness.ask(every, 10), harness.ask(every, 9)
    assert isinstance(by_id, OffsetFetchResponse)
    assert isinstance(by_name, OffsetFetchResponse)
    assert by_id.groups[0].topics == ()
    assert [topic.name for topic in by_name.groups[0].topics] == ["foo"]


def test_an_offset_of_another_topic_of_that_name_is_not_shown() -> None:
    harness = GroupHarness("4.4")
    harness.commit("", -1, {"foo": {0: 7}}, version=10)
    harness.catalog.delete("foo")
    harness.catalog.create("foo", 6, topic_id(50))
    request = OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(
                group_id="g",
                topics=(OffsetFetchRequestTopics(topic_id=topic_id(50), partition_indexes=(0,)),),
            ),
        )
    )
    response = harness.ask(request, 10)
    assert isinstance(response, OffsetFetchResponse)
    assert response.groups[0].topics[0].partitions[0].committed_offset == -1


@pytest.mark.parametrize("version", [1, 2, 5, 7])
def test_the_old_form_of_the_fetch(version: int) -> None:
    harness = GroupHarness()
    harness.commit("", -1, {"foo": {0: 7}}, group="x")
    request = OffsetFetchRequest(
        group_id="x", topics=(OffsetFetchRequestTopic(name="foo", partition_indexes=(0, 1)),)
    )
    response = decode(OffsetFetchResponse, version, encode(harness.ask(request, version), version))
    assert [part.committed_offset for part in response.topics[0].partitions] == [7, -1]
    if version >= 2:
        every = harness.ask(OffsetFetchRequest(group_id="x", topics=None), version)
        assert isinstance(every, OffsetFetchResponse)
        assert [topic.name for topic in every.topics] == ["foo"]


def test_several_groups_in_one_fetch() -> None:
    harness = GroupHarness()
    harness.join("A")
    harness.commit("", -1, {"foo": {0: 7}}, group="x")
    response = harness.ask(
        OffsetFetchRequest(
            groups=(
                OffsetFetchRequestGroup(group_id="x", topics=None),
                OffsetFetchRequestGroup(group_id="g", member_id="Z", member_epoch=1, topics=None),
            )
        ),
        9,
    )
    assert isinstance(response, OffsetFetchResponse)
    assert [group.error_code for group in response.groups] == [0, 25]
    assert [len(group.topics) for group in response.groups] == [1, 0]


def test_a_commit_of_a_simple_group_that_names_an_instance() -> None:
    harness = GroupHarness()
    harness.commit("", -1, {"foo": {0: 7}}, group="x")
    assert harness.commit("", -1, {"foo": {0: 8}}, group="x", inst="i") == {"foo": {0: 0}}
    assert harness.commit("m", -1, {"foo": {0: 8}}, group="x") == {"foo": {0: 0}}


@pytest.mark.parametrize(
    ("retention_ms", "overflow"),
    [(500, 0), (-2, 0), (2**63 - 1, -(2**64)), (-(2**63), 0)],
)
def test_the_retention_of_old_requests_is_stored(retention_ms: int, overflow: int) -> None:
    harness = GroupHarness()
    response = harness.ask(
        OffsetCommitRequest(
            group_id="x",
            retention_time_ms=retention_ms,
            topics=(
                OffsetCommitRequestTopic(
                    name="foo",
                    partitions=(OffsetCommitRequestPartition(committed_offset=1),),
                ),
            ),
        ),
        2,
    )
    assert isinstance(response, OffsetCommitResponse)
    stored = harness.group("x").offsets["foo"][0].expire_timestamp_ms
    assert stored == harness.now + retention_ms + overflow
