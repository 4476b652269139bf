"""Security options as data, from files and from the command line."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from kip848_client.cli import _mock_security
from kip848_client.errors import ConfigError
from mock_coordinator import MockBroker, VirtualClock
from mock_coordinator.security import ListenerOptions, Operation, SecurityOptions


def data() -> dict[str, Any]:
    return {
        "users": {"alice": "pw"},
        "super_users": ["User:root"],
        "acls": [
            {"principal": "User:a", "operation": "READ", "resource_type": "TOPIC", "name": "t"}
        ],
        "listeners": [
            {"name": "SASL", "protocol": "SASL_PLAINTEXT", "mechanisms": ["SCRAM-SHA-256"]}
        ],
    }


def test_from_data(tmp_path: Path) -> None:
    path = tmp_path / "security.json"
    path.write_text(json.dumps(data()))
    options = SecurityOptions.from_file(str(path))
    assert options == SecurityOptions.from_data(data())
    assert options.acls[0].operation is Operation.READ
    assert options.listeners[0].mechanisms == ("SCRAM-SHA-256",)
    state = options.state()
    assert state.authorizer is not None
    assert state.authorizer.super_users == {"User:root"}
    assert state.addresses == {"SASL": {}}


def test_without_rights_there_is_no_authorizer() -> None:
    assert SecurityOptions(users={"a": "b"}).state().authorizer is None
    assert SecurityOptions(authorizer=True).state().authorizer is not None


@pytest.mark.parametrize(
    "wrong",
    [
        {"usres": {}},
        {"users": ["alice"]},
        {"users": {"alice": 1}},
        {"listeners": [{"name": 1}]},
        {"listeners": [{"name": "A", "port": 99_999}]},
        {"listeners": ["A"]},
        {"listeners": [{}]},
        {"listeners": [{"name": "A", "colour": "red"}]},
        {"listeners": [{"name": "A", "protocol": "TCP"}]},
        {"listeners": [{"name": "A", "protocol": "SASL_SSL"}]},
        {"listeners": [{"name": "A", "mechanisms": ["GSSAPI"]}]},
        {"listeners": [{"name": "A", "mechanisms": []}]},
        {"listeners": [{"name": "A", "client_auth": "perhaps"}]},
        {"acls": [{"principal": "x"}]},
    ],
)
def test_what_is_not_understood(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        SecurityOptions.from_data(wrong)


def test_two_listeners_of_one_name() -> None:
    options = SecurityOptions(listeners=(ListenerOptions(name="A"), ListenerOptions(name="A")))
    with pytest.raises(ConfigError, match="duplicate listener A"):
        options.state()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere.pem")
    listener = ListenerOptions(name="A", protocol="SSL", certificate=nowhere, key=nowhere)
    with pytest.raises(ConfigError, match="listener A"):
        listener.tls_context()
    with pytest.raises(ConfigError):
        SecurityOptions.from_file(nowhere)
    path = tmp_path / "list.json"
    path.write_text("[]")
    with pytest.raises(ConfigError, match="not a JSON object"):
        SecurityOptions.from_file(str(path))


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    _mock_security.configure(parser)
    return parser.parse_args(words)


def test_the_command_line_says_nothing() -> None:
    assert _mock_security.security_data(parsed()) is None


def test_the_command_line_adds_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "security.json"
    path.write_text(json.dumps(data()))
    arguments = parsed(
        *("--security", str(path), "--user", "bob:b:b", "--super-user", "User:bob"),
        *("--acl", "User:bob WRITE TOPIC t PREFIXED DENY"),
        *("--listener", "TLS:SSL:9093", "--tls-certificate", "c", "--tls-key", "k"),
        *("--tls-client-ca", "ca"),
    )
    found = _mock_security.security_data(arguments)
    assert found is not None
    assert found["users"] == {"alice": "pw", "bob": "b:b"}
    assert found["super_users"] == ["User:root", "User:bob"]
    options = SecurityOptions.from_data(found)
    assert [each.principal for each in options.acls] == ["User:a", "User:bob"]
    tls = options.listeners[1]
    assert (tls.port, tls.certificate, tls.key) == (9093, "c", "k")
    assert (tls.client_ca, tls.client_auth) == ("ca", "required")


@pytest.mark.parametrize(
    "words",
    [
        ("--user", "alice"),
        ("--acl", "User:alice READ"),
        ("--listener", "SASL"),
        ("--listener", "SASL:SASL_PLAINTEXT:http"),
        ("--security", "/nowhere/at/all.json"),
    ],
)
def test_arguments_that_make_no_sense(words: tuple[str, str]) -> None:
    with pytest.raises(ConfigError):
        _mock_security.security_data(parsed(*words))


def test_kafkas_own_settings_switch_the_authorizer_on() -> None:
    config = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:root; User:admin",
        "allow.everyone.if.no.acl.found": "true",
    }
    broker = MockBroker(config=config, listen=False, clock=VirtualClock())
    authorizer = broker.core.broker.disk.security.authorizer
    assert authorizer is not None
    assert authorizer.allow_if_no_acl
    assert {"User:root", "User:admin"} <= authorizer.super_users
    assert broker.core.broker.config.without_effect == ()
    idle = MockBroker(config={"super.users": "User:root"}, listen=False, clock=VirtualClock())
    assert idle.core.broker.disk.security.authorizer is None


def test_the_authorizers_settings_count_where_the_options_imply_one() -> None:
    configs = {"allow.everyone.if.no.acl.found": "true", "super.users": "User:bob"}
    options = SecurityOptions(super_users=("User:root",))
    broker = MockBroker(config=configs, security=options, listen=False)
    authorizer = broker.core.broker.disk.security.authorizer
    assert authorizer is not None
    assert authorizer.allow_if_no_acl
    assert {"User:root", "User:bob"} <= authorizer.super_users
    without = MockBroker(config=configs, listen=False)
    assert without.core.broker.disk.security.authorizer is None
