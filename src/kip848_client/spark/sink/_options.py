"""The options of the sink: those of Spark's own Kafka sink, under its names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kip848_client.config import (
    PRODUCER_PROPERTIES,
    PRODUCER_WITHOUT_EFFECT,
    ProducerConfig,
    client_settings,
    producer_settings,
)
from kip848_client.core.secrets import Properties
from kip848_client.errors import ConfigError

__all__ = ["SinkOptions", "sink_options"]

_OURS: Final = ("topic", "failondataloss")
_KNOWN: Final = sorted([*PRODUCER_PROPERTIES, "bootstrap.servers", "transactional.id"])
_TRANSACTION_TIMEOUT_MS: Final = 900_000
"""The most that brokers allow by default. A batch and its repetition after a crash must not take
longer: a transaction that times out between decision and commit is lost."""
_CLOSE: Final = 0.75
"""How similar a name must be to be suggested: less misleads."""
_MAX_BLOCK_MS: Final = 60_000
"""Kafka's default."""
_SPARKS: Final = ("checkpointlocation", "path", "queryname", "includeheaders")
"""Options that Spark passes on, or that its own sink accepts and ignores."""
_REFUSED: Final = {
    "key.serializer": "keys are binary or string; make them with DataFrame functions",
    "value.serializer": "values are binary or string; make them with DataFrame functions",
    "interceptor.classes": "Python clients have no interceptors",
    "partitioner.class": "set the column partition instead",
    "partitioner.ignore.keys": "set the column partition instead",
    "transaction.two.phase.commit.enable": "kafka.transactional.id alone writes exactly once",
    "ssl.engine.factory.class": "Java classes cannot be used; certificates and keys are in PEM",
    "ssl.cipher.suites": "Python's OpenSSL has its own names; its secure defaults are used",
    "ssl.enabled.protocols": "Python's OpenSSL uses TLS 1.2 and 1.3",
    "ssl.protocol": "Python's OpenSSL uses TLS 1.2 and 1.3",
    "config.providers": "set the values themselves",
    "security.providers": "Java classes cannot be used",
    "sasl.login.class": "Java classes cannot be used",
    "group.id": "a sink does not read",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The options of a query that writes, after validation."""

    properties: Mapping[str, str]
    """Kafka's own, without ``kafka.``."""
    topic: str | None = None
    """The topic of all rows; it overrides the column ``topic``."""
    name: str | None = None
    """``kafka.transactional.id``, with which rows are written exactly once. It names the query in
    Kafka: the transactional ids of its tasks begin with it, and the group of this name stores
    decisions."""
    fails_on_data_loss: bool = True
    without_effect: Mapping[str, str] = field(default_factory=dict[str, str])
    """Properties of Kafka that are accepted and have no effect, each with the reason."""

    @property
    def max_block_ms(self) -> int:
        """``max.block.ms``: how long a writer waits for brokers that cannot be reached."""
        found: int = producer_settings(self.properties).get("max_block_ms", _MAX_BLOCK_MS)
        return found

    def client_settings(self) -> dict[str, Any]:
        """The settings of a ``Producer``. Raises ``ConfigError``."""
        settings = producer_settings(self.properties)
        settings["bootstrap_servers"] = self.properties["bootstrap.servers"]
        if self.name is not None:
            settings.setdefault("transaction_timeout_ms", _TRANSACTION_TIMEOUT_MS)
        return settings

    def admin_settings(self) -> dict[str, Any]:
        """The settings of an ``Admin``."""
        return {
            **client_settings(self.properties),
            "bootstrap_servers": self.properties["bootstrap.servers"],
        }


def sink_options(said: Mapping[str, str]) -> SinkOptions:
    """The options of a user, validated. Raises ``ConfigError``, which names the option and a
    remedy."""
    options = {str(name).lower(): str(value) for name, value in said.items()}
    _check_names(options)
    properties = Properties(
        (name.removeprefix("kafka."), value)
        for name, value in options.items()
        if name.startswith("kafka.")
    )
    name = properties.pop("transactional.id", None)
    if name is not None and not name.strip():
        raise ConfigError("kafka.transactional.id is empty")
    if name is None and "transaction.timeout.ms" in properties:
        raise ConfigError(
            "kafka.transaction.timeout.ms needs kafka.transactional.id, with which rows are "
            "written exactly once"
        )
    without_effect = _check_properties(properties)
    topic = options.get("topic")
    if topic is not None and not topic.strip():
        raise ConfigError("topic is empty")
    truth = options.get("failondataloss", "true").lower()
    if truth not in ("true", "false"):
        raise ConfigError(f"failOnDataLoss must be true or false, got {truth!r}")
    found = SinkOptions(
        properties=properties,
        topic=topic,
        name=name,
        fails_on_data_loss=truth == "true",
        without_effect=without_effect,
    )
    ProducerConfig.of({**found.client_settings(), "transactional_id": name})
    return found


def _check_names(options: Mapping[str, str]) -> None:
    for name in options:
        if name.startswith("kafka.") or name in _OURS or name in _SPARKS:
            continue
        close = difflib.get_close_matches(
            name, ["topic", "failOnDataLoss", *(f"kafka.{each}" for each in _KNOWN)]
        )
        meant = f"; did you mean {close[0]}?" if close else ""
        raise ConfigError(f"writing with format kip848 has no option {name!r}{meant}")


def _check_properties(properties: dict[str, str]) -> dict[str, str]:
    """Remove the properties without effect; returns them, each with the reason. Raises
    ``ConfigError``."""
    if not properties.get("bootstrap.servers"):
        raise ConfigError("option kafka.bootstrap.servers is missing: HOST:PORT[,HOST:PORT]")
    without_effect = {
        name: why
        for name, why in PRODUCER_WITHOUT_EFFECT.items()
        if properties.pop(name, None) is not None
    }
    for name in properties:
        if name in _REFUSED:
            raise ConfigError(f"option kafka.{name} cannot be set: {_REFUSED[name]}")
        if name not in _KNOWN:
            close = difflib.get_close_matches(name, _KNOWN, cutoff=_CLOSE)
            meant = f"; did you mean kafka.{close[0]}?" if close else ""
            raise ConfigError(f"writing with format kip848 has no option 'kafka.{name}'{meant}")
    return without_effect
