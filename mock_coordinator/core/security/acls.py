"""Access control lists as data: principals, operations and resources (KIP-11, KIP-290).

The numbers are those of Kafka's protocol, so that an entry can be made from a CreateAcls request, a
JSON file or a test in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

from kip848_client.errors import ConfigError

__all__ = [
    "CLUSTER_NAME",
    "WILDCARD",
    "Acl",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
    "acls_from_data",
]

E = TypeVar("E", bound=IntEnum)

WILDCARD: Final = "*"
"""As a resource name: every name. As a host: every address. In ``User:*``: everybody."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The only name that a CLUSTER resource has."""


class ResourceType(IntEnum):
    """What can be protected."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How an entry's resource name is to be read."""

    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What can be done to a resource; ``ALL`` in an entry stands for every one of them."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether an entry allows or denies; one that denies wins."""

    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """One entry. ``principal`` is ``User:name`` or ``User:*``, ``host`` an address or ``*``."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: Operation
    permission: Permission


def acls_from_data(entries: Iterable[Mapping[str, str]]) -> tuple[Acl, ...]:
    """Entries from plain data, e.g. ``{"principal": "User:alice", "operation": "READ",
    "resource_type": "TOPIC", "name": "orders"}``.

    ``pattern_type`` (LITERAL), ``host`` (``*``) and ``permission`` (ALLOW) may be left out, and so
    may the ``name`` of a CLUSTER. Raises ``ConfigError`` for an invalid entry.
    """
    return tuple(_from_data(entry) for entry in entries)


_KEYS: Final = (
    "principal",
    "operation",
    "resource_type",
    "name",
    "pattern_type",
    "host",
    "permission",
)


def _from_data(entry: Mapping[str, str]) -> Acl:
    strange = [key for key in entry if key not in _KEYS]
    if strange:
        raise ConfigError(
            f"unknown field {strange[0]!r} of an ACL, expected {', '.join(_KEYS)}: {dict(entry)}"
        )
    resource_type = _member(ResourceType, entry, "resource_type", None)
    name = entry.get("name") or (CLUSTER_NAME if resource_type is ResourceType.CLUSTER else "")
    principal = entry.get("principal", "")
    if not name or ":" not in principal:
        raise ConfigError(f"an ACL needs a name and a principal like User:alice: {dict(entry)}")
    return Acl(
        resource_type,
        name,
        _member(PatternType, entry, "pattern_type", "LITERAL"),
        principal,
        entry.get("host", WILDCARD),
        _member(Operation, entry, "operation", None),
        _member(Permission, entry, "permission", "ALLOW"),
    )


def _member(kind: type[E], entry: Mapping[str, str], key: str, default: str | None) -> E:
    text = entry.get(key, default)
    if text is None or text.upper() not in kind.__members__:
        known = ", ".join(kind.__members__)
        raise ConfigError(f"{key} of an ACL: expected one of {known}, not {text!r}: {dict(entry)}")
    return kind[text.upper()]
