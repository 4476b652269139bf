"""Kafka's client properties (``security.protocol``, ``fetch.min.bytes``, ...) as our settings.

For settings in Kafka's own form: ``--command-config`` files, and the ``kafka.`` options of Spark.
Certificates and keys are PEM. Kafka's default, a Java keystore (JKS, PKCS12), cannot be read by
Python: the error says how to make a PEM of it.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Any, Final

from kip848_client.config._tls import Pem, tls_context
from kip848_client.core.secrets import shown_setting
from kip848_client.errors import ConfigError

__all__ = [
    "CLIENT_PROPERTIES",
    "CONSUMER_PROPERTIES",
    "PRODUCER_PROPERTIES",
    "WORKER_PROPERTIES",
    "client_settings",
    "consumer_settings",
    "producer_settings",
    "worker_settings",
]

_NUMBERS: Final = {
    "request.timeout.ms": "request_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "connections.max.idle.ms": "connections_max_idle_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "metadata.recovery.rebootstrap.trigger.ms": "metadata_recovery_rebootstrap_trigger_ms",
}
_TEXTS: Final = {
    "client.id": "client_id",
    "metadata.recovery.strategy": "metadata_recovery_strategy",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
}
_CONSUMER_NUMBERS: Final = {
    "default.api.timeout.ms": "default_api_timeout_ms",
    "fetch.max.bytes": "fetch_max_bytes",
    "fetch.max.wait.ms": "fetch_max_wait_ms",
    "fetch.min.bytes": "fetch_min_bytes",
    "max.decompressed.batch.bytes": "max_decompressed_batch_bytes",
    "max.partition.fetch.bytes": "max_partition_fetch_bytes",
    "max.poll.interval.ms": "max_poll_interval_ms",
}
_CONSUMER_TEXTS: Final = {
    "client.rack": "client_rack",
    "group.instance.id": "group_instance_id",
    "group.remote.assignor": "group_remote_assignor",
    "isolation.level": "isolation_level",
}
_CONSUMER_TRUTHS: Final = {
    "allow.auto.create.topics": "allow_auto_create_topics",
    "check.crcs": "check_crcs",
}
_PRODUCER_NUMBERS: Final = {
    "batch.size": "max_batch_size",
    "buffer.memory": "buffer_memory",
    "delivery.timeout.ms": "delivery_timeout_ms",
    "linger.ms": "linger_ms",
    "max.block.ms": "max_block_ms",
    "max.in.flight.requests.per.connection": "max_in_flight_requests_per_connection",
    "max.request.size": "max_request_size",
    "metadata.max.idle.ms": "metadata_max_idle_ms",
    "transaction.timeout.ms": "transaction_timeout_ms",
}
_PRODUCER_TEXTS: Final = {"acks": "acks", "compression.type": "compression_type"}
_WORKER_NUMBERS: Final = {
    "heartbeat.interval.ms": "heartbeat_interval_ms",
    "rebalance.timeout.ms": "rebalance_timeout_ms",
    "scheduled.rebalance.max.delay.ms": "scheduled_rebalance_max_delay_ms",
    "session.timeout.ms": "session_timeout_ms",
    "task.shutdown.graceful.timeout.ms": "task_shutdown_graceful_timeout_ms",
    "worker.sync.timeout.ms": "worker_sync_timeout_ms",
    "worker.unsync.backoff.ms": "worker_unsync_backoff_ms",
}
_WORKER_TEXTS: Final = {
    "connect.protocol": "connect_protocol",
    "group.id": "group_id",
    "group.instance.id": "group_instance_id",
    "group.protocol": "group_protocol",
}
_LOGIN: Final = re.compile(
    r"\b(username|password)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s;\"']+))"
)
_NEVER: Final = ("connections.max.idle.ms",)
"""Times for which -1 means never."""
_DIGITS_MAX: Final = 19
_SECRETS: Final = (
    "sasl.jaas.config",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.type",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
)

CLIENT_PROPERTIES: Final = frozenset([*_NUMBERS, *_TEXTS, *_SECRETS])
"""What ``client_settings`` heeds; any other property it leaves alone."""

CONSUMER_PROPERTIES: Final = CLIENT_PROPERTIES.union(
    _CONSUMER_NUMBERS, _CONSUMER_TEXTS, _CONSUMER_TRUTHS
)
"""What ``consumer_settings`` heeds."""

PRODUCER_PROPERTIES: Final = CLIENT_PROPERTIES.union(
    _PRODUCER_NUMBERS, _PRODUCER_TEXTS, ["enable.idempotence"]
)
"""What ``producer_settings`` heeds."""

WORKER_PROPERTIES: Final = CLIENT_PROPERTIES.union(_WORKER_NUMBERS, _WORKER_TEXTS)
"""The properties that ``worker_settings`` reads."""


def consumer_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Take a consumer's settings from Kafka's properties.

    Group and topics are not among them. The properties in ``CONSUMER_PROPERTIES`` are read, and
    others ignored.

    Args:
        properties: Values by name, as in a properties file of Kafka.

    Returns:
        Settings for ``Consumer``: those of ``client_settings``, and those of fetching, isolation,
        rack and instance id.

    Raises:
        ConfigError: A value cannot be read; the text names the property.
    """
    properties = _trimmed(properties)
    settings = client_settings(properties) | _taken(properties, _CONSUMER_TEXTS, _CONSUMER_NUMBERS)
    for key, name in _CONSUMER_TRUTHS.items():
        if key in properties:
            settings[name] = _truth(key, properties[key])
    return settings


def producer_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Take a producer's settings from Kafka's properties, except its transactional id.

    The properties in ``PRODUCER_PROPERTIES`` are read, and others ignored.

    Args:
        properties: Values by name, as in a properties file of Kafka.

    Returns:
        Settings for ``Producer``.

    Raises:
        ConfigError: A value cannot be read; the text names the property.
    """
    properties = _trimmed(properties)
    settings = client_settings(properties) | _taken(properties, _PRODUCER_TEXTS, _PRODUCER_NUMBERS)
    if "enable.idempotence" in properties:
        settings["enable_idempotence"] = _truth(
            "enable.idempotence", properties["enable.idempotence"]
        )
    return settings


def worker_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Take a worker's settings from the properties file of a Kafka Connect worker.

    The properties in ``WORKER_PROPERTIES`` are read, and others ignored.

    Args:
        properties: Values by name.

    Returns:
        Settings for ``Worker``.

    Raises:
        ConfigError: A value cannot be read; the text names the property.
    """
    properties = _trimmed(properties)
    return client_settings(properties) | _taken(properties, _WORKER_TEXTS, _WORKER_NUMBERS)


def client_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Take the settings that every client has from Kafka's properties.

    The properties in ``CLIENT_PROPERTIES`` are read, and others ignored.

    Args:
        properties: Values by name, as in a properties file of Kafka.

    Returns:
        Settings for any client: connections, time and security.

    Raises:
        ConfigError: A value cannot be read; the text names the property.
    """
    properties = _trimmed(properties)
    settings = _taken(properties, _TEXTS, _NUMBERS)
    protocol = settings.get("security_protocol", "PLAINTEXT").upper()
    if "security_protocol" in settings:
        settings["security_protocol"] = protocol
    if protocol.startswith("SASL"):
        settings |= _credentials(properties, settings.get("sasl_mechanism", "GSSAPI"))
    if protocol.endswith("SSL"):
        settings["ssl_context"] = _ssl_context(properties)
    return settings


def _trimmed(properties: Mapping[str, str]) -> dict[str, str]:
    """As Kafka takes values: a blank at the end of a line is none of theirs."""
    return {key: value.strip() for key, value in properties.items()}


def _taken(
    properties: Mapping[str, str], texts: Mapping[str, str], numbers: Mapping[str, str]
) -> dict[str, Any]:
    """The properties in these tables, under our names."""
    found: dict[str, Any] = {}
    for key, name in texts.items():
        if key in properties:
            found[name] = properties[key]
    for key, name in numbers.items():
        if key in properties:
            found[name] = _number(key, properties[key])
    return found


def _number(key: str, text: str) -> int | None:
    if key in _NEVER and text == "-1":
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS_MAX:
        unit = "milliseconds" if key.endswith(".ms") else "bytes"
        raise ConfigError(f"{key}={shown_setting(key, text)} is not a number of {unit}")
    return int(text)


def _truth(key: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{key}={shown_setting(key, text)} is neither true nor false")
    return text.lower() == "true"


def _credentials(properties: Mapping[str, str], mechanism: str) -> dict[str, Any]:
    """User and password of ``sasl.jaas.config``. (Kafka's default mechanism is GSSAPI.)"""
    if mechanism == "GSSAPI":
        return {"sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        raise ConfigError(
            "sasl.mechanism=OAUTHBEARER needs a token provider, which properties cannot name; "
            "use kip848_client.Admin with sasl_oauth_token_provider"
        )
    login = properties.get("sasl.jaas.config", "")
    said = {
        each[1]: each[3] or each[4] or re.sub(r"\\(.)", r"\1", each[2] or "")
        for each in _LOGIN.finditer(login)
    }
    if not said.get("username") or not said.get("password"):
        raise ConfigError(
            f'{mechanism} needs sasl.jaas.config with username="..." and password="...";'
        )
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": said["username"],
        "sasl_plain_password": said["password"],
    }


def _ssl_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    trusted = _pem(properties, "truststore", "ssl.truststore.certificates")
    chain = _pem(properties, "keystore", "ssl.keystore.certificate.chain")
    key = None
    if "ssl.keystore.key" in properties:
        key = Pem("ssl.keystore.key", None, properties["ssl.keystore.key"])
    return tls_context(
        trusted=trusted,
        chain=chain,
        key=key,
        password=properties.get("ssl.key.password"),
        password_name="ssl.key.password",
        check_hostname=properties.get("ssl.endpoint.identification.algorithm", "https") != "",
    )


def _pem(properties: Mapping[str, str], which: str, inline: str) -> Pem | None:
    """What is said in the file itself, else the file that it names. Raises ``ConfigError`` for a
    keystore of Java's."""
    kind = properties.get(f"ssl.{which}.type")
    if kind is not None and kind.upper() != "PEM":
        raise _not_pem(which, kind, properties.get(f"ssl.{which}.location"))
    if inline in properties:
        return Pem(inline, None, properties[inline])
    location = properties.get(f"ssl.{which}.location")
    if location is None:
        return None
    if kind is None:
        raise _not_pem(which, "JKS", location)
    return Pem(f"ssl.{which}.location", location)


def _not_pem(which: str, kind: str, location: str | None) -> ConfigError:
    shown_kind = shown_setting("type", kind.upper())
    named = (
        f"ssl.{which}.type={shown_kind} is a store"
        if location is None
        else f"ssl.{which}.location={shown_setting('file', location)} is a {shown_kind} store"
    )
    return ConfigError(
        f"{named}, which Python cannot read; make a PEM file of it (keytool -importkeystore "
        "-deststoretype PKCS12, then openssl pkcs12 -nodes) and set "
        f"ssl.{which}.type=PEM and ssl.{which}.location"
    )
