"""Settings: what is accepted, what is refused, and in which words."""

from __future__ import annotations

import logging
import ssl
from typing import Any

import pytest
from pydantic import ValidationError

from kip848_client.config import CLASSIC_ONLY, ConsumerConfig, ConsumerSettings, parse_duration_ms
from kip848_client.errors import ConfigError


def test_defaults_are_kafkas() -> None:
    config = ConsumerConfig.of({})
    assert config.max_poll_interval_ms == config.poll_interval_ms == 300_000
    assert config.auto_commit_interval_ms == 5_000
    assert config.auto_offset_reset == "latest"
    assert config.request_timeout_ms == 30_000
    assert config.default_api_timeout_ms == 60_000
    assert config.callback_timeout_ms == 300_000
    assert config.metadata_recovery_strategy == "rebootstrap"
    assert config.metadata_recovery_rebootstrap_trigger_ms == 300_000


def test_the_typed_keywords_are_the_settings() -> None:
    typed = set(ConsumerSettings.__annotations__)
    assert typed == {*ConsumerConfig.model_fields, *CLASSIC_ONLY, "strict"}


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"group_id": " "}, "group_id = ' ': must not be empty"),
        ({"group_instance_id": ""}, "group_instance_id"),
        ({"max_poll_interval_ms": 0}, "max_poll_interval_ms = 0"),
        ({"auto_commit_interval_ms": "soon"}, "auto_commit_interval_ms = 'soon'"),
        ({"isolation_level": "dirty"}, "read_uncommitted"),
        ({"bootstrap_servers": " "}, "bootstrap_servers"),
        ({"bootstrap_servers": []}, "bootstrap_servers"),
        ({"auto_offset_reset": "newest"}, "must be earliest, latest, none or by_duration"),
        ({"auto_offset_reset": "by_duration:5"}, "ISO 8601"),
        ({"security_protocol": "TLS"}, "security_protocol"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "sasl_plain_username"),
        ({"max_poll_interval_ms": 2_592_000_000}, "max_poll_interval_ms = 2592000000"),
        ({"rebalance_timeout_ms": 2**31}, "less than or equal to 2147483647"),
        ({"request_timeout_ms": 2**31}, "request_timeout_ms"),
        ({"fetch_max_bytes": 2**31}, "fetch_max_bytes"),
        ({"fetch_buffer_bytes": 0}, "fetch_buffer_bytes"),
        ({"metadata_recovery_strategy": "pray"}, "'none' or 'rebootstrap'"),
        ({"metadata_recovery_rebootstrap_trigger_ms": -1}, "rebootstrap_trigger_ms = -1"),
        ({"max_partition_fetch_bytes": 2**31}, "max_partition_fetch_bytes"),
        ({"fetch_min_bytes": 2**31}, "fetch_min_bytes"),
        ({"fetch_max_wait_ms": 2**31}, "fetch_max_wait_ms"),
        ({"default_api_timeout_ms": 2**63}, "default_api_timeout_ms"),
        ({"retry_backoff_ms": float("nan")}, "retry_backoff_ms"),
        ({"auto_commit_interval_ms": -1}, "auto_commit_interval_ms = -1"),
        ({"client_rack": "r" * 40_000}, r"client_rack.*32767 at most"),
        ({"group_instance_id": "i" * 40_000}, r"group_instance_id.*32767 at most"),
        ({"group_id": "g" * 32_768}, r"group_id.*has 32768 bytes"),
        ({"group_id": "\u00e9" * 16_384}, r"group_id.*has 32768 bytes"),
        ({"group_id": "\ud800"}, r"group_id.*cannot be written as UTF-8"),
        ({"client_id": "\udfff"}, "client_id"),
        ({"group_remote_assignor": "a" * 40_000}, "group_remote_assignor"),
        ({"group_protocol": "classic"}, r"group_protocol = 'classic'.*aiokafka\.AIOKafkaConsumer"),
        ({"group_protocol": 5}, "group_protocol = 5"),
        ({"group_protocol": None}, "group_protocol"),
        ({"strict": "yes"}, "strict = 'yes'"),
        ({"bootstrap_servers": "localhost:abc"}, r"'localhost:abc': a port is a number"),
        ({"bootstrap_servers": b"localhost:1"}, "not bytes"),
        ({"group.id": "g"}, "did you mean group_id"),
        ({"heartbeat_interval": 3}, "did you mean heartbeat_interval_ms"),
        ({"nonsense": 3}, "unknown setting 'nonsense'$"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ConsumerConfig.of(settings)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"sasl_mechanism": "SCRAM-SHA-256"}, "SCRAM-SHA-256 needs sasl_plain_username"),
        ({"sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": "u"}, "SCRAM-SHA-512 needs"),
        ({"sasl_plain_username": "u"}, "PLAIN needs"),
        ({"sasl_mechanism": "OAUTHBEARER"}, "needs sasl_oauth_token_provider"),
        (
            {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": "token"},
            "needs sasl_oauth_token_provider",
        ),
        ({"sasl_plain_username": "u", "sasl_plain_password": "\ud800"}, "UTF-8"),
        ({"sasl_mechanism": "DIGEST-MD5"}, "sasl_mechanism"),
    ],
)
def test_credentials_that_are_missing_are_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        ConsumerConfig.of({"security_protocol": "SASL_PLAINTEXT", **settings})


@pytest.mark.parametrize(
    ("protocol", "tls"), [("PLAINTEXT", "SSL"), ("SASL_PLAINTEXT", "SASL_SSL")]
)
def test_an_ssl_context_is_never_ignored(protocol: str, tls: str) -> None:
    settings = {
        "ssl_context": ssl.create_default_context(),
        "security_protocol": protocol,
        "sasl_plain_username": "u",
        "sasl_plain_password": "p",
    }
    with pytest.raises(ConfigError, match=f"set security_protocol to {tls}"):
        ConsumerConfig.of(settings)


def test_the_limits_themselves_fit() -> None:
    config = ConsumerConfig.of(
        {
            "max_poll_interval_ms": 2**31 - 1,
            "group_id": "g" * 32_767,
            "auto_commit_interval_ms": 2**63 - 1,
            "group_protocol": "CONSUMER",
        }
    )
    assert config.group_protocol == "consumer"


def test_an_interval_of_0_commits_as_often_as_possible() -> None:
    assert ConsumerConfig.of({"auto_commit_interval_ms": 0}).commit_interval_ms == 10
    assert ConsumerConfig.of({}).commit_interval_ms == 5_000
    assert ConsumerConfig.of({"enable_auto_commit": False}).commit_interval_ms is None


def test_a_long_value_is_not_repeated_whole() -> None:
    with pytest.raises(ConfigError) as caught:
        ConsumerConfig.of({"client_rack": "r" * 40_000})
    assert len(str(caught.value)) < 300


def test_a_password_is_never_shown() -> None:
    secret = {"sasl_plain_password": 5, "security_protocol": "SASL_PLAINTEXT"}
    with pytest.raises(ConfigError) as caught:
        ConsumerConfig.of(secret)
    assert "5" not in str(caught.value)
    config = ConsumerConfig.of({"sasl_plain_password": "hunter2"})
    assert "hunter2" not in repr(config)


def test_empty_rack_and_assignor_mean_unset() -> None:
    config = ConsumerConfig.of({"client_rack": "", "group_remote_assignor": ""})
    assert (config.client_rack, config.group_remote_assignor) == (None, None)


def test_aiokafkas_rebalance_timeout_is_the_poll_interval() -> None:
    config = ConsumerConfig.of({"rebalance_timeout_ms": 7_000})
    assert (config.poll_interval_ms, config.callback_timeout_ms) == (7_000, 7_000)
    assert ConsumerConfig.of({"rebalance_callback_timeout_ms": 5}).callback_timeout_ms == 5


def test_a_list_of_servers_is_kept() -> None:
    assert ConsumerConfig.of({"bootstrap_servers": ["a:1", "b:2"]}).bootstrap_servers == (
        "a:1",
        "b:2",
    )


def test_tls_and_sasl_are_passed_on() -> None:
    context = ssl.create_default_context()
    config = ConsumerConfig.of(
        {
            "security_protocol": "SASL_SSL",
            "ssl_context": context,
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_plain_username": "u",
            "sasl_plain_password": "p",
        }
    )
    assert config.security["ssl_context"] is context
    assert config.security["sasl_mechanism"] == "SCRAM-SHA-256"
    assert set(config.security) == {
        "security_protocol",
        "ssl_context",
        "sasl_mechanism",
        "sasl_plain_username",
        "sasl_plain_password",
        "sasl_kerberos_service_name",
        "sasl_kerberos_domain_name",
        "sasl_oauth_token_provider",
    }


@pytest.mark.parametrize("name", sorted(CLASSIC_ONLY))
def test_classic_settings_are_reported_or_refused(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "kip848_client"):
        ConsumerConfig.of({name: "value"})
    assert [name in record.getMessage() for record in caplog.records] == [True]
    with pytest.raises(ConfigError, match=name):
        ConsumerConfig.of({name: "value", "strict": True})
    caplog.clear()
    ConsumerConfig.of({name: None, "strict": True})
    assert not caplog.records


def test_a_config_is_frozen() -> None:
    config = ConsumerConfig.of({})
    with pytest.raises(ValidationError, match="frozen"):
        config.group_id = "g"


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("PT5S", 5_000),
        ("pt1h30m", 5_400_000),
        ("P2D", 172_800_000),
        ("P1DT0.5S", 86_400_500),
    ],
)
def test_durations(text: str, expected_ms: int) -> None:
    assert parse_duration_ms(text) == expected_ms


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "5S", "PT5", "P5S", "-PT5S", "PT-5S", "PTxS", "PT5S1M", "P1DT", "PT5SP"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="ISO 8601"):
        parse_duration_ms(text)


def test_the_recovery_strategy_may_be_written_as_in_kafka() -> None:
    config = ConsumerConfig.of({"metadata_recovery_strategy": "REBOOTSTRAP"})
    assert config.metadata_recovery_strategy == "rebootstrap"
