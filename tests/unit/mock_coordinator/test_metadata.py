"""Metadata: topics by name and by id, and those that are created by being mentioned."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.unit.mock_coordinator.broker_harness import BrokerHarness


def ask(
    harness: BrokerHarness, *names: str, version: int = 12, **more: Any
) -> list[tuple[str, int]]:
    """``(name, error)`` of the topics in the answer."""
    topics = tuple(MetadataRequestTopic(name=name) for name in names)
    more.setdefault("allow_auto_topic_creation", version < 4)
    response = harness.ask(MetadataRequest(topics=topics, **more), version)
    return [(topic.name, topic.error_code) for topic in response.topics]


@pytest.mark.parametrize("version", range(14))
def test_a_topic_in_every_version(version: int) -> None:
    harness = BrokerHarness({"t": 2}, broker_rack="r1", node_id="4")
    request = MetadataRequest(topics=(MetadataRequestTopic(name="t"),))
    response = harness.ask(request, version)
    (topic,) = response.topics
    assert (topic.name, topic.error_code, topic.is_internal) == ("t", 0, False)
    known = harness.broker.core.broker.catalog.topics["t"].topic_id
    assert topic.topic_id == (known if version >= 10 else bytes(16))
    assert [p.partition_index for p in topic.partitions] == [0, 1]
    assert {p.leader_id for p in topic.partitions} == {4}
    assert {p.leader_epoch for p in topic.partitions} == {0 if version >= 7 else -1}
    assert topic.partitions[0].replica_nodes == topic.partitions[0].isr_nodes == (4,)
    (broker,) = response.brokers
    assert (broker.node_id, broker.rack) == (4, "r1" if version >= 1 else None)
    assert response.controller_id == (4 if version >= 1 else -1)
    assert response.cluster_id == (
        harness.broker.core.broker.disk.cluster_id if version >= 2 else None
    )


def test_all_topics() -> None:
    harness = BrokerHarness({"b": 1, "a": 1})
    for request, version in (
        (MetadataRequest(topics=()), 0),
        (MetadataRequest(topics=None), 1),
        (MetadataRequest(topics=None), 13),
    ):
        assert [t.name for t in harness.ask(request, version).topics] == ["b", "a"]
    assert harness.ask(MetadataRequest(topics=()), 1).topics == ()


def test_known_ones_come_first_and_once() -> None:
    harness = BrokerHarness({"t": 1})
    assert ask(harness, "nope", "t", "t", "bad name", "") == [
        ("t", 0),
        ("", 17),  # the order of a Java set
        ("nope", 3),
        ("bad name", 17),
    ]


def test_by_id() -> None:
    harness = BrokerHarness({"t": 1})
    known = harness.broker.core.broker.catalog.topics["t"].topic_id
    entries = (
        MetadataRequestTopic(topic_id=b"7" * 16, name=None),
        MetadataRequestTopic(topic_id=known, name=None),
        MetadataRequestTopic(name="ignored beside ids"),
    )
    response = harness.ask(MetadataRequest(topics=entries, allow_auto_topic_creation=False), 12)
    assert [(t.name, t.topic_id, t.error_code) for t in response.topics] == [
        ("t", known, 0),
        (None, b"7" * 16, 100),
    ]


@pytest.mark.parametrize(
    ("version", "topic", "code"),
    [
        (11, MetadataRequestTopic(topic_id=b"7" * 16, name="t"), 42),
        (11, MetadataRequestTopic(name=None), 42),
        (12, MetadataRequestTopic(name=None), -1),
    ],
)
def test_malformed(version: int, topic: MetadataRequestTopic, code: int) -> None:
    response = BrokerHarness({"t": 1}).ask(MetadataRequest(topics=(topic,)), version)
    assert response.brokers == ()
    assert [t.error_code for t in response.topics] == [code]


def test_authorized_operations_when_asked() -> None:
    harness = BrokerHarness({"t": 1})
    topics = (MetadataRequestTopic(name="t"),)
    request = MetadataRequest(
        topics=topics,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    response = harness.ask(request, 10)
    assert response.topics[0].topic_authorized_operations == 3576
    assert response.cluster_authorized_operations == 8096


def test_a_topic_is_created_by_being_mentioned_and_there_next_time() -> None:
    harness = BrokerHarness(num_partitions="3")
    assert ask(harness, "new", allow_auto_topic_creation=True) == [("new", 3)]
    assert ask(harness, "new") == [("new", 0)]
    assert harness.broker.core.broker.catalog.topics["new"].partitions == 3
    assert ask(harness, "newer", version=0) == [("newer", 3)], "old versions cannot forbid it"
    assert ask(harness, "newer") == [("newer", 0)]


def test_what_is_not_created() -> None:
    harness = BrokerHarness()
    assert ask(harness, "a.b", allow_auto_topic_creation=True) == [("a.b", 3)]
    ask(harness, "no", "bad name", allow_auto_topic_creation=False)
    ask(harness, "bad name", "a_b", allow_auto_topic_creation=True)
    assert list(harness.broker.core.broker.catalog.topics) == ["a.b"]
    strict = BrokerHarness(auto_create_topics_enable="false")
    ask(strict, "new", allow_auto_topic_creation=True)
    assert not strict.broker.core.broker.catalog.topics


def test_the_offsets_topic_is_internal() -> None:
    harness = BrokerHarness(offsets_topic_num_partitions="5")
    ask(harness, "__consumer_offsets", "__transaction_state", allow_auto_topic_creation=True)
    topics = harness.broker.core.broker.catalog.topics
    assert topics["__consumer_offsets"].partitions == 5
    assert all(topic.internal for topic in topics.values())
