"""Which groups, topics and partitions a command is about."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import Final

from kip848_client._types import TopicPartition
from kip848_client.admin import Admin, GroupListing
from kip848_client.errors import ConfigError

__all__ = [
    "add_groups",
    "add_topics",
    "checked_groups",
    "chosen_groups",
    "chosen_partitions",
    "is_for_consumers",
]

_NUMBERS: Final = re.compile(r"[0-9]{1,9}(,[0-9]{1,9})*")
_CONSUMER_TYPES: Final = ("Consumer", "Classic")


def add_groups(parser: argparse.ArgumentParser) -> None:
    """``--group`` and ``--all-groups``."""
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


async def chosen_groups(admin: Admin, arguments: argparse.Namespace) -> list[str]:
    """The groups that are meant, by name where all are."""
    if arguments.all_groups:
        found = await admin.list_groups(types=_CONSUMER_TYPES)
        return [each.group_id for each in found if is_for_consumers(each)]
    return list(dict.fromkeys(arguments.group))


def is_for_consumers(group: GroupListing) -> bool:
    """Whether consumers are in it, or nothing but offsets: not a group of Connect, for instance."""
    return group.protocol_type in ("", "consumer")


def add_topics(parser: argparse.ArgumentParser) -> None:
    """``--topic`` as Kafka's tools take it."""
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC[:0,1]",
        help="a topic, or some partitions of it; may be given more than once",
    )


async def chosen_partitions(admin: Admin, topics: Sequence[str]) -> list[TopicPartition]:
    """The partitions that ``--topic`` means."""
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
