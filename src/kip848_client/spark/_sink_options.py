"""The options of the sink: those of Spark's own Kafka sink by its names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kip848_client.config import PRODUCER_PROPERTIES, ProducerConfig, producer_settings
from kip848_client.errors import ConfigError

__all__ = ["SinkOptions", "sink_options"]

_OURS: Final = ("topic",)
_SPARKS: Final = ("checkpointlocation", "path", "queryname", "includeheaders")
"""What Spark passes on, and what its own sink takes without a meaning."""
_REFUSED: Final = {
    "key.serializer": "keys are bytes or texts; make them with functions of DataFrames",
    "value.serializer": "values are bytes or texts; make them with functions of DataFrames",
    "interceptor.classes": "there are no interceptors in Python",
    "partitioner.class": "the column partition says where a row goes",
    "retries": "what is tried again is bounded by kafka.delivery.timeout.ms",
    "group.id": "nothing is read here",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The options of a query that writes, checked."""

    properties: Mapping[str, str]
    """Kafka's own, without ``kafka.``."""
    topic: str | None = None
    """Where all rows go, whatever the column ``topic`` says."""

    def client_settings(self) -> dict[str, Any]:
        """The settings of a ``Producer``. Raises ``ConfigError``."""
        settings = producer_settings(self.properties)
        settings["bootstrap_servers"] = self.properties["bootstrap.servers"]
        return settings


def sink_options(said: Mapping[str, str]) -> SinkOptions:
    """What a user said, checked. Raises ``ConfigError`` that names the option and the way out."""
    options = {str(name).lower(): str(value) for name, value in said.items()}
    _check_names(options)
    properties = {
        name.removeprefix("kafka."): value
        for name, value in options.items()
        if name.startswith("kafka.")
    }
    _check_properties(properties)
    topic = options.get("topic")
    if topic is not None and not topic.strip():
        raise ConfigError("topic is empty")
    found = SinkOptions(properties=properties, topic=topic)
    ProducerConfig.of(found.client_settings())
    return found


def _check_names(options: Mapping[str, str]) -> None:
    for name in options:
        if name.startswith("kafka.") or name in _OURS or name in _SPARKS:
            continue
        close = difflib.get_close_matches(
            name, [*_OURS, *(f"kafka.{each}" for each in PRODUCER_PROPERTIES)]
        )
        meant = f"; did you mean {close[0]}?" if close else ""
        raise ConfigError(f"writing with format kip848 has no option {name!r}{meant}")


def _check_properties(properties: Mapping[str, str]) -> None:
    if not properties.get("bootstrap.servers"):
        raise ConfigError("option kafka.bootstrap.servers is missing: HOST:PORT[,HOST:PORT]")
    for name in properties:
        if name in _REFUSED:
            raise ConfigError(f"option kafka.{name} cannot be set: {_REFUSED[name]}")
        if name not in PRODUCER_PROPERTIES and name != "bootstrap.servers":
            close = difflib.get_close_matches(name, PRODUCER_PROPERTIES)
            meant = f"; did you mean kafka.{close[0]}?" if close else ""
            raise ConfigError(
                f"writing with format kip848 does not know option kafka.{name}{meant}"
            )
