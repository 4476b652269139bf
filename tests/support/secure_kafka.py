"""A real Kafka broker with an authorizer, SASL and TLS listeners, for tests of the security
surface.

The PLAINTEXT listener belongs to the administrator: its principal, User:ANONYMOUS, is a super
user. The SASL listener (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512) is where principals with rights of
their own connect.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from dataclasses import dataclass

from tests.support.broker_folder import broker_folder
from tests.support.kafka_broker import KafkaBroker, free_ports
from tests.support.real_kafka import RealKafka

__all__ = ["SecureKafka", "start_secure_kafka"]

_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"

_CONFIGS = {
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,"
        "SHORT:SASL_PLAINTEXT,TLS:SSL,MUTUAL:SSL,SASLTLS:SASL_SSL"
    ),
    "inter.broker.listener.name": "PLAINTEXT",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:root",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "auto.create.topics.enable": "true",
}


@dataclass(frozen=True, slots=True)
class SecureKafka:
    """A running broker and the ports of its listeners, by name."""

    kafka: RealKafka
    ports: Mapping[str, int]


@contextlib.contextmanager
def start_secure_kafka(
    version: str,
    users: Mapping[str, str],
    *,
    configs: Mapping[str, str] | None = None,
    pem: Mapping[str, str] | None = None,
) -> Generator[SecureKafka]:
    """Run a broker for the length of a ``with`` block.

    ``users`` are the names and passwords of SASL/PLAIN. The listener SHORT is as SASL with sessions
    of two seconds (KIP-368). ``pem`` (keys ``chain``, ``key``, ``ca``: PEM texts) adds the TLS
    listeners TLS, MUTUAL (client certificates required) and SASLTLS.
    """
    names = ["PLAINTEXT", "CONTROLLER", "SASL", "SHORT"]
    if pem is not None:
        names += ["TLS", "MUTUAL", "SASLTLS"]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    settings = {**_CONFIGS, **_listener_settings(ports, users), **_tls_settings(pem)}
    with broker_folder() as folder:
        broker = KafkaBroker(version, folder, {**settings, **(configs or {})})
        broker.port = ports["PLAINTEXT"]
        try:
            broker.start()
            kafka = RealKafka(broker)
            kafka.await_coordinator()
            yield SecureKafka(kafka, ports)
        finally:
            broker.discard()


def _listener_settings(ports: Mapping[str, int], users: Mapping[str, str]) -> dict[str, str]:
    listeners = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    advertised = ",".join(
        f"{name}://127.0.0.1:{port}" for name, port in ports.items() if name != "CONTROLLER"
    )
    accounts = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    settings = {
        "listeners": listeners,
        "advertised.listeners": advertised,
        "controller.quorum.voters": f"1@127.0.0.1:{ports['CONTROLLER']}",
        "listener.name.short.plain.connections.max.reauth.ms": "2000",
    }
    for listener in ("sasl", "short", "sasltls"):
        prefix = f"listener.name.{listener}"
        settings[f"{prefix}.plain.sasl.jaas.config"] = f"{_PLAIN_MODULE} required {accounts};"
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"{prefix}.{mechanism}.sasl.jaas.config"] = f"{_SCRAM_MODULE} required;"
    return settings


def _tls_settings(pem: Mapping[str, str] | None) -> dict[str, str]:
    if pem is None:
        return {}

    def one_line(text: str) -> str:
        return " ".join(text.split("\n"))

    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": one_line(pem["chain"]),
        "ssl.keystore.key": one_line(pem["key"]),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": one_line(pem["ca"]),
        "listener.name.mutual.ssl.client.auth": "required",
    }
