"""Checks of an admin's arguments. They raise ``ConfigError``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, get_args

from kip848_client.admin.core._model import CommittedOffset, NewTopic
from kip848_client.admin.core._offset_wire import EARLIEST, LATEST
from kip848_client.admin.core._reset import (
    ByDuration,
    OffsetReset,
    ShiftBy,
    ToOffset,
    ToPlan,
    ToTime,
)
from kip848_client.core.short import short
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError
from kip848_client.runtime.arguments import (
    checked_count,
    checked_offset,
    checked_partition,
    checked_partitions,
    checked_time_ms,
    checked_topic,
    checked_wire_text,
)

__all__ = [
    "checked_changes",
    "checked_counts",
    "checked_group",
    "checked_groups",
    "checked_list_times",
    "checked_new_topics",
    "checked_offsets",
    "checked_reset",
    "checked_some_partitions",
    "checked_topic",
    "checked_topic_names",
    "checked_words",
    "parse_datetime_ms",
]

_RESETS: Final = get_args(OffsetReset)
_SHIFT_MAX: Final = 2**63 - 1
_INT16_MAX: Final = 2**15 - 1
_INT32_MAX: Final = 2**31 - 1


def checked_words(words: object, known: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Check some of ``known``, in upper or lower case."""
    if words is None:
        return ()
    by_lower = {each.lower(): each for each in known}
    found: list[str] = []
    for word in _several(words, name):
        if not isinstance(word, str) or word.lower() not in by_lower:
            raise ConfigError(f"{name}: {short(word)} is none of {', '.join(known)}")
        found.append(by_lower[word.lower()])
    return tuple(dict.fromkeys(found))


def checked_group(group: object) -> str:
    """Check a group id."""
    text = checked_wire_text(group, "a group id")
    if not text:
        raise ConfigError("a group id must not be empty")
    return text


def checked_groups(groups: object) -> tuple[str, ...]:
    """Check group ids; duplicates are removed."""
    return tuple(dict.fromkeys(checked_group(each) for each in _several(groups, "groups")))


def checked_topic_names(topics: object) -> tuple[str, ...]:
    """Check topic names; duplicates are removed."""
    return tuple(dict.fromkeys(checked_topic(each) for each in _several(topics, "topics")))


def checked_some_partitions(partitions: object) -> tuple[TopicPartition, ...]:
    """Check partitions, at least one."""
    found = checked_partitions(partitions)
    if not found:
        raise ConfigError("partitions: at least one must be given")
    return found


def checked_offsets(offsets: object) -> dict[TopicPartition, CommittedOffset]:
    """Check offsets, or ``CommittedOffset``s, by partition."""
    found: dict[TopicPartition, CommittedOffset] = {}
    for tp, value in _mapping(offsets, "offsets are given as {partition: offset}"):
        if isinstance(value, CommittedOffset):
            checked_offset(value.offset)
            checked_wire_text(value.metadata, "the metadata of an offset")
            if value.leader_epoch is not None:
                _checked_epoch(value.leader_epoch)
            found[checked_partition(tp)] = value
        else:
            found[checked_partition(tp)] = CommittedOffset(checked_offset(value))
    return found


def checked_epochs(epochs: object) -> dict[TopicPartition, int]:
    """Check leader epochs by partition."""
    found: dict[TopicPartition, int] = {}
    for tp, epoch in _mapping(epochs, "leader epochs are given as {partition: epoch}"):
        found[checked_partition(tp)] = _checked_epoch(epoch)
    return found


def checked_list_times(times: object) -> dict[TopicPartition, int]:
    """Check times, ``EARLIEST`` or ``LATEST`` by partition."""
    return {
        checked_partition(tp): (
            value
            if isinstance(value, int) and value in (EARLIEST, LATEST)
            else checked_time_ms(value, "a time")
        )
        for tp, value in _mapping(times, "times are given as {partition: ms since 1970}")
    }


def is_read_committed(isolation_level: object) -> bool:
    """Check the isolation level; returns whether it is ``read_committed``."""
    if isolation_level not in ("read_uncommitted", "read_committed"):
        raise ConfigError(
            f"isolation_level is 'read_uncommitted' or 'read_committed', not {isolation_level!r}"
        )
    return isolation_level == "read_committed"


def checked_reset(reset: object) -> OffsetReset:
    """Check a reset and its numbers."""
    if isinstance(reset, type) and reset in _RESETS:
        raise ConfigError(f"write {reset.__name__}(...), not {reset.__name__}")
    match reset:
        case ToOffset(offset):
            checked_offset(offset)
        case ToTime(time_ms):
            checked_time_ms(time_ms, "timestamp_ms")
        case ByDuration(duration_ms):
            checked_time_ms(duration_ms, "duration_ms")
        case ShiftBy(records):
            _check_shift(records)
        case ToPlan(offsets):
            return ToPlan({tp: each.offset for tp, each in checked_offsets(offsets).items()})
        case _ if not isinstance(reset, _RESETS):
            names = ", ".join(each.__name__ for each in _RESETS)
            raise ConfigError(f"a reset is one of {names}; not {short(reset)}")
        case _:
            pass
    found: Any = reset
    return found  # type: ignore[no-any-return]  # one of the union, as was just seen


def checked_new_topics(topics: object) -> tuple[NewTopic, ...]:
    """Check topics to create, each name once."""
    found: dict[str, NewTopic] = {}
    for each in _several(topics, "topics"):
        if not isinstance(each, NewTopic):
            raise ConfigError(f"a topic to create is a NewTopic, not {short(each)}")
        name = checked_topic(each.name)
        if name in found:
            raise ConfigError(f"topic {name!r} is given twice")
        _checked_up_to(each.partitions, _INT32_MAX, "partitions")
        _checked_up_to(each.replication_factor, _INT16_MAX, "replication_factor")
        _checked_configs(each.configs)
        found[name] = each
    return tuple(found.values())


def checked_counts(counts: object) -> dict[str, int]:
    """Check numbers of partitions by topic."""
    says = "counts are given as {topic: number of partitions}"
    found: dict[str, int] = {}
    for topic, count in _mapping(counts, says):
        _checked_up_to(count, _INT32_MAX, "a number of partitions")
        found[checked_topic(topic)] = checked_count(count, "a number of partitions")
    return found


def checked_changes(
    changes: object, checked_name: Callable[[object], str]
) -> dict[str, dict[str, str | None]]:
    """Check new values of settings by group or topic; ``None`` for the default."""
    says = "changes are given as {name: {setting: value or None}}"
    found: dict[str, dict[str, str | None]] = {}
    for name, settings in _mapping(changes, says):
        of_one = found[checked_name(name)] = {}
        for key, value in _mapping(settings, says):
            text = checked_wire_text(key, "the name of a setting")
            of_one[text] = None if value is None else checked_wire_text(value, f"setting {text}")
        if not of_one:
            raise ConfigError(f"{says}: nothing is to be changed of {short(name)}")
    return found


def _check_shift(records: object) -> None:
    if not isinstance(records, int) or isinstance(records, bool) or abs(records) > _SHIFT_MAX:
        raise ConfigError(f"ShiftBy takes an int, not {short(records)}")


def _checked_epoch(epoch: object) -> int:
    if not isinstance(epoch, int) or isinstance(epoch, bool) or not 0 <= epoch <= _INT32_MAX:
        raise ConfigError(f"a leader epoch is an int from 0 to {_INT32_MAX}, not {short(epoch)}")
    return epoch


def _checked_configs(configs: object) -> None:
    for each in _several(configs, "configs"):
        if not isinstance(each, tuple | list) or len(each) != 2:
            raise ConfigError(f"configs are pairs of name and value, not {short(each)}")
        checked_wire_text(each[0], "the name of a setting")
        checked_wire_text(each[1], f"setting {short(each[0])}")


def _checked_up_to(number: object, at_most: int, name: str) -> None:
    if number is not None and checked_count(number, name) > at_most:
        raise ConfigError(f"{name} is {at_most} at most, not {short(number)}")


def _several(values: object, name: str) -> Iterable[object]:
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | Mapping):
        return values
    raise ConfigError(f"{name} is a list, not {short(values)}")


def _mapping(values: object, says: str) -> Iterable[tuple[object, object]]:
    if not isinstance(values, Mapping):
        raise ConfigError(f"{says}, not {short(values)}")
    return values.items()


def parse_datetime_ms(text: str) -> int:
    """Read a date and time such as ``2026-01-01T00:00:00.000``.

    Args:
        text: ISO 8601 with a ``T``; in UTC unless it has a zone.

    Returns:
        Milliseconds since 1970; 0 for earlier times.

    Raises:
        ConfigError: The text is not of that form.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or "T" not in text:
        raise ConfigError(
            f"{text!r} is not a date and time such as 2026-01-01T00:00:00.000 (UTC), or with a zone"
        )
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0, round(moment.timestamp() * 1000))
