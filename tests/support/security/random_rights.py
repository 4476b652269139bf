"""Random access control lists, and what they allow: one question about many operations at once.

Metadata with authorized operations says of each topic what the asker may do, as bits; and
InitProducerId says whether there is any topic that the asker may WRITE to.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any, Final

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.security.acls import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from mock_coordinator.core.security.authorizer import AclTable, Authorizer
from tests.support.plain_message import message
from tests.support.security.sides import SecureSide, User
from tests.support.wire_connection import WireConnection

__all__ = ["ours", "random_acls", "theirs"]

TOPICS: Final = ("a", "ab", "abc", "b", "hard")
_NAMES: Final = ("a", "ab", "abc", "b", "h", "*", "x")
_TIMEOUT_S: Final = 20
_HOST: Final = "127.0.0.1"
_EVERYTHING: Final = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def random_acls(seed: int) -> tuple[Acl, ...]:
    """Up to twelve entries about topics."""
    chance = random.Random(seed)
    operations = [each for each in Operation if each <= Operation.ALTER_CONFIGS]
    return tuple(
        dict.fromkeys(
            Acl(
                ResourceType.TOPIC,
                chance.choice(_NAMES),
                chance.choice(list(PatternType)),
                chance.choice(["User:alice", "User:alice", "User:bob", "User:*"]),
                chance.choice(["*", "*", _HOST, "10.0.0.9"]),
                chance.choice([*operations, Operation.ALL, Operation.WRITE, Operation.DESCRIBE]),
                chance.choice([Permission.ALLOW, Permission.ALLOW, Permission.DENY]),
            )
            for _ in range(chance.randrange(13))
        )
    )


def ours(acls: Sequence[Acl], user: str) -> tuple[dict[str, int], bool]:
    """(operations by topic that may be described, whether an idempotent producer may begin)."""
    authorizer = Authorizer(AclTable(acls))
    principal = f"User:{user}"
    bits = {
        name: authorizer.operations(principal, _HOST, ResourceType.TOPIC, name)
        for name in TOPICS
        if authorizer.allows(principal, _HOST, Operation.DESCRIBE, ResourceType.TOPIC, name)
    }
    may = authorizer.allows_any(principal, _HOST, Operation.WRITE, ResourceType.TOPIC)
    return bits, may


def theirs(
    side: SecureSide, admin: WireConnection, acls: Sequence[Acl], users: Sequence[User]
) -> list[tuple[dict[str, int], bool]]:
    """The same, as a broker has it once these entries are all that it has."""
    _replace(admin, acls)
    del side
    answers: list[tuple[dict[str, int], bool]] = []
    for user in users:
        topics = [{"name": name} for name in TOPICS]
        ask = message(
            "Metadata",
            topics=topics,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        found = user.request(ask, 12).topics
        begin = message("InitProducerId", transactional_id=None, transaction_timeout_ms=1000)
        code = user.request(begin, 4).error_code
        assert code in (0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED), code
        bits = {
            topic.name: topic.topic_authorized_operations
            for topic in found
            if topic.error_code != ErrorCode.TOPIC_AUTHORIZATION_FAILED
        }
        answers.append((bits, code == 0))
    return answers


def _replace(admin: WireConnection, acls: Sequence[Acl]) -> None:
    """Make these the only entries, and wait until the broker knows it."""
    admin.request(message("DeleteAcls", filters=[_EVERYTHING]), 3)
    creations = [
        {
            "resource_type": acl.resource_type,
            "resource_name": acl.name,
            "resource_pattern_type": acl.pattern_type,
            "principal": acl.principal,
            "host": acl.host,
            "operation": acl.operation,
            "permission_type": acl.permission,
        }
        for acl in acls
    ]
    answer = admin.request(message("CreateAcls", creations=creations), 3)
    assert all(each.error_code == 0 for each in answer.results), answer
    deadline = time.monotonic() + _TIMEOUT_S
    while _known(admin) != set(acls):
        assert time.monotonic() < deadline, "the broker does not hear of its access control lists"
        time.sleep(0.005)


def _known(admin: WireConnection) -> set[Acl]:
    answer: Any = admin.request(message("DescribeAcls", **_EVERYTHING), 3)
    return {
        Acl(
            ResourceType(resource.resource_type),
            resource.resource_name,
            PatternType(resource.pattern_type),
            acl.principal,
            acl.host,
            Operation(acl.operation),
            Permission(acl.permission_type),
        )
        for resource in answer.resources
        for acl in resource.acls
    }
