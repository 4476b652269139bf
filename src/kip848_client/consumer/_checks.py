"""What a user may pass, checked where it comes in: users without a type checker pass anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Final, SupportsIndex

from kip848_client.errors import ConfigError

__all__ = ["check_mapping", "checked_offset", "checked_text", "checked_topics"]

_OFFSET_MAX: Final = 2**63 - 1


def checked_topics(topics: Iterable[object]) -> frozenset[str]:
    """Topic names. Raises ``ConfigError``, also for one name instead of a list."""
    if isinstance(topics, str):
        raise ConfigError(f"topics is a list of names, not one: [{topics!r}]")
    names: set[str] = set()
    for name in topics:
        if not isinstance(name, str) or not name.strip():
            raise ConfigError(f"not a topic name: {name!r}")
        names.add(name)
    return frozenset(names)


def checked_offset(offset: object) -> int:
    """An offset that fits the wire. Raises ``ConfigError``."""
    if isinstance(offset, SupportsIndex):
        number = index(offset)
        if 0 <= number <= _OFFSET_MAX:
            return number
    raise ConfigError(f"an offset is an integer, not negative and below 2**63: {offset!r}")


def checked_text(text: object) -> str:
    """The metadata of a commit. Raises ``ConfigError``."""
    if isinstance(text, str):
        return text
    raise ConfigError(f"the metadata of an offset is a str, not {text!r}")


def check_mapping(offsets: object) -> None:
    """Offsets by partition, or ``ConfigError``."""
    if not isinstance(offsets, Mapping):
        raise ConfigError(f"offsets are given as {{partition: offset}}, not {offsets!r}")
