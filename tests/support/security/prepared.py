"""What the cases of the security matrix stand on: topics, groups, offsets, access control lists.

Every name that starts with ``yes`` is covered by the principals' rights, no other is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.plain_message import message
from tests.support.security.principals import PRINCIPALS, acl_request
from tests.support.wire_connection import Requester

__all__ = [
    "BOTH",
    "NAMES",
    "UNKNOWN_ID",
    "Case",
    "Prepared",
    "case",
    "commit",
    "partitions",
    "prepare",
]

_READY_TIMEOUT_S: Final = 30
UNKNOWN_ID: Final = b"\x07" * 16
NAMES: Final = ("yes-a", "no-a", "yes-missing", "no-missing")
BOTH: Final = ("yes-a", "no-a")


@dataclass(slots=True)
class Prepared:
    """What ``prepare`` made: topic ids by name."""

    ids: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Case:
    """One request: for each (prepared, user name) a message, sent in ``version``."""

    name: str
    version: int
    build: Callable[[Prepared, str], Any]

    @property
    def api(self) -> str:
        """Kafka's name of the API."""
        return self.name.split(" ", 1)[0]


def case(name: str, version: int, build: Callable[[Prepared, str], dict[str, Any]]) -> Case:
    """A case whose name begins with its API's, and whose request has the fields of ``build``."""
    api = name.split(" ", 1)[0]
    return Case(name, version, lambda prepared, who: message(api, **build(prepared, who)))


_TOPICS: Final = {"yes-a": 2, "yes-b": 1, "no-a": 1, "no-doomed": 1}


def prepare(
    admin: Requester, create_topic: Callable[[str, int], bytes], users: Mapping[str, object]
) -> Prepared:
    """Make what the cases need: topics (with ``create_topic``), groups, offsets and ACLs."""
    prepared = Prepared({name: create_topic(name, count) for name, count in _TOPICS.items()})
    for group, topics in (
        ("yes-live", ("yes-a",)),
        ("yes-mixed", ("yes-b", "no-a")),
        ("no-live", ("no-a",)),
    ):
        joined = admin.request(_join(group, topics, "member"), 1)
        assert joined.error_code == 0, joined
    for who in users:
        for group in (f"yes-simple-{who}", f"no-simple-{who}"):
            offsets = commit(group, [("yes-a", 0, 5), ("no-a", 0, 6)])
            answer = admin.request(message("OffsetCommit", **offsets), 8)
            assert all(p.error_code == 0 for t in answer.topics for p in t.partitions), answer
    answer = admin.request(acl_request(PRINCIPALS), 3)
    assert all(each.error_code == 0 for each in answer.results), answer
    return prepared


def await_transactions(admin: Requester) -> None:
    """Return once the transaction coordinator answers: its topic is made by the first question."""
    for_groups = message("FindCoordinator", key_type=0, coordinator_keys=("warm-up",))
    assert admin.request(for_groups, 4).coordinators[0].error_code == 0
    find = message("FindCoordinator", key_type=1, coordinator_keys=("warm-up",))
    begin = message("InitProducerId", transactional_id="warm-up", transaction_timeout_ms=60_000)
    deadline = time.monotonic() + _READY_TIMEOUT_S
    answer = None
    while time.monotonic() < deadline:
        if admin.request(find, 4).coordinators[0].error_code == 0:
            answer = admin.request(begin, 4)
            if answer.error_code == 0:
                return
        time.sleep(0.02)
    raise AssertionError(f"no transaction coordinator: {answer}")


def _join(group: str, topics: tuple[str, ...], member: str) -> Any:
    return message(
        "ConsumerGroupHeartbeat",
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=topics,
        topic_partitions=(),
    )


def commit(group: str, offsets: list[tuple[str, int, int]]) -> dict[str, Any]:
    """The fields of an OffsetCommit by nobody: (topic, partition, offset) each."""
    return {
        "group_id": group,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": [
            {
                "name": topic,
                "partitions": [
                    {"partition_index": index, "committed_offset": offset, "committed_metadata": ""}
                ],
            }
            for topic, index, offset in offsets
        ],
    }


def partitions(**fields: Any) -> list[dict[str, Any]]:
    """One partition, as a list."""
    return [fields]
