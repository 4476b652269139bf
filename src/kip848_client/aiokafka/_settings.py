"""Maps the arguments of aiokafka's constructors to our settings.

aiokafka's defaults stay, because programs are tuned to them. Settings of the classic protocol have
no effect. Frameworks always pass all of them, so a setting with aiokafka's default is only logged,
once per process, at level INFO. Any other value is reported once, as a warning with the setting to
use instead, and refused with ``strict=True``.
"""

from __future__ import annotations

import difflib
import inspect
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from kip848_client.aiokafka._parents import AIOKafkaConsumer, AIOKafkaProducer
from kip848_client.config import ClientConfig, ConsumerConfig, ProducerConfig

__all__ = ["consumer_settings", "producer_settings"]

_log = logging.getLogger("kip848_client")

Settings = dict[str, Any]


def _defaults(constructor: Callable[..., Any]) -> Settings:
    found = inspect.signature(constructor).parameters.values()
    return {each.name: each.default for each in found if each.kind is each.KEYWORD_ONLY}


_CONSUMER: Final = _defaults(AIOKafkaConsumer.__init__)
_PRODUCER: Final = _defaults(AIOKafkaProducer.__init__)
_MADE_HERE: Final = frozenset(["key_deserializer", "value_deserializer"])
_HEEDED_HERE: Final = frozenset(["exclude_internal_topics"])
"""Valid because the client matches patterns; brokers that match them have no such choice."""
_LEVELS: Final = ("read_uncommitted", "read_committed")

_told: set[str] = set()
"""Settings without effect that were reported in this process."""


def consumer_settings(given: Mapping[str, Any]) -> tuple[Settings, Settings]:
    """The arguments for aiokafka's constructor, and those for ours. Raises ``ValueError``, and
    ``TypeError`` for a name that neither has."""
    _check_names("AIOKafkaConsumer", given, {*_CONSUMER, *_MADE_HERE}, ConsumerConfig)
    level = given.get("isolation_level", _CONSUMER["isolation_level"])
    if level not in _LEVELS:  # aiokafka raises this at the start, with this text
        raise ValueError(f"Incorrect isolation level {level}")
    for_theirs = {name: value for name, value in given.items() if name in _CONSUMER}
    settings = {**_CONSUMER, **given}
    wanted = {*ConsumerConfig.model_fields, *_MADE_HERE, *(given.keys() - _CONSUMER.keys())}
    for_ours = {name: value for name, value in settings.items() if name in wanted}
    # One setting limits both how long the application may be busy and how long the group waits for
    # it: a program with a shorter timeout for the group must not be fenced because of that.
    for_ours["max_poll_interval_ms"] = max(
        settings["max_poll_interval_ms"], for_ours.pop("rebalance_timeout_ms") or 0
    )
    if settings["client_id"] is None:
        del for_ours["client_id"]
    for_ours.setdefault("default_api_timeout_ms", settings["request_timeout_ms"])
    _, classic = ConsumerConfig.without_meaning
    meaningless = {name: instead for name, instead in classic.items() if name not in _HEEDED_HERE}
    return for_theirs, for_ours | _to_report(given, _CONSUMER, meaningless)


def producer_settings(given: Mapping[str, Any]) -> tuple[Settings, Settings]:
    """The same for a producer. aiokafka's part of it calls serializers and partitioner."""
    _check_names("AIOKafkaProducer", given, _PRODUCER, ProducerConfig)
    for_theirs = {name: value for name, value in given.items() if name in _PRODUCER}
    settings = {**_PRODUCER, **given}
    ours_alone = given.keys() - _PRODUCER.keys()
    wanted = {*ProducerConfig.model_fields, *ours_alone}
    for_ours = {name: value for name, value in settings.items() if name in wanted}
    idempotent = settings["enable_idempotence"] or settings["transactional_id"] is not None
    for_ours["enable_idempotence"] = idempotent
    if settings["acks"] is _PRODUCER["acks"]:  # FastStream passes aiokafka's marker for "not set"
        for_ours["acks"] = "all" if idempotent else 1
    del for_ours["client_id"]  # aiokafka generates one if it is missing
    if not idempotent:  # or a retry could be reordered after later batches
        for_ours.setdefault("max_in_flight_requests_per_connection", 1)
    timeout_ms = settings["request_timeout_ms"]
    for_ours.setdefault("delivery_timeout_ms", timeout_ms + settings["linger_ms"])
    for_ours.setdefault("max_block_ms", timeout_ms)
    _, meaningless = ProducerConfig.without_meaning
    return for_theirs, for_ours | _to_report(given, _PRODUCER, meaningless)


def _check_names(
    of: str, given: Collection[str], theirs: Collection[str], ours: type[ClientConfig]
) -> None:
    """Raise the error that Python raises for an unknown keyword argument."""
    _, meaningless = ours.without_meaning
    known = [*theirs, *ours.model_fields, *meaningless, "strict"]
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f". Did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{of}.__init__() got an unexpected keyword argument {name!r}{hint}")


def _to_report(
    given: Mapping[str, Any], defaults: Mapping[str, Any], meaningless: Mapping[str, str]
) -> Settings:
    """The settings without effect that our configuration must report or refuse."""
    there = {name: given[name] for name in meaningless if name in given}
    wishes = {name: value for name, value in there.items() if value != defaults[name]}
    silent = sorted(there.keys() - wishes.keys() - _told - {"loop"})
    if silent:
        _told.update(silent)
        _log.info(
            "settings with aiokafka's defaults that have no effect here: %s", ", ".join(silent)
        )
    if given.get("strict"):
        return wishes
    new = {name: value for name, value in wishes.items() if f"{name}={value!r}" not in _told}
    _told.update(f"{name}={value!r}" for name, value in new.items())
    return new
