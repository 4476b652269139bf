"""Reads and checks Spark's ``startingOffsets``, ``endingOffsets`` and their relatives.

Pure: text in, values out. ``Cluster.places`` turns them into offsets.
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
"""Kafka's (and Spark's) number for the first offset of a partition."""
END: Final = -1
"""Kafka's (and Spark's) number for the end of a partition."""


@dataclass(frozen=True, slots=True)
class OffsetRangeLimit:
    """A position in each partition: exactly one of the first four fields is set."""

    everywhere: int | None = None
    """``BEGIN`` or ``END``."""
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """By partition; a value may be ``BEGIN`` or ``END``."""
    time_ms: int | None = None
    """The first record with this timestamp or a later one, in every partition."""
    times: Mapping[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """The same with one timestamp per partition."""
    later_is_end: bool = True
    """Whether a partition without such a record is used from its end; otherwise it is an error."""
    option: str = ""
    """The name of the option, for errors."""


def range_limit_from(
    options: Mapping[str, str], prefix: str, default: str, allowed: int
) -> OffsetRangeLimit:
    """Read the options ``{prefix}Timestamp``, ``{prefix}OffsetsByTimestamp`` and
    ``{prefix}Offsets``; the first that is set counts, as in Spark. Keys are in lower case.

    ``allowed`` is ``BEGIN`` if ``earliest`` is a valid position, otherwise ``END``: a query cannot
    end at the beginning. Raises ``ConfigError``.
    """
    strategy = options.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise ConfigError(
            f"startingOffsetsByTimestampStrategy must be 'error' or 'latest', got {strategy!r}"
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
            begin = " or -2 (the beginning)" if lowest == BEGIN else ""
            raise ConfigError(f"{name}: expected an offset, -1 (the end){begin}, got {value!r}")
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
            raise ConfigError(f"{option}: the value of {topic!r} is not an object by partition")
        for partition, value in values.items():
            if not (partition.isascii() and partition.isdecimal()):
                raise ConfigError(f"{option}: {partition!r} of {topic!r} is not a partition number")
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
