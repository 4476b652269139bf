"""Members that subscribe with a regex and may not see every topic that it matches."""

from __future__ import annotations

import time
from typing import Any, Final

from tests.support.plain_message import message
from tests.support.security.principals import Right, acl_request
from tests.support.security.sides import SecureSide, User

__all__ = ["regex_assignments"]

_TIMEOUT_S: Final = 20
_POLL_S: Final = 0.05
_QUIET: Final = 10


def regex_assignments(side: SecureSide) -> dict[str, list[str]]:
    """The topics that alice (who may READ what begins with ``yes``) and bob (who may READ all) get
    for one regex, each in a group of one's own, and last in a group that bob began."""
    names = {side.create_topic(name, 1): name for name in ("yes-regex", "no-regex")}
    everything = tuple(Right(each, "READ", "*", prefixed=False) for each in ("TOPIC", "GROUP"))
    rights = {"alice": (Right("TOPIC", "READ"), Right("GROUP", "READ")), "bob": everything}
    with side.connect() as admin:
        answer = admin.request(acl_request(rights), 3)
        assert all(each.error_code == 0 for each in answer.results), answer
    alice, bob = side.login("alice"), side.login("bob")
    found = {
        "alice alone": _assigned(alice, "yes-of-alice", names),
        "bob alone": _assigned(bob, "yes-of-bob", names),
        "alice after bob": _assigned(alice, "yes-of-bob", names),
    }
    alice.close()
    bob.close()
    return found


def _assigned(user: User, group: str, names: dict[Any, str]) -> list[str]:
    """Join and heartbeat until nothing new has come for a while."""
    member = f"member-{user.name}"
    fields: dict[str, Any] = {
        "group_id": group,
        "member_id": member,
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_regex": ".*-regex",
        "topic_partitions": (),
    }
    topics: list[str] = []
    quiet = 0
    deadline = time.monotonic() + _TIMEOUT_S
    while quiet < _QUIET and time.monotonic() < deadline:
        answer = user.request(message("ConsumerGroupHeartbeat", **fields), 1)
        assert answer.error_code == 0, answer
        quiet += 1
        if answer.assignment is not None:
            owned = answer.assignment.topic_partitions
            now = sorted(names[each.topic_id] for each in owned)
            quiet = 0 if now != topics else quiet
            topics = now
            fields["topic_partitions"] = owned
        fields = {
            "group_id": group,
            "member_id": member,
            "member_epoch": answer.member_epoch,
            "topic_partitions": fields["topic_partitions"],
        }
        time.sleep(_POLL_S)
    return topics
