"""Users with one right each, and a few with more, for tests of what each right allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.support.plain_message import message

__all__ = ["PRINCIPALS", "Right", "acl_request"]

_TYPES: Final = {"TOPIC": 2, "GROUP": 3, "CLUSTER": 4, "TXN": 5, "TOKEN": 6, "USER": 7}
_OPERATIONS: Final = {
    "ALL": 2,
    "READ": 3,
    "WRITE": 4,
    "CREATE": 5,
    "DELETE": 6,
    "ALTER": 7,
    "DESCRIBE": 8,
    "CLUSTER_ACTION": 9,
    "DESCRIBE_CONFIGS": 10,
    "ALTER_CONFIGS": 11,
    "IDEMPOTENT_WRITE": 12,
    "CREATE_TOKENS": 13,
    "DESCRIBE_TOKENS": 14,
    "TWO_PHASE_COMMIT": 15,
}
_LITERAL: Final = 3
_PREFIXED: Final = 4
_DENY: Final = 2
_ALLOW: Final = 3
_UNKNOWN_ID: Final = b"\x07" * 16


@dataclass(frozen=True, slots=True)
class Right:
    """``TYPE OPERATION [name]`` with the name's pattern, allowed unless ``deny``."""

    resource: str
    operation: str
    name: str = "yes"
    prefixed: bool = True
    deny: bool = False

    def acl(self, principal: str) -> dict[str, Any]:
        """As CreateAcls wants it."""
        cluster = self.resource == "CLUSTER"
        return {
            "resource_type": _TYPES[self.resource],
            "resource_name": "kafka-cluster" if cluster else self.name,
            "resource_pattern_type": _PREFIXED if self.prefixed and not cluster else _LITERAL,
            "principal": principal,
            "host": "*",
            "operation": _OPERATIONS[self.operation],
            "permission_type": _DENY if self.deny else _ALLOW,
        }


def _all(*resources: str) -> tuple[Right, ...]:
    return tuple(Right(each, "ALL", "*", prefixed=False) for each in resources)


_TOPIC_OPERATIONS: Final = (
    "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS",
)  # fmt: skip
_GROUP_OPERATIONS: Final = ("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
_CLUSTER_OPERATIONS: Final = (
    "CREATE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "ALTER",
    "DESCRIBE",
)  # fmt: skip

PRINCIPALS: Final[dict[str, tuple[Right, ...]]] = {
    "nobody": (),
    **{
        f"topic_{each.lower()}": (Right("TOPIC", each),)
        for each in _TOPIC_OPERATIONS
        if each != "DELETE"
    },
    **{f"group_{each.lower()}": (Right("GROUP", each),) for each in _GROUP_OPERATIONS},
    **{f"cluster_{each.lower()}": (Right("CLUSTER", each),) for each in _CLUSTER_OPERATIONS},
    **{f"txn_{each.lower()}": (Right("TXN", each),) for each in ("WRITE", "DESCRIBE")},
    "token_describe": (Right("TOKEN", "DESCRIBE"),),
    "consumer": (Right("TOPIC", "READ"), Right("GROUP", "READ")),
    "watcher": (Right("TOPIC", "DESCRIBE"), Right("GROUP", "DESCRIBE")),
    "cleaner": (Right("TOPIC", "READ"), Right("GROUP", "DELETE")),
    "sender": (Right("TOPIC", "WRITE"), Right("TXN", "WRITE"), Right("GROUP", "READ")),
    "committer": (Right("TOPIC", "READ"), Right("TXN", "WRITE"), Right("GROUP", "READ")),
    "creator": (Right("TOPIC", "CREATE"), Right("TOPIC", "DESCRIBE_CONFIGS")),
    "remover": (Right("TOPIC", "DELETE"), Right("TOPIC", "DESCRIBE")),
    "topic_delete": (Right("TOPIC", "DELETE"),),  # late: it really deletes topics
    "everything": _all("TOPIC", "GROUP", "CLUSTER", "TXN", "TOKEN"),
    "but_no_read": (
        *_all("TOPIC", "GROUP", "CLUSTER", "TXN"),
        Right("TOPIC", "READ", "yes-a", prefixed=False, deny=True),
        Right("GROUP", "READ", "yes-live", prefixed=False, deny=True),
        Right("CLUSTER", "ALTER", deny=True),
    ),
    "but_no_describe": (
        *_all("TOPIC", "GROUP", "CLUSTER", "TXN"),
        Right("TOPIC", "DESCRIBE", "yes-a", prefixed=False, deny=True),
        Right("GROUP", "DESCRIBE", "yes-live", prefixed=False, deny=True),
        Right("CLUSTER", "DESCRIBE", deny=True),
    ),
}
"""User name -> rights. The principal of ``name`` is ``User:name``."""


def acl_request(rights: Mapping[str, tuple[Right, ...]]) -> Any:
    """CreateAcls for all of these users' rights."""
    creations = [right.acl(f"User:{who}") for who, each in rights.items() for right in each]
    return message("CreateAcls", creations=creations)
