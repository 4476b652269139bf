"""Valid names of topics, with Kafka's messages, and the names of internal topics."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = [
    "INTERNAL_TOPICS",
    "OFFSETS_TOPIC",
    "REPLICATION_SETTINGS",
    "TRANSACTIONS_TOPIC",
    "colliding_name",
    "name_problem",
]

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"

INTERNAL_TOPICS: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})
"""Topics that clients may read but not write."""

REPLICATION_SETTINGS: Final = {
    OFFSETS_TOPIC: "offsets.topic.replication.factor",
    TRANSACTIONS_TOPIC: "transaction.state.log.replication.factor",
    SHARE_STATE_TOPIC: "share.coordinator.state.topic.replication.factor",
}
"""Which setting says how many replicas each of them gets; ``default.replication.factor`` for all
others that are created on their own."""

_MAX_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def name_problem(name: str) -> str | None:
    """What is wrong with a topic name, as the broker says it; ``None`` for a good one."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > _MAX_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed "
            f"length {_MAX_LENGTH}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def colliding_name(name: str, existing: Iterable[str]) -> str | None:
    """An existing name that differs only in dots and underscores (metrics cannot tell them
    apart)."""
    if "." not in name and "_" not in name:
        return None
    folded = name.replace(".", "_")
    for other in existing:
        if other != name and other.replace(".", "_") == folded:
            return other
    return None
