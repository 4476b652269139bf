"""Quotas, SCRAM credentials, loggers: kept, told, and gone when they should be."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.errors import TransportError
from mock_coordinator.core.security.scram_store import ScramCredential
from tests.support.plain_message import message
from tests.unit.mock_coordinator.broker_harness import BrokerHarness

SET, DELETE = 0, 1
LOGGER = 8


def alter_quota(
    harness: BrokerHarness, parts: dict[str, str | None], **values: float | None
) -> Any:
    entity = [{"entity_type": kind, "entity_name": name} for kind, name in parts.items()]
    ops = [
        {"key": key, "value": value or 0.0, "remove": value is None}
        for key, value in values.items()
    ]
    entries = [{"entity": entity, "ops": ops}]
    return harness.ask(message("AlterClientQuotas", entries=entries)).entries[0]


def quotas(harness: BrokerHarness) -> dict[Any, dict[str, float]]:
    answer = harness.ask(message("DescribeClientQuotas", components=[], strict=False))
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries
    }


def test_quotas_are_kept_by_entity_whatever_the_order_of_its_parts() -> None:
    harness = BrokerHarness()
    alter_quota(harness, {"user": "u", "client-id": "c"}, producer_byte_rate=10.0)
    alter_quota(harness, {"client-id": "c", "user": "u"}, consumer_byte_rate=20.0)
    alter_quota(harness, {"user": None}, request_percentage=12.5)
    both = (("client-id", "c"), ("user", "u"))
    assert quotas(harness) == {
        both: {"producer_byte_rate": 10.0, "consumer_byte_rate": 20.0},
        (("user", None),): {"request_percentage": 12.5},
    }
    alter_quota(harness, {"user": None}, request_percentage=None)
    alter_quota(harness, {"user": "u", "client-id": "c"}, producer_byte_rate=None)
    assert quotas(harness) == {both: {"consumer_byte_rate": 20.0}}


def test_a_refused_entry_changes_nothing() -> None:
    harness = BrokerHarness()
    refused = alter_quota(harness, {"user": "u"}, producer_byte_rate=10.0, nope=1.0)
    assert (refused.error_code, refused.error_message) == (42, "Invalid configuration key nope")
    assert not quotas(harness)


@pytest.mark.parametrize(("profile", "code"), [("4.3", 0), ("4.4", 42)])
def test_only_newer_brokers_want_finite_quotas(profile: str, code: int) -> None:
    harness = BrokerHarness(profile=profile)
    assert alter_quota(harness, {"user": "u"}, request_percentage=float("inf")).error_code == code


def test_the_credential_of_rfc_5802() -> None:
    """The example of RFC 7677, section 3: user "user", password "pencil"."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    credential = ScramCredential.from_salted_password(1, 4096, salt, salted)
    said = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,"
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    signature = hmac.digest(credential.stored_key, said, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    assert hashlib.sha256(client_key).digest() == credential.stored_key
    verifier = hmac.digest(credential.server_key, said, "sha256")
    assert base64.b64encode(verifier) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_credentials_survive_a_restart_and_passwords_are_not_kept() -> None:
    harness = BrokerHarness()
    password = b"salted password, which nobody keeps"
    upsertion = {"name": "u", "mechanism": 2, "iterations": 4096, "salt": b"s"}
    asked = message(
        "AlterUserScramCredentials",
        deletions=[],
        upsertions=[{**upsertion, "salted_password": password}],
    )
    assert harness.ask(asked).results[0].error_code == 0
    disk = harness.broker.core.restarted(harness.clock()).broker.disk
    kept = disk.scram.get("u", 2)
    assert kept is not None
    assert kept.iterations == 4096
    assert password not in (kept.salt, kept.stored_key, kept.server_key)
    asked = message(
        "AlterUserScramCredentials", deletions=[{"name": "u", "mechanism": 2}], upsertions=[]
    )
    assert harness.ask(asked).results[0].error_code == 0
    assert disk.scram.users == ()


def alter(
    harness: BrokerHarness, kind: int, name: str, key: str, operation: int, value: str | None
) -> Any:
    configs = [{"name": key, "config_operation": operation, "value": value}]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    return harness.ask(message("IncrementalAlterConfigs", resources=[resource])).responses[0]


def test_the_level_of_the_root_logger_is_kept_while_the_broker_runs() -> None:
    harness = BrokerHarness()
    assert alter(harness, LOGGER, "1", "root", SET, "LOUD").error_code == ErrorCode.INVALID_CONFIG
    assert alter(harness, LOGGER, "1", "root", SET, "DEBUG").error_code == 0
    assert alter(harness, LOGGER, "1", "root", DELETE, None).error_code == ErrorCode.INVALID_REQUEST
    assert alter(harness, LOGGER, "1", "nope", SET, "DEBUG").error_code == ErrorCode.INVALID_CONFIG
    resource = {"resource_type": LOGGER, "resource_name": "1", "configuration_keys": None}
    described = harness.ask(message("DescribeConfigs", resources=[resource])).results[0].configs
    assert [(config.name, config.value) for config in described] == [("root", "DEBUG")]


def test_replacing_settings_whole() -> None:
    harness = BrokerHarness({"t": 1})
    topic = harness.broker.core.broker.catalog.topics["t"]

    def replace(*resources: dict[str, str]) -> list[tuple[int, str | None]]:
        asked = [
            {
                "resource_type": 2,
                "resource_name": "t",
                "configs": [{"name": key, "value": value} for key, value in given.items()],
            }
            for given in resources
        ]
        answer = harness.ask(message("AlterConfigs", resources=asked))
        return [(each.error_code, each.error_message) for each in answer.responses]

    assert replace({"retention.ms": "1", "segment.ms": "2"}) == [(0, None)]
    assert replace({"segment.ms": "3"}) == [(0, None)]
    assert topic.config == {"segment.ms": "3"}
    assert replace({"segment.ms": "0"})[0][0] == 40
    with pytest.raises(TransportError, match="no response yet"):
        replace({}, {})  # one resource twice, which Kafka never answers
    assert topic.config == {"segment.ms": "3"}
    assert replace({}) == [(0, None)]
    assert not topic.config
