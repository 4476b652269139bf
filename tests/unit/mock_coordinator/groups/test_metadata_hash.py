"""The topic hash of KIP-1101: numbers that real brokers stored, and what they depend on."""

from __future__ import annotations

import pytest

from kip848_client.core.types import TopicId
from kip848_client.core.wire import api_named
from mock_coordinator.core.groups.assignment.metadata_hash import Racks, group_hash, topic_hash
from mock_coordinator.core.groups.records.state_records import GroupEpochMetadata
from mock_coordinator.core.profiles import profile_named
from tests.scenarios.broker_log import BrokerLog
from tests.support.real_kafka import RealKafka
from tests.unit.mock_coordinator.groups._group_harness import FOO, GroupHarness

ID = TopicId(bytes(range(16)))


def test_a_group_without_existing_topics_has_hash_zero() -> None:
    assert group_hash([]) == 0
    harness = GroupHarness("4.2")
    harness.join("A", ("nope",))
    assert harness.group().metadata_hash == 0
    harness.join("A", ("nope", "foo"))
    foo = topic_hash("foo", FOO, 6)
    assert harness.group().metadata_hash == group_hash([foo])


def test_everything_that_goes_in_counts() -> None:
    racks: Racks = (("a", "b"), ("b",))
    inputs: list[tuple[str, TopicId, int, Racks]] = [
        ("t", ID, 2, ()),
        ("u", ID, 2, ()),
        ("t", TopicId(bytes(16)), 2, ()),
        ("t", ID, 3, ()),
        ("t", ID, 2, (("a",),)),
        ("t", ID, 2, racks),
    ]
    assert len({topic_hash(*each) for each in inputs}) == len(inputs)
    assert topic_hash("t", ID, 2, (("b", "a"), ("b",))) == topic_hash("t", ID, 2, racks)
    assert topic_hash("t", ID, 4, racks) == topic_hash("t", ID, 4, racks * 2)


def test_the_number_is_signed() -> None:
    hashes = [group_hash([number]) for number in range(64)]
    assert min(hashes) < 0 < max(hashes)
    assert all(-(2**63) <= each < 2**63 for each in hashes)


@pytest.mark.real_kafka
def test_brokers_store_the_same_number(kafka_version: str) -> None:
    if not profile_named(kafka_version.rpartition(".")[0]).metadata_hash:
        return  # 4.0 has none, and its record would not decode with one
    heartbeat = api_named("ConsumerGroupHeartbeat").request
    with RealKafka.start(kafka_version, {"broker.rack": "rack-1"}) as kafka:
        ids = {name: kafka.create_topic(name, count) for name, count in (("foo", 6), ("bar", 3))}
        with kafka.connect() as connection:
            join = heartbeat(
                group_id="hashed",
                member_id="A",
                member_epoch=0,
                rebalance_timeout_ms=1000,
                subscribed_topic_names=("foo", "nope", "bar"),
                topic_partitions=(),
            )
            assert connection.request(join, 1).error_code == 0
            log = BrokerLog(connection, kafka_version)
            log.read()
    ours = group_hash(
        [
            topic_hash("bar", ids["bar"], 3, (("rack-1",),)),
            topic_hash("foo", ids["foo"], 6, (("rack-1",),)),
        ]
    )
    stored = [
        record.value
        for record in log.records
        if isinstance(record, GroupEpochMetadata) and record.group_id == "hashed"
    ]
    assert [value and value.metadata_hash for value in stored] == [ours]
