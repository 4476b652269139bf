"""Settings: what Kafka's tables say, and what is refused in which words."""

from __future__ import annotations

import pytest

from kip848_client.errors import ConfigError
from mock_coordinator.core.profiles import PROFILES, profile_named
from mock_coordinator.core.settings.broker_config import EFFECTIVE, BrokerConfig
from mock_coordinator.core.settings.setting import SettingValue
from mock_coordinator.core.settings.tables.broker import BROKER_SETTINGS
from mock_coordinator.core.settings.tables.group import GROUP_SETTINGS
from mock_coordinator.core.settings.tables.topic import TOPIC_SETTINGS


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("num.partitions", " 7 ", 7),
        ("auto.create.topics.enable", "FALSE", False),
        ("group.consumer.assignors", "range, uniform", ("range", "uniform")),
        ("group.consumer.assignors", "", ()),
        ("broker.rack", "a", "a"),
        ("group.consumer.migration.policy", "Upgrade", "Upgrade"),
        ("log.cleaner.min.cleanable.ratio", "0.25", 0.25),
        ("ssl.key.password", " x ", " x "),
        ("broker.rack", None, None),
    ],
)
def test_values_are_typed(name: str, text: str | None, value: SettingValue) -> None:
    assert BROKER_SETTINGS[name].parse(text) == value


@pytest.mark.parametrize(
    ("table", "name", "text", "said"),
    [
        (
            "topic",
            "retention.ms",
            "abc",
            "abc for configuration retention.ms: Not a number of type LONG",
        ),
        ("topic", "retention.ms", "1_000", "Not a number of type LONG"),
        (
            "topic",
            "retention.ms",
            "-5",
            "-5 for configuration retention.ms: Value must be at least -1",
        ),
        ("topic", "max.message.bytes", "3000000000", "Not a number of type INT"),
        ("topic", "compression.lz4.level", "99", "Value must be no more than 17"),
        ("topic", "compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("topic", "min.cleanable.dirty.ratio", "2", "Invalid value 2.0 for"),
        ("topic", "min.cleanable.dirty.ratio", "x", "Not a number of type DOUBLE"),
        ("topic", "preallocate", "yes", "Expected value to be either true or false"),
        (
            "topic",
            "message.timestamp.type",
            "foo",
            "String must be one of: CreateTime, LogAppendTime",
        ),
        (
            "topic",
            "cleanup.policy",
            "delete,foo",
            "Invalid value foo for configuration cleanup.policy",
        ),
        ("broker", "group.consumer.migration.policy", "off", "(case insensitive): DISABLED, "),
    ],
)
def test_values_are_refused_in_kafkas_words(table: str, name: str, text: str, said: str) -> None:
    settings = TOPIC_SETTINGS if table == "topic" else BROKER_SETTINGS
    with pytest.raises(ValueError, match="Invalid value") as refused:
        settings[name].parse(text)
    assert said in str(refused.value)


def test_every_default_passes_its_own_check() -> None:
    for settings in (BROKER_SETTINGS, TOPIC_SETTINGS, GROUP_SETTINGS):
        for setting in settings.values():
            setting.parse(setting.default)


def test_every_broker_setting_behind_a_topic_or_group_setting_exists() -> None:
    for setting in (*TOPIC_SETTINGS.values(), *GROUP_SETTINGS.values()):
        assert setting.broker_name is None or setting.broker_name in BROKER_SETTINGS


def test_what_has_an_effect_is_a_setting_of_kafkas() -> None:
    assert sorted(EFFECTIVE - BROKER_SETTINGS.keys()) == []


def test_defaults_are_kafkas() -> None:
    config = BrokerConfig()
    assert config.integer("group.consumer.session.timeout.ms") == 45_000
    assert config.consumer_heartbeat_interval_ms("g") == 5000
    assert config.consumer_assignment_interval_ms("g") == 1000
    assert config.listing("group.consumer.assignors") == ("uniform", "range")
    assert config.boolean("auto.create.topics.enable")
    assert config.node_id == 1
    assert config.rack is None
    assert config.without_effect == ()


def test_older_lines_have_other_defaults() -> None:
    older = BrokerConfig(profile_named("4.0"))
    assert older.listing("group.coordinator.rebalance.protocols") == ("classic", "consumer")
    assert older.consumer_assignment_interval_ms("g") == 0


@pytest.mark.parametrize("name", PROFILES)
def test_a_setting_of_a_later_line_is_accepted_and_named(name: str) -> None:
    given = {"group.consumer.assignment.interval.ms": "0"}
    config = BrokerConfig(profile_named(name), given)
    assert config.without_effect == (() if config.profile.has_assignment_interval else tuple(given))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"num.partition": "1"}, "did you mean num.partitions"),
        ({"zzz": "1"}, "unknown broker setting 'zzz'"),
        ({"num.partitions": "0"}, "Value must be at least 1"),
        (
            {"group.consumer.session.timeout.ms": "1000"},
            "session.timeout.ms must be greater than or equal to group.consumer.min.session",
        ),
        (
            {"group.consumer.heartbeat.interval.ms": "20000"},
            "must be less than or equal to group.consumer.max.heartbeat.interval.ms",
        ),
        (
            {"group.consumer.max.session.timeout.ms": "10"},
            "max.session.timeout.ms must be greater than or equal to group.consumer.min",
        ),
        (
            {
                "group.consumer.min.session.timeout.ms": "5000",
                "group.consumer.session.timeout.ms": "5000",
            },
            "heartbeat.interval.ms must be less than group.consumer.session.timeout.ms",
        ),
    ],
)
def test_a_configuration_that_kafka_would_refuse(values: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        BrokerConfig(values=values)
    assert said in str(refused.value)


def test_layers_and_their_order() -> None:
    config = BrokerConfig(values={"message.max.bytes": "1"})
    assert config.integer("message.max.bytes") == 1
    config.replace_overrides(cluster={"message.max.bytes": "2"})
    assert config.integer("message.max.bytes") == 2
    config.replace_overrides(broker={"message.max.bytes": "3", "unheard.of": "x"})
    assert config.text("message.max.bytes") == "3"
    config.replace_overrides(broker={})
    assert config.text("message.max.bytes") == "2"


def test_a_bad_override_changes_nothing() -> None:
    config = BrokerConfig()
    with pytest.raises(ConfigError, match="Not a number"):
        config.replace_overrides(broker={"message.max.bytes": "x"})
    config.replace_overrides(broker={"message.max.bytes": "5"}, dry_run=True)
    assert config.integer("message.max.bytes") == 1_048_588


def test_a_group_overrides_the_broker() -> None:
    config = BrokerConfig()
    config.set_group_overrides("g", {"consumer.session.timeout.ms": "50000"})
    assert config.consumer_session_timeout_ms("g") == 50_000
    assert config.consumer_session_timeout_ms("other") == 45_000
    assert list(config.groups_with_overrides) == ["g"]
    config.set_group_overrides("g", {})
    assert not config.groups_with_overrides


def test_an_unknown_profile_names_the_known() -> None:
    with pytest.raises(ConfigError, match=r"expected one of 4\.0, 4\.1, 4\.2, 4\.3, 4\.4"):
        profile_named("5.0")
