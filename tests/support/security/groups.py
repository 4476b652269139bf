"""Groups, their offsets, and finding coordinators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.support.security.prepared import (
    NAMES,
    UNKNOWN_ID,
    Case,
    Prepared,
    case,
    commit,
    partitions,
)

__all__ = ["GROUP_CASES"]


def _heartbeat(group: str, who: str, names: tuple[str, ...] | None, regex: str | None) -> Any:
    return {
        "group_id": f"{group}-{who}",
        "member_id": "member",
        "member_epoch": 0,
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": names,
        "subscribed_topic_regex": regex,
        "topic_partitions": (),
    }


_GROUPS: Final = ("yes-live", "yes-mixed", "no-live", "yes-none", "no-none")


def _committing(group: str) -> Callable[[Prepared, str], dict[str, Any]]:
    return lambda _s, who: commit(f"{group}-simple-{who}", [(name, 0, 7) for name in NAMES])


def _commit_ids(prepared: Prepared, who: str) -> dict[str, Any]:
    body = commit(f"yes-simple-{who}", [("", 0, 8)] * 3)
    ids = (prepared.ids["yes-a"], prepared.ids["no-a"], UNKNOWN_ID)
    for topic, topic_id in zip(body["topics"], ids, strict=True):
        topic["topic_id"] = topic_id
    return body


def _fetch_group(who: str, *, everything: bool) -> list[dict[str, Any]]:
    topics = [{"name": name, "partition_indexes": [0]} for name in NAMES]
    return [
        {"group_id": f"{kind}-simple-{who}", "topics": None if everything else topics}
        for kind in ("no", "yes")
    ]


def _fetch_ids(prepared: Prepared, who: str) -> dict[str, Any]:
    ids = (prepared.ids["yes-a"], prepared.ids["no-a"], UNKNOWN_ID)
    topics = [{"topic_id": each, "partition_indexes": [0]} for each in ids]
    return {"groups": [{"group_id": f"yes-simple-{who}", "topics": topics}]}


def _heartbeats(
    group: str, names: tuple[str, ...] | None, regex: str | None = None
) -> Callable[[Prepared, str], dict[str, Any]]:
    return lambda _s, who: _heartbeat(group, who, names, regex)


def _join_group(kind: str) -> Case:
    return case(
        f"JoinGroup {kind}",
        9,
        lambda _s, who: {
            "group_id": f"{kind}-classic-{who}",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "member_id": "unknown",
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        },
    )


def _sync_group(kind: str) -> Case:
    return case(
        f"SyncGroup {kind}",
        5,
        lambda _s, who: {
            "group_id": f"{kind}-classic-{who}",
            "generation_id": 1,
            "member_id": "unknown",
            "protocol_type": "consumer",
            "protocol_name": "range",
        },
    )


def _classic_heartbeat(kind: str) -> Case:
    return case(
        f"Heartbeat {kind}",
        4,
        lambda _s, who: {
            "group_id": f"{kind}-classic-{who}",
            "generation_id": 1,
            "member_id": "unknown",
        },
    )


def _leave_group(kind: str) -> Case:
    return case(
        f"LeaveGroup {kind}",
        5,
        lambda _s, who: {
            "group_id": f"{kind}-classic-{who}",
            "members": [{"member_id": "unknown"}],
        },
    )


def _offset_delete(kind: str) -> Case:
    return case(
        f"OffsetDelete {kind}",
        0,
        lambda _s, who: {
            "group_id": f"{kind}-simple-{who}",
            "topics": [
                {"name": name, "partitions": partitions(partition_index=0)} for name in NAMES
            ],
        },
    )


def _find_coordinator(kind: str, what: str, number: int) -> Case:
    return case(
        f"FindCoordinator {kind} {what}",
        4,
        lambda _s, _w: {
            "key_type": number,
            "coordinator_keys": (f"{kind}-key", "yes-second"),
        },
    )


def _find_coordinator_v3(kind: str, what: str, number: int) -> Case:
    return case(
        f"FindCoordinator v3 {kind} {what}",
        3,
        lambda _s, _w: {"key_type": number, "key": f"{kind}-key"},
    )


GROUP_CASES: Final[tuple[Case, ...]] = (
    case("OffsetCommit yes", 8, _committing("yes")),
    case("OffsetCommit no", 8, _committing("no")),
    case("OffsetCommit ids", 10, _commit_ids),
    case(
        "OffsetFetch v7",
        7,
        lambda _s, who: {
            "group_id": f"yes-simple-{who}",
            "topics": [{"name": name, "partition_indexes": [0]} for name in NAMES],
        },
    ),
    case(
        "OffsetFetch v7 all",
        7,
        lambda _s, who: {"group_id": f"yes-simple-{who}", "topics": None},
    ),
    case(
        "OffsetFetch v7 other's",
        7,
        lambda _s, who: {"group_id": f"no-simple-{who}", "topics": None},
    ),
    case(
        "OffsetFetch v1 other's",
        1,
        lambda _s, who: {
            "group_id": f"no-simple-{who}",
            "topics": [{"name": "yes-a", "partition_indexes": [0]}],
        },
    ),
    case("OffsetFetch groups", 8, lambda _s, who: {"groups": _fetch_group(who, everything=False)}),
    case(
        "OffsetFetch all of groups",
        9,
        lambda _s, who: {"groups": _fetch_group(who, everything=True)},
    ),
    case("OffsetFetch ids", 10, _fetch_ids),
    case(
        "DescribeGroups v5",
        5,
        lambda _s, who: {
            "groups": (*_GROUPS, f"yes-simple-{who}"),
            "include_authorized_operations": True,
        },
    ),
    case(
        "DescribeGroups v6",
        6,
        lambda _s, who: {
            "groups": (*_GROUPS, f"yes-simple-{who}"),
            "include_authorized_operations": True,
        },
    ),
    case("ConsumerGroupDescribe", 1, lambda _s, _w: {"group_ids": (*_GROUPS, "")}),
    case(
        "ConsumerGroupDescribe operations",
        0,
        lambda _s, _w: {"group_ids": _GROUPS, "include_authorized_operations": True},
    ),
    case("ListGroups", 5, lambda _s, _w: {"types_filter": ("consumer",)}),
    case("ConsumerGroupHeartbeat allowed topic", 1, _heartbeats("yes-hb1", ("yes-a",))),
    case("ConsumerGroupHeartbeat other's topic", 1, _heartbeats("yes-hb2", ("yes-a", "no-a"))),
    case("ConsumerGroupHeartbeat missing topic", 1, _heartbeats("yes-hb3", ("no-missing",))),
    case("ConsumerGroupHeartbeat no topics", 1, _heartbeats("yes-hb4", ())),
    case("ConsumerGroupHeartbeat other's group", 1, _heartbeats("no-hb5", ("no-a",))),
    case(
        "ConsumerGroupHeartbeat malformed",
        1,
        lambda _s, _w: {"group_id": "", "member_id": "", "subscribed_topic_names": ("no-a",)},
    ),
    case(
        "ConsumerGroupHeartbeat leave",
        1,
        lambda _s, who: {
            "group_id": f"yes-hb4-{who}",
            "member_id": "member",
            "member_epoch": -1,
        },
    ),
    *(_join_group(kind) for kind in ("yes", "no")),
    *(_sync_group(kind) for kind in ("yes", "no")),
    *(_classic_heartbeat(kind) for kind in ("yes", "no")),
    *(_leave_group(kind) for kind in ("yes", "no")),
    *(_offset_delete(kind) for kind in ("yes", "no")),
    case(
        "DeleteGroups",
        2,
        lambda _s, who: {
            "groups_names": (f"no-simple-{who}", f"yes-simple-{who}", "yes-none", "yes-live")
        },
    ),
    *(
        _find_coordinator(kind, what, number)
        for kind in ("yes", "no")
        for what, number in (("group", 0), ("transaction", 1))
    ),
    *(
        _find_coordinator_v3(kind, what, number)
        for kind in ("yes", "no")
        for what, number in (("group", 0), ("transaction", 1))
    ),
    case(
        "FindCoordinator share",
        6,
        lambda _s, _w: {"key_type": 2, "coordinator_keys": ("nonsense",)},
    ),
)
