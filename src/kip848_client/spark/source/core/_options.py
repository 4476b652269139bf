"""The options of the source: those of Spark's own Kafka source, under its names, and a few of ours.

Executors get the options as text, and make the settings of their client from them. Pure.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast, get_args

from kip848_client.config import (
    CONSUMER_PROPERTIES,
    CONSUMER_WITHOUT_EFFECT,
    consumer_settings,
    parse_duration_ms,
)
from kip848_client.core.secrets import Properties
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.spark.source.core._begin import OnGroupReset
from kip848_client.spark.source.core._manifest import Ownership
from kip848_client.spark.source.core._offset_limits import (
    BEGIN,
    END,
    OffsetRangeLimit,
    partitions_of,
    range_limit_from,
)

__all__ = ["SourceOptions", "source_options"]

_OURS: Final = ("ownership", "tasks", "control", "checkpoint", "ongroupreset")
_THEIRS: Final = (
    "assign",
    "subscribe",
    "subscribepattern",
    "startingtimestamp",
    "startingoffsetsbytimestamp",
    "startingoffsets",
    "startingoffsetsbytimestampstrategy",
    "endingtimestamp",
    "endingoffsetsbytimestamp",
    "endingoffsets",
    "failondataloss",
    "includeheaders",
    "kafkaconsumer.polltimeoutms",
    "fetchoffset.numretries",
    "fetchoffset.retryintervalms",
    "maxoffsetspertrigger",
    "minoffsetspertrigger",
    "maxtriggerdelay",
    "minpartitions",
    "maxrecordsperpartition",
    "groupidprefix",
)
_STARTING: Final = ("startingtimestamp", "startingoffsetsbytimestamp", "startingoffsets")
_SPOKEN: Final = {
    "ongroupreset": "onGroupReset",
    "subscribepattern": "subscribePattern",
    "startingtimestamp": "startingTimestamp",
    "startingoffsets": "startingOffsets",
    "endingoffsets": "endingOffsets",
    "failondataloss": "failOnDataLoss",
    "includeheaders": "includeHeaders",
    "maxoffsetspertrigger": "maxOffsetsPerTrigger",
    "minoffsetspertrigger": "minOffsetsPerTrigger",
    "maxtriggerdelay": "maxTriggerDelay",
    "minpartitions": "minPartitions",
    "maxrecordsperpartition": "maxRecordsPerPartition",
    "kafkaconsumer.polltimeoutms": "kafkaConsumer.pollTimeoutMs",
}
_REFUSED: Final = {
    "auto.offset.reset": "use startingOffsets",
    "enable.auto.commit": "offsets are committed when Spark has committed a batch",
    "key.deserializer": "keys are bytes; decode them with DataFrame functions",
    "value.deserializer": "values are bytes; decode them with DataFrame functions",
    "interceptor.classes": "Python clients have no interceptors",
    "ssl.engine.factory.class": "Java classes cannot be used; certificates and keys are in PEM",
    "ssl.cipher.suites": "Python's OpenSSL has its own names; its secure defaults are used",
    "ssl.enabled.protocols": "Python's OpenSSL uses TLS 1.2 and 1.3",
    "ssl.protocol": "Python's OpenSSL uses TLS 1.2 and 1.3",
    "config.providers": "set the values themselves",
    "security.providers": "Java classes cannot be used",
    "sasl.login.class": "Java classes cannot be used",
    "group.protocol": "ownership=shared uses KIP-848, ownership=exclusive does not join a group",
}
_API_TIMEOUT_MS: Final = 60_000
"""Kafka's default."""
_CLOSE: Final = 0.8
"""How similar a name must be to be suggested: less misleads."""
_DURATION: Final = re.compile(r"(\d+)\s*(ms|s|m|min|h|d)?")
_UNITS: Final = {
    "ms": 1,
    None: 1,
    "s": 1_000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of a query, after validation."""

    properties: Mapping[str, str]
    """Kafka's own, without ``kafka.``."""
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()
    group_id: str | None = None
    ownership: Ownership = "exclusive"
    """``shared``: the query is a member of the group; ``exclusive``: it reads all partitions."""
    sets_ownership: bool = False
    """Whether the user set it."""
    starting: OffsetRangeLimit
    ending: OffsetRangeLimit
    fails_on_data_loss: bool = True
    with_headers: bool = False
    poll_timeout_ms: int = 120_000
    """How long a task may wait for records before it fails."""
    limit: int | None = None
    """``maxOffsetsPerTrigger``."""
    at_least: int | None = None
    """``minOffsetsPerTrigger``: the query waits for that many, but not longer than ``delay_ms``."""
    delay_ms: int = 900_000
    """``maxTriggerDelay``."""
    tasks: int | None = None
    least_tasks: int | None = None
    """``minPartitions``: at least one task per partition, and at least that many."""
    longest_task: int | None = None
    """``maxRecordsPerPartition``."""
    without_effect: Mapping[str, str] = field(default_factory=dict[str, str])
    """Properties of Kafka that are accepted and have no effect, each with the reason."""
    control: str | None = None
    checkpoint: str | None = None
    """The query's ``checkpointLocation``, to see at once that Spark has committed a batch."""
    on_group_reset: OnGroupReset = "fail"
    sets_starting: bool = False
    """Whether the user set one of ``startingOffsets`` and its relatives."""

    @property
    def is_shared(self) -> bool:
        """Whether the query is a member of its group."""
        return self.ownership == "shared"

    @property
    def api_timeout_ms(self) -> int:
        """``default.api.timeout.ms``: how long a question to the brokers is repeated. It ends
        before ``kafkaConsumer.pollTimeoutMs``, so that the reason is reported."""
        settings = consumer_settings(self.properties)
        found: int = settings.get("default_api_timeout_ms", _API_TIMEOUT_MS)
        return max(1, min(found, self.poll_timeout_ms * 3 // 4))

    def client_settings(self) -> dict[str, Any]:
        """The settings of a ``Consumer``, without group and topics. Raises ``ConfigError``."""
        settings = consumer_settings(self.properties)
        settings["bootstrap_servers"] = self.properties["bootstrap.servers"]
        return settings


def source_options(said: Mapping[str, str], *, is_stream: bool) -> SourceOptions:
    """The options of a user, validated. Raises ``ConfigError``, which names the option and a
    remedy."""
    options = {str(name).lower(): str(value) for name, value in said.items()}
    _check_names(options)
    properties = Properties(
        (name.removeprefix("kafka."), value)
        for name, value in options.items()
        if name.startswith("kafka.")
    )
    without_effect = _check_properties(properties)
    group_id = properties.pop("group.id", None)
    if group_id == "":
        raise ConfigError("kafka.group.id is empty")
    ownership = _ownership(options, group_id, is_stream=is_stream)
    starting = range_limit_from(options, "starting", "latest" if is_stream else "earliest", BEGIN)
    if not is_stream and starting.everywhere == END:
        raise ConfigError("startingOffsets=latest: a batch query would read nothing")
    found = SourceOptions(
        properties=properties,
        **_what(options),
        group_id=group_id,
        ownership=ownership,
        sets_ownership="ownership" in options,
        starting=starting,
        ending=range_limit_from(options, "ending", "latest", END),
        fails_on_data_loss=_truth(options, "failondataloss", default=True),
        with_headers=_truth(options, "includeheaders", default=False),
        poll_timeout_ms=_count(options, "kafkaconsumer.polltimeoutms") or 120_000,
        limit=_count(options, "maxoffsetspertrigger"),
        at_least=_count(options, "minoffsetspertrigger"),
        delay_ms=_duration(options, "maxtriggerdelay", 900_000),
        tasks=_count(options, "tasks"),
        least_tasks=_count(options, "minpartitions"),
        without_effect=without_effect,
        longest_task=_count(options, "maxrecordsperpartition"),
        control=options.get("control"),
        checkpoint=options.get("checkpoint"),
        on_group_reset=_on_group_reset(options),
        sets_starting=any(name in options for name in _STARTING),
    )
    if found.at_least and found.limit and found.at_least > found.limit:
        raise ConfigError(
            f"minOffsetsPerTrigger={found.at_least} is more than maxOffsetsPerTrigger={found.limit}"
        )
    if found.is_shared and found.assigned:
        raise ConfigError(
            "ownership=shared cannot be used with assign: the group assigns the partitions; use "
            "subscribe, or ownership=exclusive"
        )
    found.client_settings()
    return found


def _check_names(options: Mapping[str, str]) -> None:
    known = [*_OURS, *_THEIRS]
    for name in options:
        if name.startswith("kafka.") or name in known or name == "path":
            continue
        close = difflib.get_close_matches(
            name, [*known, *(f"kafka.{p}" for p in CONSUMER_PROPERTIES)], cutoff=_CLOSE
        )
        meant = f"; did you mean {_spoken(close[0])}?" if close else ""
        raise ConfigError(f"format kip848 has no option {name!r}{meant}")
    if "groupidprefix" in options:
        raise ConfigError("groupIdPrefix is not supported; name a group with kafka.group.id")


def _check_properties(properties: dict[str, str]) -> dict[str, str]:
    """Remove the properties without effect; returns them, each with the reason. Raises
    ``ConfigError``."""
    if not properties.get("bootstrap.servers"):
        raise ConfigError("option kafka.bootstrap.servers is missing: HOST:PORT[,HOST:PORT]")
    without_effect = {
        name: why
        for name, why in CONSUMER_WITHOUT_EFFECT.items()
        if properties.pop(name, None) is not None
    }
    for name in properties:
        if name in _REFUSED:
            raise ConfigError(f"option kafka.{name} cannot be set: {_REFUSED[name]}")
        if name not in CONSUMER_PROPERTIES and name not in ("bootstrap.servers", "group.id"):
            close = difflib.get_close_matches(name, CONSUMER_PROPERTIES, cutoff=_CLOSE)
            meant = f"; did you mean kafka.{close[0]}?" if close else ""
            raise ConfigError(f"format kip848 has no option 'kafka.{name}'{meant}")
    return without_effect


def _what(options: Mapping[str, str]) -> dict[str, Any]:
    """The topics or partitions to read, from exactly one of three options."""
    ways = [name for name in ("assign", "subscribe", "subscribepattern") if name in options]
    if len(ways) != 1:
        raise ConfigError(
            "set exactly one of the options subscribe, subscribePattern and assign; got "
            f"{' and '.join(map(_spoken, ways)) or 'none of them'}"
        )
    said = options[ways[0]].strip()
    if ways[0] == "assign":
        return {"assigned": partitions_of("assign", said)}
    if not said:
        raise ConfigError(f"{_spoken(ways[0])} is empty")
    if ways[0] == "subscribe":
        topics = [each.strip() for each in said.split(",")]
        if not all(topics):
            raise ConfigError(f"subscribe={said!r} names an empty topic")
        return {"topics": tuple(sorted(set(topics)))}
    try:
        re.compile(said)
    except re.error as err:
        raise ConfigError(f"subscribePattern={said!r}: {err}") from err
    return {"pattern": said}


def _ownership(options: Mapping[str, str], group_id: str | None, *, is_stream: bool) -> Ownership:
    said = options.get("ownership", "exclusive").lower()
    if said == "exclusive":
        return "exclusive"
    if said != "shared":
        raise ConfigError(f"ownership must be 'shared' or 'exclusive', got {said!r}")
    if group_id is None:
        raise ConfigError("ownership=shared needs a group: set kafka.group.id")
    if not is_stream:
        raise ConfigError("ownership=shared is for streams: a batch query does not join a group")
    return "shared"


def _on_group_reset(options: Mapping[str, str]) -> OnGroupReset:
    said = options.get("ongroupreset", "fail").lower()
    for known in get_args(OnGroupReset):
        if said == known:
            return cast("OnGroupReset", known)
    raise ConfigError(f"onGroupReset must be fail, group or checkpoint, got {said!r}")


def _spoken(name: str) -> str:
    return _SPOKEN.get(name, name)


def _truth(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    said = options.get(name, str(default)).lower()
    if said not in ("true", "false"):
        raise ConfigError(f"{_spoken(name)} must be true or false, got {said!r}")
    return said == "true"


def _count(options: Mapping[str, str], name: str) -> int | None:
    said = options.get(name)
    if said is None:
        return None
    if not (said.isascii() and said.isdecimal() and int(said) > 0):
        raise ConfigError(f"{_spoken(name)} must be a positive integer, got {said!r}")
    return int(said)


def _duration(options: Mapping[str, str], name: str, default: int) -> int:
    """Spark's ``15m``, or ISO 8601's ``PT15M``."""
    said = options.get(name)
    if said is None:
        return default
    found = _DURATION.fullmatch(said.strip().lower())
    if found is not None:
        return int(found[1]) * _UNITS[found[2]]
    try:
        return parse_duration_ms(said)
    except ValueError as err:
        raise ConfigError(f"{_spoken(name)}={said!r} is not a duration like 15m or 90s") from err
