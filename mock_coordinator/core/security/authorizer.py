"""The decision: may this principal, from this address, do this to that resource?

Theory of operation
===================

The rules are those of Kafka's StandardAuthorizer (KIP-801). A super user may do everything.
Otherwise all entries count whose resource pattern covers the resource; an entry that denies takes
precedence over any that allows, and if none mentions the principal the request is denied. If no
entry covers the resource at all, ``allow.everyone.if.no.acl.found`` decides.

An entry that allows READ, WRITE, DELETE or ALTER also allows DESCRIBE, and ALTER_CONFIGS allows
DESCRIBE_CONFIGS; an entry that denies only denies its own operation.

Entries are kept by resource name, so that a decision only reads the entries of one name, of the
wildcard, and of the prefixes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from mock_coordinator.core.security.acls import (
    WILDCARD,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

__all__ = ["AclTable", "Authorizer", "operations_on"]

_IMPLIED_BY: Final = {
    Operation.DESCRIBE: (
        Operation.DESCRIBE,
        Operation.READ,
        Operation.WRITE,
        Operation.DELETE,
        Operation.ALTER,
    ),
    Operation.DESCRIBE_CONFIGS: (Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS),
}

_OPERATIONS: Final = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}

_PROBE: Final = "hardcode"
"""The name of no resource in particular that Kafka asks about first (KIP-679)."""

_EVERYBODY: Final = f"User:{WILDCARD}"


def operations_on(resource_type: ResourceType) -> tuple[Operation, ...]:
    """The operations that authorized-operations bit fields speak of (KIP-430)."""
    return _OPERATIONS[resource_type]


class AclTable:
    """All entries of a cluster, without duplicates."""

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        self._acls: dict[Acl, None] = {}
        self._literal: dict[tuple[ResourceType, str], dict[Acl, None]] = {}
        self._prefixed: dict[ResourceType, dict[Acl, None]] = {}
        for acl in acls:
            self.add(acl)

    def __iter__(self) -> Iterator[Acl]:
        return iter(tuple(self._acls))

    def __len__(self) -> int:
        return len(self._acls)

    def add(self, acl: Acl) -> None:
        """Add an entry; adding it again changes nothing."""
        self._acls[acl] = None
        self._room(acl)[acl] = None

    def remove(self, acl: Acl) -> None:
        """Remove an entry. Raises ``KeyError`` when it is not there."""
        del self._acls[acl]
        del self._room(acl)[acl]

    def covering(self, resource_type: ResourceType, name: str) -> Iterator[Acl]:
        """The entries whose pattern covers a resource."""
        yield from self._literal.get((resource_type, name), ())
        yield from self._literal.get((resource_type, WILDCARD), ())
        for acl in self._prefixed.get(resource_type, ()):
            if name.startswith(acl.name):
                yield acl

    def _room(self, acl: Acl) -> dict[Acl, None]:
        if acl.pattern_type is PatternType.PREFIXED:
            return self._prefixed.setdefault(acl.resource_type, {})
        return self._literal.setdefault((acl.resource_type, acl.name), {})


@dataclass(slots=True)
class Authorizer:
    """Kafka's StandardAuthorizer over a table of entries.

    ``super_users`` are principals (``User:name``); ``allow_if_no_acl`` is
    ``allow.everyone.if.no.acl.found``.
    """

    table: AclTable = field(default_factory=AclTable)
    super_users: frozenset[str] = frozenset()
    allow_if_no_acl: bool = False

    def allows(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Whether the operation is allowed. ``host`` is an address without Java's slash."""
        if principal in self.super_users:
            return True
        implied_by = _IMPLIED_BY.get(operation, (operation,))
        allowed = covered = False
        for acl in self.table.covering(resource_type, name):
            covered = True
            if not _is_about(acl, principal, host):
                continue
            if acl.permission is Permission.DENY:
                if acl.operation in (Operation.ALL, operation):
                    return False
            elif acl.operation is Operation.ALL or acl.operation in implied_by:
                allowed = True
        return allowed or (not covered and self.allow_if_no_acl)

    def allows_any(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether the operation is allowed on at least one resource of the type, existing or not
        (KIP-679)."""
        if self.allows(principal, host, operation, resource_type, _PROBE):
            return True
        mine = [
            acl
            for acl in self.table
            if acl.resource_type is resource_type
            and acl.operation in (Operation.ALL, operation)
            and _is_about(acl, principal, host)
        ]
        denied = [acl for acl in mine if acl.permission is Permission.DENY]
        if any(_is_everything(acl) for acl in denied):
            return False
        return any(
            _is_everything(acl) or not any(_dominates(other, acl) for other in denied)
            for acl in mine
            if acl.permission is Permission.ALLOW
        )

    def operations(self, principal: str, host: str, resource_type: ResourceType, name: str) -> int:
        """The allowed operations on a resource as a bit field (KIP-430)."""
        bits = 0
        for operation in operations_on(resource_type):
            if self.allows(principal, host, operation, resource_type, name):
                bits |= 1 << operation
        return bits


def _is_about(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, _EVERYBODY) and acl.host in (host, WILDCARD)


def _is_everything(acl: Acl) -> bool:
    return acl.pattern_type is PatternType.LITERAL and acl.name == WILDCARD


def _dominates(denying: Acl, allowing: Acl) -> bool:
    """Whether everything that an entry allows is denied by another one."""
    if denying.pattern_type is PatternType.PREFIXED:
        return allowing.name.startswith(denying.name)
    return allowing.pattern_type is PatternType.LITERAL and allowing.name == denying.name
