"""Reads and checks Spark's ``startingOffsets``, ``endingOffsets`` and their relatives.

Pure: text in, values out. What brokers have to be asked for is said as what to ask.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError

__all__ = ["BEGIN", "END", "OffsetRangeLimit", "partitions_of", "range_limit_from"]

BEGIN: Final = -2
"""Kafka's (and Spark's) number for the first offset there is."""
END: Final = -1
"""Kafka's (and Spark's) number for the end of a partition."""


@dataclass(frozen=True, slots=True)
class OffsetRangeLimit:
    """A place in each partition: one of these is said."""

    everywhere: int | None = None
    """``BEGIN`` or ``END``."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """By partition; ``BEGIN`` and ``END``, too."""
    time_ms: int | None = None
    """The first record that is so late, of every partition."""
    times: Mapping[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """The same by partition."""
    later_is_end: bool = True
    """Whether a partition without a record so late is taken at its end; else it is an error."""
    option: str = ""
    """Which option said so, for errors."""


def range_limit_from(
    options: Mapping[str, str], prefix: str, default: str, allowed: int
) -> OffsetRangeLimit:
    """What the options ``{prefix}Timestamp``, ``{prefix}OffsetsByTimestamp`` and
    ``{prefix}Offsets`` say (the first of them counts, as in Spark), keys in lower case.

    ``allowed`` is the place that may be named by its word: ``BEGIN`` with ``earliest`` is not
    where a query can end. Raises ``ConfigError``.
    """
    strategy = options.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise ConfigError(
            f"startingOffsetsByTimestampStrategy={strategy!r} is neither 'error' nor 'latest'"
        )
    later_is_end = prefix == "ending" or strategy == "latest"
    option = f"{prefix}Timestamp"
    if option.lower() in options:
        time_ms = _time(option, options[option.lower()].strip())
        return OffsetRangeLimit(time_ms=time_ms, later_is_end=later_is_end, option=option)
    option = f"{prefix}OffsetsByTimestamp"
    if option.lower() in options:
        times = _by_partition(option, options[option.lower()], _time)
        return OffsetRangeLimit(times=times, later_is_end=later_is_end, option=option)
    option = f"{prefix}Offsets"
    said = options.get(option.lower(), default).strip()
    words = {"latest": END} if allowed == END else {"earliest": BEGIN, "latest": END}
    if said.lower() in words:
        return OffsetRangeLimit(everywhere=words[said.lower()], option=option)
    if not said.startswith("{"):
        raise ConfigError(
            f"{option}={said!r} is not one of {', '.join(words)}, nor JSON like "
            '{"topic": {"0": 23, "1": -1}}'
        )
    lowest = END if allowed == END else BEGIN

    def offset(name: str, value: Any) -> int:
        if type(value) is not int or value < lowest:
            begin = " nor -2 (the begin)" if lowest == BEGIN else ""
            raise ConfigError(f"{name}: {value!r} is neither an offset nor -1 (the end){begin}")
        return value

    return OffsetRangeLimit(offsets=_by_partition(option, said, offset), option=option)


def partitions_of(option: str, said: str) -> tuple[TopicPartition, ...]:
    """``{"topic": [0, 1]}``, sorted. Raises ``ConfigError``."""
    found: list[TopicPartition] = []
    for topic, partitions in _objects(option, said, '{"topic": [0, 1]}').items():
        if not isinstance(partitions, list) or not all(
            type(each) is int and each >= 0 for each in partitions
        ):
            raise ConfigError(f"{option}: the partitions of {topic!r} are not a list of numbers")
        found.extend(TopicPartition(topic, each) for each in partitions)
    if not found:
        raise ConfigError(f"{option} names no partition")
    return tuple(sorted(set(found)))


def _time(option: str, value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal():
        return int(value)
    if type(value) is int and value >= 0:
        return value
    raise ConfigError(f"{option}: {value!r} is not a time in milliseconds since 1970")


def _by_partition(
    option: str, said: str, checked: Callable[[str, Any], int]
) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, values in _objects(option, said, '{"topic": {"0": 23}}').items():
        if not isinstance(values, dict):
            raise ConfigError(f"{option}: what is said of {topic!r} is not an object by partition")
        for partition, value in values.items():
            if not (partition.isascii() and partition.isdecimal()):
                raise ConfigError(f"{option}: {partition!r} of {topic!r} is not a partition")
            found[TopicPartition(topic, int(partition))] = checked(option, value)
    if not found:
        raise ConfigError(f"{option} names no partition")
    return found


def _objects(option: str, said: str, like: str) -> dict[str, Any]:
    try:
        found = json.loads(said)
    except ValueError as err:
        raise ConfigError(f"{option} is not JSON like {like}: {err}") from err
    if not isinstance(found, dict):
        raise ConfigError(f"{option} is not a JSON object like {like}")
    return found
