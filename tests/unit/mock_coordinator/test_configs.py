"""DescribeConfigs and IncrementalAlterConfigs for topics, brokers and groups."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.core.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from kip848_client.core.wire.messages.topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
)
from kip848_client.error_codes import ErrorCode
from tests.unit.mock_coordinator.broker_harness import BrokerHarness

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def describe(harness: BrokerHarness, kind: int, name: str, *keys: str, version: int = 4) -> Any:
    resource = DescribeConfigsRequestDescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys or None
    )
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
    (result,) = harness.ask(request, version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def one(
    harness: BrokerHarness, kind: int, name: str, key: str
) -> tuple[str | None, int, list[Any]]:
    (config,) = describe(harness, kind, name, key).configs
    return (
        config.value,
        config.config_source,
        [(s.name, s.value, s.source) for s in config.synonyms],
    )


def alter(
    harness: BrokerHarness, kind: int, name: str, *changes: tuple[str, int, str | None], **more: Any
) -> tuple[int, str | None]:
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            IncrementalAlterConfigsRequestAlterableConfig(name=n, config_operation=o, value=v)
            for n, o, v in changes
        ),
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), **more)
    (result,) = harness.ask(request, 1).responses
    return result.error_code, result.error_message


def test_where_a_topics_value_comes_from() -> None:
    harness = BrokerHarness({"t": 1}, message_max_bytes="100")
    name, setting = "max.message.bytes", "message.max.bytes"
    defaults = [(setting, "100", 4), (setting, "1048588", 5)]
    assert one(harness, TOPIC, "t", name) == ("100", 4, defaults)
    alter(harness, BROKER, "", (setting, SET, "200"))
    alter(harness, BROKER, "1", (setting, SET, "300"))
    alter(harness, TOPIC, "t", (name, SET, "400"))
    layers = [(name, "400", 1), (setting, "300", 2), (setting, "200", 3), *defaults]
    assert one(harness, TOPIC, "t", name) == ("400", 1, layers)
    alter(harness, TOPIC, "t", (name, DELETE, None))
    assert one(harness, TOPIC, "t", name) == ("300", 2, layers[1:])


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "no", 3, ""),
        (TOPIC, "", 17, "Topic name is invalid: the empty string is not allowed"),
        (BROKER, "9", 42, "Unexpected broker id, expected 1 or empty string, but received 9"),
        (BROKER, "x", 42, "Broker id must be an integer, but it is: x"),
        (GROUP, "", 42, "Group name must not be empty"),
        (LOGGER, "", 42, "Broker id must not be empty"),
        (LOGGER, "2", 42, "Unexpected broker id, expected 1 but received 2"),
    ],
)
def test_resources_that_cannot_be_described(kind: int, name: str, code: int, message: str) -> None:
    result = describe(BrokerHarness(), kind, name)
    assert (result.error_code, result.error_message, result.configs) == (code, message, ())


@pytest.mark.parametrize("kind", [0, 16, 77])
def test_an_unknown_kind_of_resource(kind: int) -> None:
    result = describe(BrokerHarness(), kind, "x")
    assert result.error_code == ErrorCode.INVALID_REQUEST
    assert result.error_message.startswith("This most likely occurs because of a request")


def test_all_settings_and_named_ones() -> None:
    harness = BrokerHarness({"t": 1})
    assert len(describe(harness, TOPIC, "t").configs) == 37
    assert len(describe(BrokerHarness({"t": 1}, profile="4.0"), TOPIC, "t").configs) == 33
    assert len(describe(harness, GROUP, "g").configs) == 21
    assert len(describe(harness, BROKER, "1").configs) == 350
    found = describe(harness, TOPIC, "t", "retention.ms", "nope").configs
    assert [c.name for c in found] == ["retention.ms"]
    assert describe(harness, TOPIC, "t", "retention.ms", version=1).configs[0].config_type == 0


def test_read_only_and_sensitive_settings() -> None:
    harness = BrokerHarness(ssl_key_password="secret")
    found = {c.name: c for c in describe(harness, BROKER, "1").configs}
    assert found["num.partitions"].read_only
    assert not found["message.max.bytes"].read_only
    assert found["ssl.key.password"].is_sensitive
    assert found["ssl.key.password"].value is None
    assert "secret" not in repr(found["ssl.key.password"])


def test_a_group_without_and_with_its_own_settings() -> None:
    harness = BrokerHarness()
    key, setting = "consumer.session.timeout.ms", "group.consumer.session.timeout.ms"
    assert one(harness, GROUP, "g", key) == ("45000", 5, [(setting, "45000", 5)])
    assert alter(harness, GROUP, "g", (key, SET, "50000")) == (0, None)
    assert one(harness, GROUP, "g", key)[:2] == ("50000", 8)
    assert harness.broker.core.broker.config.consumer_session_timeout_ms("g") == 50_000
    older = BrokerHarness(profile="4.2")
    assert one(older, GROUP, "g", key) == ("45000", 5, [(key, "45000", 5)])
    assert alter(older, GROUP, "g", (key, SET, "50000")) == (0, None)
    assert one(older, GROUP, "g", key) == ("50000", 8, [(key, "50000", 8)])


@pytest.mark.parametrize(
    ("kind", "name", "change", "code", "message"),
    [
        (
            TOPIC,
            "t",
            ("retention.ms", SET, "x"),
            40,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (TOPIC, "t", ("nope", SET, "x"), 40, "Unknown topic config name: nope"),
        (
            TOPIC,
            "t",
            ("retention.ms", SET, None),
            42,
            "Null value not supported for : retention.ms",
        ),
        (
            TOPIC,
            "t",
            ("retention.ms", APPEND, "1"),
            40,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            TOPIC,
            "t",
            ("retention.ms", SUBTRACT, "1"),
            40,
            "Can't SUBTRACT to key retention.ms because its type is not LIST.",
        ),
        (TOPIC, "t", ("retention.ms", 9, "1"), -1, None),
        (TOPIC, "t", ("nope", DELETE, None), 0, None),
        (TOPIC, "no", ("retention.ms", SET, "1"), 3, "The topic 'no' does not exist."),
        (TOPIC, "", ("retention.ms", SET, "1"), 42, "Default topic resources are not allowed."),
        (
            GROUP,
            "",
            ("consumer.session.timeout.ms", SET, "1"),
            42,
            "Default group resources are not allowed.",
        ),
        (GROUP, "g", ("nope", SET, "1"), 40, "Unknown group config name: nope"),
        (
            GROUP,
            "g",
            ("consumer.session.timeout.ms", SET, "x"),
            40,
            (
                "Invalid value x for configuration consumer.session.timeout.ms: Not a number of "
                "type INT"
            ),
        ),
        (
            GROUP,
            "g",
            ("consumer.session.timeout.ms", SET, "0"),
            40,
            (
                "Invalid value 0 for configuration consumer.session.timeout.ms: Value must be at "
                "least 1"
            ),
        ),
        (
            GROUP,
            "g",
            ("consumer.session.timeout.ms", SET, "100"),
            40,
            "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
        ),
        (
            GROUP,
            "g",
            ("consumer.assignment.interval.ms", SET, "-1"),
            40,
            (
                "Invalid value -1 for configuration consumer.assignment.interval.ms: Value must "
                "be at least 0"
            ),
        ),
        (
            BROKER,
            "1",
            ("num.partitions", SET, "3"),
            42,
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        (
            BROKER,
            "1",
            ("message.max.bytes", SET, "x"),
            42,
            "Invalid value x for configuration message.max.bytes: Not a number of type INT",
        ),
        (
            BROKER,
            "9",
            ("message.max.bytes", SET, "1"),
            42,
            "Unexpected broker id, expected 1, but received 9",
        ),
        (
            BROKER,
            "x",
            ("message.max.bytes", SET, "1"),
            42,
            "Node id must be an integer, but it is: x",
        ),
        (BROKER, "1", ("nope", SET, "x"), 0, None),
        (LOGGER, "1", ("a", SET, "1"), 40, "Logger a does not exist!"),
        (77, "x", ("a", SET, "1"), 42, "Unknown resource type 77"),
    ],
)
def test_alterations_and_their_answers(
    kind: int, name: str, change: tuple[str, int, str | None], code: int, message: str | None
) -> None:
    assert alter(BrokerHarness({"t": 1}), kind, name, change) == (code, message)


@pytest.mark.parametrize("value", ["100", "70000"])
def test_bounds_in_older_words(value: str) -> None:
    key = "consumer.session.timeout.ms"
    code, message = alter(BrokerHarness(profile="4.3"), GROUP, "g", (key, SET, value))
    bound = (
        "greater than or equal to group.consumer.min" if value == "100" else "less than or equal"
    )
    assert code == ErrorCode.INVALID_CONFIG
    assert message is not None
    assert message.startswith(f"{key} must be {bound}")


def test_older_lines_list_settings_as_scala_does() -> None:
    _, message = alter(BrokerHarness(profile="4.2"), BROKER, "1", ("num.partitions", SET, "3"))
    assert message == "Cannot update these configs dynamically: Set(num.partitions)"


def test_lists_grow_and_shrink() -> None:
    harness = BrokerHarness({"t": 1})
    key = "cleanup.policy"
    assert alter(harness, TOPIC, "t", (key, APPEND, "compact")) == (0, None)
    assert one(harness, TOPIC, "t", key)[0] == "delete,compact"
    assert alter(harness, TOPIC, "t", (key, APPEND, "compact")) == (0, None)
    assert alter(harness, TOPIC, "t", (key, SUBTRACT, "delete")) == (0, None)
    assert one(harness, TOPIC, "t", key)[0] == "compact"


def test_a_resource_is_altered_as_a_whole_or_not_at_all() -> None:
    harness = BrokerHarness({"t": 1})
    code, _ = alter(harness, TOPIC, "t", ("flush.ms", SET, "1"), ("retention.ms", SET, "x"))
    assert code == ErrorCode.INVALID_CONFIG
    twice = ("flush.ms", SET, "1"), ("flush.ms", SET, "2")
    assert alter(harness, TOPIC, "t", *twice) == (42, "Error due to duplicate config keys")
    assert alter(harness, TOPIC, "t", ("flush.ms", SET, "1"), validate_only=True) == (0, None)
    assert harness.broker.core.broker.catalog.topics["t"].config == {}
    assert alter(harness, TOPIC, "t") == (0, None)


def test_a_resource_named_twice() -> None:
    harness = BrokerHarness({"t": 1})
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=TOPIC, resource_name="t", configs=()
    )
    request = IncrementalAlterConfigsRequest(resources=(resource, resource))
    answers = harness.ask(request, 0).responses
    expected = (42, "Each resource must appear at most once.")
    assert [(a.error_code, a.error_message) for a in answers] == [expected, expected]


def test_elr_pins_min_insync_replicas_since_4_1() -> None:
    assert describe(BrokerHarness(), BROKER, "").configs[0].name == "min.insync.replicas"
    assert describe(BrokerHarness(profile="4.0"), BROKER, "").configs == ()


EMPTY = "Configuration 'cleanup.policy' values must not be empty."


@pytest.mark.parametrize(
    ("operation", "value", "problem"),
    [
        (APPEND, "", EMPTY),
        (APPEND, ",compact", EMPTY),
        (SET, "compact,", EMPTY),
        (APPEND, ",", None),
        (APPEND, "compact,", None),
        (SET, "", None),
    ],
)
def test_a_list_has_nothing_empty(operation: int, value: str, problem: str | None) -> None:
    """Judged before the question whether the topic exists."""
    harness = BrokerHarness({"t": 1})
    change = ("cleanup.policy", operation, value)
    expected = (3, "The topic 'no' does not exist.") if problem is None else (40, problem)
    assert alter(harness, TOPIC, "no", change) == expected
    assert alter(harness, TOPIC, "t", change) == ((0, None) if problem is None else (40, problem))


def test_before_4_2_an_empty_element_is_a_wrong_one() -> None:
    said = "Invalid value  for configuration cleanup.policy: String must be one of: compact, delete"
    harness = BrokerHarness({"t": 1}, profile="4.1")
    assert alter(harness, TOPIC, "t", ("cleanup.policy", APPEND, "")) == (40, said)


@pytest.mark.parametrize(("profile", "shown"), [("4.1", "compact,compact"), ("4.2", "compact")])
def test_a_value_is_shown_as_it_was_understood(profile: str, shown: str) -> None:
    harness = BrokerHarness({"t": 1}, profile=profile)
    changes = [("cleanup.policy", " compact ,compact"), ("preallocate", "TRUE"), ("flush.ms", " 7")]
    alter(harness, TOPIC, "t", *((name, SET, text) for name, text in changes))
    found = [one(harness, TOPIC, "t", name)[0] for name, _ in changes]
    assert found == [shown, "true", "7"]


def test_throttled_replicas_are_pairs_or_a_star() -> None:
    harness = BrokerHarness({"t": 1})
    name = "leader.replication.throttled.replicas"
    assert alter(harness, TOPIC, "t", (name, SET, "0:1,1:1")) == (0, None)
    text = (
        f"Invalid value [0:1, 1:1, *] for configuration {name}: {name} must be the literal '*' or "
        "a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )
    assert alter(harness, TOPIC, "t", (name, APPEND, "*")) == (40, text)
    for text in ("*", "*,", "0:1,0:1", ""):
        assert alter(harness, TOPIC, "t", (name, SET, text)) == (0, None)
        assert one(harness, TOPIC, "t", name)[0] == text


@pytest.mark.parametrize("reverse", [False, True])
def test_of_several_wrong_values_the_one_that_is_looked_at_first_is_told(reverse: bool) -> None:
    harness = BrokerHarness({"t": 1})
    wrong = [("retention.ms", SET, "-2"), ("flush.messages", SET, "0"), ("flush.ms", SET, "x")]
    changes = reversed(wrong) if reverse else wrong
    text = "Invalid value 0 for configuration flush.messages: Value must be at least 1"
    assert alter(harness, TOPIC, "t", *changes) == (40, text)
    wrong = [
        ("consumer.session.timeout.ms", SET, "1"),
        ("consumer.heartbeat.interval.ms", SET, "99999"),
    ]
    changes = reversed(wrong) if reverse else wrong
    text = "consumer.heartbeat.interval.ms must be in the range 5000 to 15000 inclusive."
    assert alter(harness, GROUP, "g", *changes) == (40, text)
    wrong.append(("share.auto.offset.reset", SET, "never"))
    assert "Invalid value never for" in (alter(harness, GROUP, "g", *wrong)[1] or "")


def test_a_session_must_be_longer_than_the_heartbeat_interval() -> None:
    harness = BrokerHarness(group_consumer_min_session_timeout_ms="1000")
    text = "consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms"
    session = ("consumer.session.timeout.ms", SET, "5000")
    assert alter(harness, GROUP, "g", session) == (40, text)
    assert alter(harness, GROUP, "g", ("consumer.session.timeout.ms", SET, "5001")) == (0, None)
    assert alter(harness, GROUP, "g", ("consumer.heartbeat.interval.ms", SET, "5001")) == (40, text)


def test_a_new_topics_settings_are_told_as_they_were_given() -> None:
    harness = BrokerHarness()
    config = CreateTopicsRequestCreatableTopicConfig(name="min.cleanable.dirty.ratio", value="0.50")
    topic = CreateTopicsRequestCreatableTopic(
        name="t", num_partitions=1, replication_factor=1, configs=(config,)
    )
    (created,) = harness.ask(CreateTopicsRequest(topics=(topic,), timeout_ms=1000), 7).topics
    assert {each.name: each.value for each in created.configs}[config.name] == "0.50"
    assert one(harness, TOPIC, "t", config.name)[0] == "0.5"
