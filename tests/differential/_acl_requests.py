"""Entries of access control lists: made, looked at and taken back by the administrator.

Resources are those of the sequence alone, by name or by prefix, because several sequences share a
broker; what concerns a whole cluster is left to tests that have a broker of their own.
"""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.wire.messages.acls import (
    CreateAclsRequest,
    CreateAclsRequestAclCreation,
    DeleteAclsRequest,
    DeleteAclsRequestDeleteAclsFilter,
    DescribeAclsRequest,
)
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import Ask
from tests.differential._users import USERS

__all__ = ["create_acls", "delete_acls", "describe_acls"]

_TOPIC: Final = 2
_GROUP: Final = 3
_TRANSACTIONAL_ID: Final = 5
_LITERAL: Final = 3
_PREFIXED: Final = 4
_DENY: Final = 2
_ALLOW: Final = 3
_READ: Final = 3
_OPERATIONS: Final = (2, _READ, _READ, _READ, 4, 5, 6, 7, 8, 8, 10, 11)
"""All, read, write, create, delete, alter, describe, describe configs, alter configs."""


def _resource(state: SequenceState) -> tuple[int, str, int]:
    rng = state.rng
    kind = rng.choice([_TOPIC, _TOPIC, _GROUP, _GROUP, _TRANSACTIONAL_ID])
    pattern = rng.choice([_LITERAL, _LITERAL, _PREFIXED])
    prefix = {_TOPIC: state.topic_prefix, _GROUP: state.prefix}.get(kind, state.prefix)
    if pattern == _PREFIXED:
        return kind, rng.choice([prefix, f"{prefix}-"]), pattern
    names = {
        _TOPIC: sorted(state.topics),
        _GROUP: [state.main.group_id, state.side.group_id],
        _TRANSACTIONAL_ID: [f"{state.prefix}-t0"],
    }
    return kind, rng.choice(names[kind]), pattern


def create_acls(state: SequenceState) -> Ask:
    """Allow or deny some things to somebody."""
    rng = state.rng
    creations = []
    for _ in range(rng.choice([1, 2, 3, 4])):
        kind, name, pattern = _resource(state)
        creation = CreateAclsRequestAclCreation(
            resource_type=kind,
            resource_name=name if rng.random() < 0.97 else "",
            resource_pattern_type=pattern,
            principal=f"User:{rng.choice([*USERS, *USERS, '*'])}",
            host=rng.choice(["*", "*", "*", "127.0.0.1", "10.1.1.1"]),
            operation=rng.choice(_OPERATIONS),
            permission_type=rng.choice([_ALLOW, _ALLOW, _ALLOW, _ALLOW, _DENY]),
        )
        if rng.random() < 0.03:
            creation.principal = rng.choice(["alice", "User:", ""])
        creations.append(creation)
    return state.ask("create-acls", CreateAclsRequest(creations=tuple(creations)), 3)


def _filter(state: SequenceState) -> dict[str, Any]:
    kind, name, pattern = _resource(state)
    rng = state.rng
    return {
        "resource_type_filter": rng.choice([kind, kind, 1]),
        "resource_name_filter": name,
        "pattern_type_filter": rng.choice([pattern, 1, 2]),
        "principal_filter": rng.choice([None, None, f"User:{rng.choice(USERS)}"]),
        "host_filter": rng.choice([None, "*"]),
        "operation": rng.choice([1, 1, rng.choice(_OPERATIONS)]),
        "permission_type": rng.choice([1, 1, _ALLOW, _DENY]),
    }


def describe_acls(state: SequenceState) -> Ask:
    """Look entries up."""
    return state.ask("describe-acls", DescribeAclsRequest(**_filter(state)), 3)


def delete_acls(state: SequenceState) -> Ask:
    """Take entries back."""
    one = DeleteAclsRequestDeleteAclsFilter(**_filter(state))
    return state.ask("delete-acls", DeleteAclsRequest(filters=(one,)), 3)
