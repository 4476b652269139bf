"""CreateTopics, DeleteTopics, CreatePartitions: Kafka's checks, order and words."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.types import format_topic_id
from kip848_client.core.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsAssignment,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableReplicaAssignment,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError
from mock_coordinator import NewRecord
from mock_coordinator.batches import encode_batch
from tests.unit.mock_coordinator.broker_harness import START_MS, BrokerHarness

ZERO = bytes(16)


def new(
    name: str = "x",
    partitions: int = 1,
    replicas: int = 1,
    *,
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = (),
    config: tuple[tuple[str, str | None], ...] = (),
) -> CreateTopicsRequestCreatableTopic:
    return CreateTopicsRequestCreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=tuple(
            CreateTopicsRequestCreatableReplicaAssignment(partition_index=p, broker_ids=b)
            for p, b in assignments
        ),
        configs=tuple(CreateTopicsRequestCreatableTopicConfig(name=n, value=v) for n, v in config),
    )


def create(
    harness: BrokerHarness, *topics: CreateTopicsRequestCreatableTopic, **more: Any
) -> list[Any]:
    version = more.pop("version", 7)
    return list(harness.ask(CreateTopicsRequest(topics=topics, **more), version).topics)


def placed(*brokers: tuple[int, ...]) -> CreateTopicsRequestCreatableTopic:
    return new(partitions=-1, replicas=-1, assignments=tuple(enumerate(brokers)))


REFUSED = [
    (new(""), 17, "Topic name is invalid: the empty string is not allowed"),
    (new("."), 17, "Topic name is invalid: '.' is not allowed"),
    (new(".."), 17, "Topic name is invalid: '..' is not allowed"),
    (
        new("a" * 250),
        17,
        (
            f"Topic name is invalid: the length of '{'a' * 250}' is longer than the max allowed "
            "length 249"
        ),
    ),
    (
        new("a b"),
        17,
        (
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        ),
    ),
    (
        new("é"),
        17,
        (
            "Topic name is invalid: 'é' contains one or more characters other than ASCII "
            "alphanumerics, '.', '_' and '-'"
        ),
    ),
    (new("t"), 36, "Topic 't' already exists."),
    (new("a_b"), 17, "Topic 'a_b' collides with existing topic: a.b"),
    (new(partitions=0), 37, "Number of partitions was set to an invalid non-positive value."),
    (new(partitions=-2), 37, "Number of partitions was set to an invalid non-positive value."),
    (
        new(replicas=0),
        38,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    ),
    (
        new(replicas=-2),
        38,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    ),
    (
        new(replicas=3),
        38,
        (
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 "
            "cannot be reached because only 1 broker(s) are registered or some brokers have all "
            "their log directories cordoned."
        ),
    ),
    (new(partitions=10_001), 44, "Excessively large number of partitions per request."),
    (
        new(assignments=((0, (1,)),)),
        42,
        "A manual partition assignment was specified, but replication factor was not set to -1.",
    ),
    (
        new(replicas=-1, assignments=((0, (1,)),)),
        42,
        "A manual partition assignment was specified, but numPartitions was not set to -1.",
    ),
    (
        placed((7,)),
        39,
        "The manual partition assignment includes broker 7, but no such broker is registered.",
    ),
    (placed(()), 39, "The manual partition assignment includes an empty replica list."),
    (placed((1, 1)), 39, "The manual partition assignment includes the broker 1 more than once."),
    (
        new(partitions=-1, replicas=-1, assignments=((1, (1,)),)),
        39,
        "partitions should be a consecutive 0-based integer sequence",
    ),
    (
        new(partitions=-1, replicas=-1, assignments=((0, (1,)), (0, (1,)))),
        39,
        "Found multiple manual partition assignments for partition 0",
    ),
    (new(config=(("foo", "1"), ("retention.ms", "x"))), 40, "Unknown topic config name: foo"),
    (
        new(config=(("retention.ms", "abc"),)),
        40,
        "Invalid value abc for configuration retention.ms: Not a number of type LONG",
    ),
    (
        new(config=(("retention.ms", None),)),
        40,
        "Null value not supported for topic configs: retention.ms",
    ),
    (
        new(config=(("segment.bytes", "100"),)),
        40,
        "Invalid value 100 for configuration segment.bytes: Value must be at least 1048576",
    ),
    (
        new(config=(("min.compaction.lag.ms", "100"), ("max.compaction.lag.ms", "10"))),
        40,
        "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (10)",
    ),
]


@pytest.mark.parametrize(("topic", "code", "message"), REFUSED)
def test_a_topic_that_is_refused(
    topic: CreateTopicsRequestCreatableTopic, code: int, message: str
) -> None:
    harness = BrokerHarness({"t": 1, "a.b": 1})
    (result,) = create(harness, topic)
    assert (result.error_code, result.error_message) == (code, message)
    assert (result.topic_id, result.num_partitions, result.configs) == (ZERO, -1, ())
    assert list(harness.broker.core.broker.catalog.topics) == ["t", "a.b"]


def test_older_lines_say_less_and_allow_small_segments() -> None:
    harness = BrokerHarness(profile="4.0")
    (result,) = create(harness, new(replicas=2))
    assert result.error_message.endswith("because only 1 broker(s) are registered.")
    (result,) = create(harness, new(config=(("segment.bytes", "100"),)))
    assert result.error_code == 0
    batch = encode_batch([NewRecord(b"x")], START_MS)
    assert harness.produce_bytes("x", batch).error_code == 0


def test_a_topic_and_what_is_told_about_it() -> None:
    harness = BrokerHarness(num_partitions="4")
    config = (("retention.ms", "1000"), ("cleanup.policy", ""))
    (result,) = create(harness, new("x", -1, -1, config=config))
    topic = harness.broker.core.broker.catalog.topics["x"]
    assert (result.error_code, result.topic_id) == (0, topic.topic_id)
    assert (result.num_partitions, result.replication_factor, topic.partitions) == (4, 1, 4)
    described = {c.name: (c.value, c.config_source) for c in result.configs}
    assert described["retention.ms"] == ("1000", 1)
    assert described["segment.ms"] == ("604800000", 5)
    assert list(described) == sorted(described)
    assert len(described) == 37
    assert topic.config == {"retention.ms": "1000", "cleanup.policy": ""}


@pytest.mark.parametrize("version", range(2, 8))
def test_all_versions(version: int) -> None:
    (result,) = create(BrokerHarness(), new(), version=version)
    assert (result.name, result.error_code) == ("x", 0)
    assert (result.topic_id != ZERO) is (version >= 7)


def test_a_name_twice_and_a_dry_run_and_no_time() -> None:
    harness = BrokerHarness()
    (result,) = create(harness, new("a"), new("a"))
    assert (result.error_code, result.error_message) == (42, "Duplicate topic name.")
    assert create(harness, new("b"), validate_only=True)[0].error_code == 0
    assert create(harness, new("c"), timeout_ms=0)[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert not harness.broker.core.broker.catalog.topics
    assert create(harness) == []


def test_assignments_count_the_partitions() -> None:
    (result,) = create(BrokerHarness(), placed((1,), (1,)))
    assert (result.error_code, result.num_partitions) == (0, 2)


@pytest.mark.parametrize(
    "text", [format_topic_id(b"q" * 16), "71717171-7171-7171-7171-717171717171"]
)
def test_an_id_may_be_chosen(text: str) -> None:
    harness = BrokerHarness()
    (result,) = create(harness, new(config=(("mock.topic.id", text),)))
    assert result.topic_id == b"q" * 16
    assert harness.broker.core.broker.catalog.topics["x"].config == {}
    (again,) = create(harness, new("y", config=(("mock.topic.id", text),)))
    assert (again.error_code, again.error_message) == (
        40,
        f"mock.topic.id: {text} is zero or another topic's id",
    )


@pytest.mark.parametrize("text", ["", "xyz", "A" * 22, "00000000-0000-0000-0000-000000000000"])
def test_an_id_that_is_none(text: str) -> None:
    (result,) = create(BrokerHarness(), new(config=(("mock.topic.id", text),)))
    assert result.error_code == ErrorCode.INVALID_CONFIG


# -- deleting ------------------------------------------------------------------------------------

Entry = DeleteTopicsRequestDeleteTopicState


def delete(harness: BrokerHarness, *entries: Entry) -> list[tuple[str | None, int, str | None]]:
    response = harness.ask(DeleteTopicsRequest(topics=entries, timeout_ms=1), 6)
    return [(r.name, r.error_code, r.error_message) for r in response.responses]


def test_delete_by_name_and_by_id() -> None:
    harness = BrokerHarness({"a": 1, "b": 1, "c": 1})
    b = harness.broker.core.broker.catalog.topics["b"].topic_id
    assert delete(harness, Entry(name="a"), Entry(topic_id=b)) == [("a", 0, None), ("b", 0, None)]
    assert list(harness.broker.core.broker.catalog.topics) == ["c"]


def test_delete_refusals() -> None:
    harness = BrokerHarness({"a": 1, "b": 1})
    a = harness.broker.core.broker.catalog.topics["a"].topic_id
    unknown = "This server does not host this topic-partition."
    assert delete(harness, Entry(name="no")) == [("no", 3, unknown)]
    assert delete(harness, Entry(topic_id=b"7" * 16)) == [
        (None, 100, "This server does not host this topic ID.")
    ]
    assert delete(harness, Entry()) == [(None, 42, "Neither topic name nor id were specified.")]
    assert delete(harness, Entry(name="a", topic_id=a)) == [
        ("a", 42, "You may not specify both topic name and topic id.")
    ]
    assert delete(harness, Entry(name="b"), Entry(name="b")) == [("b", 42, "Duplicate topic name.")]
    assert delete(harness, Entry(topic_id=a), Entry(topic_id=a)) == [
        (None, 42, "Duplicate topic id.")
    ]
    assert delete(harness, Entry(name="a"), Entry(topic_id=a)) == [
        ("a", 42, "The provided topic name maps to an ID that was already supplied.")
    ]
    assert list(harness.broker.core.broker.catalog.topics) == ["a", "b"]


@pytest.mark.parametrize("version", range(1, 6))
def test_delete_by_name_in_older_versions(version: int) -> None:
    harness = BrokerHarness({"a": 1})
    request = DeleteTopicsRequest(topic_names=("a", "no"), timeout_ms=1)
    response = harness.ask(request, version)
    assert [(r.name, r.error_code) for r in response.responses] == [("no", 3), ("a", 0)]


@pytest.mark.parametrize(("version", "code"), [(6, 73), (3, 73), (2, 42)])
def test_deletion_can_be_switched_off(version: int, code: int) -> None:
    harness = BrokerHarness({"a": 1}, delete_topic_enable="false")
    request = (
        DeleteTopicsRequest(topics=(Entry(name="a"),))
        if version >= 6
        else DeleteTopicsRequest(topic_names=("a",))
    )
    assert [r.error_code for r in harness.ask(request, version).responses] == [code]
    assert harness.broker.core.broker.catalog.topics


def test_a_topic_that_comes_back_is_another() -> None:
    harness = BrokerHarness({"a": 1})
    harness.broker.produce("a", b"x")
    old = harness.broker.core.broker.catalog.topics["a"].topic_id
    harness.broker.delete_topic("a")
    assert harness.broker.create_topic("a").topic_id != old
    assert harness.broker.records("a") == []


# -- growing -------------------------------------------------------------------------------------


def grow(
    harness: BrokerHarness,
    count: int,
    assignments: tuple[tuple[int, ...], ...] | None = None,
    **more: Any,
) -> tuple[int, str | None]:
    placed_on = None
    if assignments is not None:
        placed_on = tuple(
            CreatePartitionsRequestCreatePartitionsAssignment(broker_ids=b) for b in assignments
        )
    topic = CreatePartitionsRequestCreatePartitionsTopic(
        name=more.pop("name", "t"), count=count, assignments=placed_on
    )
    version = more.pop("version", 3)
    (result,) = harness.ask(
        CreatePartitionsRequest(topics=(topic,), timeout_ms=1, **more), version
    ).results
    return result.error_code, result.error_message


@pytest.mark.parametrize(
    ("count", "assignments", "code", "message"),
    [
        (2, None, 37, "Topic already has 2 partition(s)."),
        (1, None, 37, "The topic t currently has 2 partition(s); 1 would not be an increase."),
        (-1, None, 37, "The topic t currently has 2 partition(s); -1 would not be an increase."),
        (
            4,
            ((1,),),
            39,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            3,
            (),
            39,
            "Attempted to add 1 additional partition(s), but only 0 assignment(s) were specified.",
        ),
        (
            3,
            ((9,),),
            39,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
        (3, ((),), 39, "The manual partition assignment includes an empty replica list."),
        (20_000, None, 44, "Excessively large number of additional partitions per request."),
    ],
)
def test_growth_that_is_refused(
    count: int, assignments: tuple[tuple[int, ...], ...] | None, code: int, message: str
) -> None:
    harness = BrokerHarness({"t": 2})
    assert grow(harness, count, assignments) == (code, message)
    assert harness.broker.core.broker.catalog.topics["t"].partitions == 2


@pytest.mark.parametrize("version", range(4))
def test_growth(version: int) -> None:
    harness = BrokerHarness({"t": 2})
    assert grow(harness, 4, validate_only=True, version=version) == (0, None)
    assert harness.broker.core.broker.catalog.topics["t"].partitions == 2
    assert grow(harness, 4, version=version) == (0, None)
    assert grow(harness, 5, ((1,),), version=version) == (0, None)
    assert harness.broker.core.broker.catalog.topics["t"].partitions == 5
    assert grow(harness, 9, name="no", version=version) == (3, None)


def test_growing_one_topic_twice() -> None:
    harness = BrokerHarness({"t": 2})
    twice = tuple(
        CreatePartitionsRequestCreatePartitionsTopic(name="t", count=n, assignments=None)
        for n in (3, 4)
    )
    (result,) = harness.ask(CreatePartitionsRequest(topics=twice, timeout_ms=1), 3).results
    assert (result.error_code, result.error_message) == (42, "Duplicate topic name.")


def test_a_large_growth_in_older_lines() -> None:
    assert grow(BrokerHarness({"t": 2}, profile="4.3"), 20_000) == (-1, None)


_TOO_MANY = (44, "Excessively large number of partitions per request.")
_TOO_MUCH = (44, "Unable to perform excessively large batch operation.")


@pytest.mark.parametrize(
    ("topics", "answers"),
    [
        ((new("a", 9_999),), [(0, None)]),
        ((new("a", 10_000),), [_TOO_MUCH]),
        ((new("a", 10_001),), [_TOO_MANY]),
        ((new("a", -1), new("b", 10_000)), [_TOO_MANY] * 2),
        ((new("a", -5), new("b", 10_000)), [_TOO_MUCH] * 2),
        ((new("a", 9_998, config=(("segment.bytes", "1048576"),)),), [(0, None)]),
        ((new("a", 9_999, config=(("segment.bytes", "1048576"),)),), [_TOO_MUCH]),
        ((placed(*[(1,)] * 10_001),), [_TOO_MANY]),
        ((new("a"), new("a"), new("b", 10_001)), [_TOO_MANY] * 3),
        ((new("a", 6_000), new("a", 6_000), new("b")), [(0, None), (42, "Duplicate topic name.")]),
        ((new("t"), new("b", 5_000), new("c", 4_999)), [_TOO_MUCH] * 3),
    ],
)
def test_more_than_one_request_may_create(topics: Any, answers: list[Any]) -> None:
    """Every answer here is that of Kafka 4.0.2 and 4.4.0."""
    harness = BrokerHarness({"t": 1})
    got = [(each.error_code, each.error_message) for each in create(harness, *topics)]
    assert got == answers
    if all(code for code, _ in answers):
        assert [*harness.broker.core.broker.catalog.topics] == ["t"]


@pytest.mark.parametrize(
    ("profile", "counts", "answers"),
    [
        ("4.4", (("t", 5_002), ("u", 5_002)), [0, 0]),
        ("4.4", (("t", 5_002), ("u", 5_003)), [44, 44]),
        ("4.3", (("t", 5_002), ("u", 5_003)), [0, -1]),
        ("4.4", (("t", 1), ("u", 10_004)), [44, 44]),
        ("4.4", (("no", 20_000), ("u", 4)), [3, 0]),
        ("4.4", (("no", 20_000), ("u", 10_004)), [44, 44]),
        ("4.4", (("t", 3), ("t", 3), ("u", 10_004)), [44, 44, 44]),
        ("4.3", (("t", 1), ("u", 10_004)), [37, -1]),
    ],
)
def test_more_than_one_request_may_add(profile: str, counts: Any, answers: list[int]) -> None:
    harness = BrokerHarness({"t": 2, "u": 2}, profile=profile)
    topics = tuple(
        CreatePartitionsRequestCreatePartitionsTopic(name=name, count=count, assignments=None)
        for name, count in counts
    )
    asked = CreatePartitionsRequest(topics=topics, validate_only=True, timeout_ms=1)
    assert [each.error_code for each in harness.ask(asked, 3).results] == answers


def test_adding_partitions_without_any_time() -> None:
    asked = CreatePartitionsRequestCreatePartitionsTopic(name="t", count=9, assignments=None)
    harness = BrokerHarness({"t": 2})
    (row,) = harness.ask(CreatePartitionsRequest(topics=(asked,), timeout_ms=0), 3).results
    assert (row.error_code, row.error_message) == (7, None)
    assert harness.broker.core.broker.catalog.topics["t"].partitions == 2


def test_two_topics_cannot_choose_one_id() -> None:
    wish = (("mock.topic.id", "AAAAAAAAAAAAAAAAAAAABw"),)
    rows = create(BrokerHarness(), new("a", config=wish), new("b", config=wish))
    assert [row.error_code for row in rows] == [0, 40]


def test_the_short_forms_raise() -> None:
    harness = BrokerHarness({"t": 1})
    with pytest.raises(BrokerError, match="TOPIC_ALREADY_EXISTS"):
        harness.broker.create_topic("t")
    with pytest.raises(BrokerError, match="INVALID_PARTITIONS"):
        harness.broker.add_partitions("t", 1)
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        harness.broker.delete_topic("no")
    with pytest.raises(BrokerError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        harness.broker.produce("no", b"x")
