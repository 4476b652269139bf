"""The choice of a command's groups, topics and partitions."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import Final

from kip848_client.admin import Admin, GroupDescription, GroupListing
from kip848_client.core.connect import PROTOCOL_TYPE
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError

__all__ = [
    "ALL",
    "add_groups",
    "add_topics",
    "add_types",
    "asked_types",
    "checked_groups",
    "checked_list",
    "checked_types",
    "chosen_groups",
    "chosen_partitions",
    "is_listed",
    "is_of_types",
]

_NUMBERS: Final = re.compile(r"[0-9]{1,9}(,[0-9]{1,9})*")
_CONSUMER_TYPES: Final = ("Consumer", "Classic")
_TYPES: Final = (*_CONSUMER_TYPES, "Connect")
ALL: Final = ""
"""The value of ``--type`` without an argument."""
_CONNECT: Final = "connect"


def add_groups(parser: argparse.ArgumentParser) -> None:
    """Declare ``--group`` and ``--all-groups``."""
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="GROUP",
        help="a group; may be given more than once",
    )
    parser.add_argument("--all-groups", action="store_true", help="all groups there are")


def checked_groups(arguments: argparse.Namespace) -> None:
    """Raise ``ConfigError`` unless one of the two is given."""
    if bool(arguments.group) == arguments.all_groups:
        raise ConfigError("give --group GROUP (once or more), or --all-groups")


async def chosen_groups(
    admin: Admin, arguments: argparse.Namespace, types: Sequence[str] = ()
) -> list[str]:
    """Return the chosen groups, sorted by name with ``--all-groups``; then only those of ``types``,
    or of consumers if no types are given."""
    if arguments.all_groups:
        found = await admin.list_groups(types=asked_types(types))
        return [each.group_id for each in found if is_listed(each, types)]
    return list(dict.fromkeys(arguments.group))


def add_types(parser: argparse.ArgumentParser) -> None:
    """Declare ``--type``."""
    parser.add_argument(
        "--type",
        nargs="?",
        const=ALL,
        metavar="TYPES",
        help="show types; or only groups of some, separated by commas: "
        f"{', '.join(_TYPES)} (groups of Connect workers, on either protocol)",
    )


def checked_types(arguments: argparse.Namespace) -> list[str]:
    """The types that ``--type`` names, in lower case. Raises ``ConfigError``."""
    return checked_list(arguments.type, _TYPES, "type")


def checked_list(given: str | None, known: Sequence[str], what: str) -> list[str]:
    """The words of a list, in lower case. Raises ``ConfigError`` for an unknown word."""
    words = [each.strip().lower() for each in (given or "").split(",") if each.strip()]
    if not set(words) <= {each.lower() for each in known}:
        raise ConfigError(f"Invalid {what}s list '{given}'. Valid {what}s are: {', '.join(known)}")
    return words


def asked_types(types: Sequence[str]) -> Sequence[str] | None:
    """The types that ``Admin.list_groups`` asks brokers for. Kafka has no type Connect, and here it
    includes classic groups of workers, so all types are requested (``is_listed`` filters)."""
    return None if _CONNECT in types else types or _CONSUMER_TYPES


def is_listed(group: GroupListing, types: Sequence[str]) -> bool:
    """Whether a group is selected: by type if types are given; otherwise groups of consumers, or
    groups with offsets only."""
    if not types:
        return group.type in (*_CONSUMER_TYPES, "") and _is_for_consumers(group.protocol_type)
    return is_of_types(group, types)


def is_of_types(group: GroupListing | GroupDescription, types: Sequence[str]) -> bool:
    """Whether a group is of one of the types, in lower case. ``connect`` means all groups of
    Connect workers, ``classic`` only those of consumers."""
    if group.protocol_type == PROTOCOL_TYPE:
        return _CONNECT in types
    return group.type.lower() in types and _is_for_consumers(group.protocol_type)


def _is_for_consumers(protocol_type: str) -> bool:
    return protocol_type in ("", "consumer")


def add_topics(parser: argparse.ArgumentParser) -> None:
    """Declare ``--topic``, as in Kafka's tools."""
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC[:0,1]",
        help="a topic, or some partitions of it; may be given more than once",
    )


async def chosen_partitions(admin: Admin, topics: Sequence[str]) -> list[TopicPartition]:
    """Return the partitions selected by ``--topic``."""
    found: list[TopicPartition] = []
    whole: list[str] = []
    for text in topics:
        topic, colon, numbers = text.partition(":")
        if not colon:
            whole.append(topic)
        elif not _NUMBERS.fullmatch(numbers):
            raise ConfigError(f"--topic {text!r}: expected TOPIC or TOPIC:0,1")
        else:
            found += _partitions(topic, map(int, numbers.split(",")))
    for name, topic_found in (await admin.describe_topics(whole)).items() if whole else ():
        found += _partitions(name, (each.partition for each in topic_found.partitions))
    return sorted(set(found))


def _partitions(topic: str, numbers: Iterable[int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in numbers]
