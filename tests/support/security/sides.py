"""A real broker and ours, both with an authorizer, both asked through their SASL listeners.

``real_side`` and ``mock_side`` give the same thing: an administrator's connection, connections of
users, bare connections to a listener, and topics. Play the same on both and compare.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kip848_client.core.types import TopicId, format_topic_id
from mock_coordinator.core.profiles import profile_named
from tests.support.plain_message import message
from tests.support.secure_kafka import start_secure_kafka
from tests.support.wire_connection import ConnectionLostError, WireConnection

__all__ = ["PASSWORD", "SecureSide", "User", "mock_side", "real_side"]

PASSWORD: Final = "secret-of-{}"
"""Of each user."""

_HOST: Final = "127.0.0.1"
_START_TIMEOUT_S: Final = 30
_STOP_TIMEOUT_S: Final = 10
_SESSION_MS: Final = 2000


@dataclass(frozen=True, slots=True)
class SecureSide:
    """A running broker. ``ports`` has PLAINTEXT (the administrator's: User:ANONYMOUS is a super
    user), SASL, and SHORT, whose sessions last two seconds; perhaps TLS, MUTUAL and SASLTLS."""

    ports: Mapping[str, int]
    create_topic: Callable[[str, int], TopicId]

    def connect(self, listener: str = "PLAINTEXT", **options: Any) -> WireConnection:
        """A connection about which nothing is said yet."""
        return WireConnection(_HOST, self.ports[listener], **options)

    def login(self, user: str) -> User:
        """A connection of a user."""
        return User(self, user)


class User:
    """A user's connection; one that the broker closes is opened again."""

    def __init__(self, side: SecureSide, name: str) -> None:
        self._side: Final = side
        self._name: Final = name
        self._connection = self._open()

    def _open(self) -> WireConnection:
        connection = self._side.connect("SASL")
        answer = connection.request(message("SaslHandshake", mechanism="PLAIN"), 1)
        assert answer.error_code == 0, answer
        token = f"\0{self._name}\0{PASSWORD.format(self._name)}".encode()
        answer = connection.request(message("SaslAuthenticate", auth_bytes=token), 2)
        assert answer.error_code == 0, answer
        return connection

    @property
    def name(self) -> str:
        """Who the connection belongs to."""
        return self._name

    def request(self, request: Any, version: int) -> Any:
        """The response message, or ``None`` when the connection was closed instead."""
        try:
            return self._connection.request(request, version)
        except ConnectionLostError:
            self._connection.close()
            self._connection = self._open()
            return None

    def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def real_side(
    version: str,
    users: Iterable[str],
    pem: Mapping[str, str] | None = None,
    configs: Mapping[str, str] | None = None,
) -> Generator[SecureSide]:
    """Apache Kafka of a release."""
    accounts = {name: PASSWORD.format(name) for name in users}
    with start_secure_kafka(version, accounts, pem=pem, configs=configs) as secure:
        yield SecureSide(secure.ports, secure.kafka.create_topic)


@contextlib.contextmanager
def mock_side(
    profile: str,
    users: Iterable[str],
    ids: Mapping[str, bytes],
    folder: Path,
    tls: Mapping[str, str] | None = None,
    more: Mapping[str, str] | None = None,
) -> Generator[SecureSide]:
    """Our broker, started through its command line; topics get the ids that are given. ``tls`` (a
    listener's ``certificate``, ``key`` and ``client_ca``) adds the TLS listeners. ``more`` are
    settings of the broker."""
    security: dict[str, Any] = {
        "users": {name: PASSWORD.format(name) for name in users},
        "super_users": ["User:ANONYMOUS", "User:root"],
        "listeners": [
            {"name": "SASL", "protocol": "SASL_PLAINTEXT"},
            {"name": "SHORT", "protocol": "SASL_PLAINTEXT", "max_reauth_ms": _SESSION_MS},
            *_tls_listeners(tls),
        ],
    }
    names = ("PLAINTEXT", *(each["name"] for each in security["listeners"]))
    path = folder / "security.json"
    path.write_text(json.dumps(security))
    configs = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    if profile_named(profile).has_assignment_interval:
        configs["group.consumer.assignment.interval.ms"] = "0"
    configs |= more or {}
    command = [sys.executable, "-m", "kip848_client", "mock", "--profile", profile]
    command += [f"--config={key}={value}" for key, value in configs.items()]
    with subprocess.Popen(
        [*command, "--security", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            ports = _ports(process, names)
            plain = ports["PLAINTEXT"]
            yield SecureSide(ports, lambda name, count: _create(plain, name, count, ids))
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_TIMEOUT_S)
            process.kill()


def _tls_listeners(tls: Mapping[str, str] | None) -> list[dict[str, str]]:
    if tls is None:
        return []
    return [
        {"name": "TLS", "protocol": "SSL", **tls},
        {"name": "MUTUAL", "protocol": "SSL", "client_auth": "required", **tls},
        {"name": "SASLTLS", "protocol": "SASL_SSL", **tls},
    ]


def _ports(process: subprocess.Popen[str], names: tuple[str, ...]) -> dict[str, int]:
    """The ports that a started mock prints, a line each."""
    assert process.stdout is not None
    killer = threading.Timer(_START_TIMEOUT_S, process.kill)
    killer.start()
    lines = [process.stdout.readline() for _ in names]
    killer.cancel()
    assert all(" on " in line for line in lines), f"the mock did not start: {lines}"
    return {name: int(line.rpartition(":")[2]) for name, line in zip(names, lines, strict=True)}


def _create(port: int, name: str, count: int, ids: Mapping[str, bytes]) -> TopicId:
    config = {"name": "mock.topic.id", "value": format_topic_id(ids[name])}
    topic = {"name": name, "num_partitions": count, "replication_factor": 1, "configs": [config]}
    with WireConnection(_HOST, port) as admin:
        answer = admin.request(message("CreateTopics", timeout_ms=10_000, topics=[topic]), 7)
    assert answer.topics[0].error_code == 0, answer
    return TopicId(answer.topics[0].topic_id)
