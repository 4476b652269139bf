"""Checks of user arguments: users without a type checker pass anything. There is one error,
``ConfigError``, with the wrong value and the accepted ones."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from operator import index
from typing import Final, SupportsIndex

from kip848_client.core.short import short
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError

__all__ = [
    "checked_commit",
    "checked_count",
    "checked_offset",
    "checked_partition",
    "checked_partitions",
    "checked_text",
    "checked_time_ms",
    "checked_timeout_ms",
    "checked_times",
    "checked_topic",
    "checked_topics",
    "checked_wire_text",
]

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
_STRING_BYTES_MAX: Final = 2**15 - 1
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
"""Kafka's rule; ``.`` and ``..`` are not allowed either."""


# -- topics and partitions -----------------------------------------------------------------------


def checked_topic(name: object) -> str:
    """Check the name of a topic."""
    if isinstance(name, str) and _TOPIC.fullmatch(name) and name not in (".", ".."):
        return name
    raise ConfigError(
        f"not a topic name: {short(name)}; it is a str of 1 to 249 letters, digits, '.', '_', '-'"
    )


def checked_topics(topics: object) -> frozenset[str]:
    """Check topic names, given as a list or another iterable."""
    if isinstance(topics, str):
        raise ConfigError(f"topics is a list of names, not one: [{short(topics)}]")
    return frozenset(checked_topic(name) for name in _each(topics, "topics is a list of names"))


def checked_partition(partition: object) -> TopicPartition:
    """Check a ``TopicPartition``, or a tuple of a topic name and a number."""
    if not isinstance(partition, tuple | list) or len(partition) != 2:
        raise ConfigError(
            f"a partition is a TopicPartition or (topic, number), not {short(partition)}"
        )
    topic, number = partition
    try:
        name = checked_topic(topic)
    except ConfigError as err:
        raise ConfigError(f"partition {short(partition)}: {err}") from None
    found = _whole(number, _INT32_MAX)
    if found is None:
        raise ConfigError(
            f"partition {short(partition)}: the number of a partition is an int from 0 to "
            f"{_INT32_MAX}, not {short(number)}"
        )
    return TopicPartition(name, found)


def checked_partitions(partitions: object) -> tuple[TopicPartition, ...]:
    """Check partitions, given as a list or another iterable; duplicates are removed."""
    if isinstance(partitions, TopicPartition | str | bytes):
        raise ConfigError(f"partitions are given as a list: [{short(partitions)}]")
    each = _each(partitions, "partitions are given as a list of (topic, number)")
    return tuple(dict.fromkeys(checked_partition(one) for one in each))


# -- offsets and times ---------------------------------------------------------------------------


def checked_offset(offset: object) -> int:
    """Check an offset that fits the wire."""
    number = _whole(offset, _INT64_MAX)
    if number is None:
        raise ConfigError(f"an offset is an integer, not negative and below 2**63: {short(offset)}")
    return number


def checked_text(text: object) -> str:
    """Check the metadata of a commit."""
    return checked_wire_text(text, "the metadata of an offset")


def checked_wire_text(text: object, what: str) -> str:
    """Check a text that is sent in requests."""
    if not isinstance(text, str):
        raise ConfigError(f"{what} is a str, not {short(text)}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as err:
        raise ConfigError(f"{what} cannot be UTF-8: {err.reason}") from err
    if size > _STRING_BYTES_MAX:
        raise ConfigError(
            f"{what} has {size} bytes; Kafka's strings have {_STRING_BYTES_MAX} at most"
        )
    return text


def checked_commit(offsets: object) -> dict[TopicPartition, tuple[int, str]]:
    """Return offset and metadata by partition, from offsets or (offset, metadata) by partition."""
    found: dict[TopicPartition, tuple[int, str]] = {}
    for partition, value in _items(offsets, "offsets are given as {partition: offset}"):
        offset: object = value
        text: object = ""
        if isinstance(value, tuple):
            if len(value) != 2:
                raise ConfigError(
                    f"{short(partition)}: commit an offset or (offset, metadata), "
                    f"not {short(value)}"
                )
            offset, text = value
        found[checked_partition(partition)] = (checked_offset(offset), checked_text(text))
    return found


def checked_times(timestamps: object) -> dict[TopicPartition, int]:
    """Check milliseconds since 1970 by partition."""
    found: dict[TopicPartition, int] = {}
    for partition, value in _items(timestamps, "times are given as {partition: ms since 1970}"):
        time_ms = _whole(value, _INT64_MAX)
        if time_ms is None:
            raise ConfigError(
                f"{short(partition)}: a time is an int of ms since 1970, not negative and below "
                f"2**63: {short(value)}"
            )
        found[checked_partition(partition)] = time_ms
    return found


def checked_time_ms(time_ms: object, name: str) -> int:
    """Check milliseconds since 1970."""
    number = _whole(time_ms, _INT64_MAX)
    if number is None:
        raise ConfigError(
            f"{name} is an int of ms since 1970, not negative and below 2**63: {short(time_ms)}"
        )
    return number


# -- times to wait, counts -------------------------------------------------------------------------


def checked_timeout_ms(timeout_ms: object, name: str = "timeout_ms") -> float:
    """Check a timeout in ms, possibly with a fraction. A negative one becomes 0."""
    if isinstance(timeout_ms, float) and math.isfinite(timeout_ms):
        return min(max(timeout_ms, 0.0), float(_INT64_MAX))
    number = _number(timeout_ms)
    if number is not None:
        return min(max(number, 0), _INT64_MAX)
    raise ConfigError(f"{name} is a number of milliseconds, not {short(timeout_ms)}")


def checked_count(count: object, name: str) -> int:
    """Check a positive integer."""
    number = _whole(count, _INT64_MAX)
    if not number:
        raise ConfigError(f"{name} must be a positive int, not {short(count)}")
    return number


def _whole(value: object, at_most: int) -> int | None:
    """Return ``value`` as an int from 0 to ``at_most``; otherwise ``None``."""
    number = _number(value)
    return number if number is not None and 0 <= number <= at_most else None


def _number(value: object) -> int | None:
    """Return ``value`` as an int, including numpy's; otherwise ``None``, also for ``True``."""
    if type(value) is int:  # checking a protocol takes 50 us, and there may be 10,000 values
        return value
    if not isinstance(value, SupportsIndex) or isinstance(value, bool):
        return None
    try:
        return index(value)
    except TypeError:  # an array of several has the method, too
        return None


def _each(values: object, says: str) -> Iterable[object]:
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | bytearray):
        return values
    raise ConfigError(f"{says}, not {short(values)}")


def _items(values: object, says: str) -> Collection[tuple[object, object]]:
    if not isinstance(values, Mapping):
        raise ConfigError(f"{says}, not {short(values)}")
    return values.items()
