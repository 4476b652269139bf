"""Share groups (KIP-932) and streams groups (KIP-1071) of a broker that has them switched off."""

from __future__ import annotations

from typing import Any

from tests.contract.dialogues.step import Step, ask

__all__ = ["STEPS"]

_ID = b"\x07" * 15 + b"\x01"
_FETCHED = [{"topic_id": _ID, "partitions": [{"partition_index": 0}]}]
_TOPOLOGY = {"epoch": 0, "subtopologies": []}


def _share_heartbeat(group: str, epoch: int) -> Step:
    topics = ["unimplemented"] if epoch == 0 else None
    return ask(
        "ShareGroupHeartbeat",
        since="4.1",
        group_id=group,
        member_id="member",
        member_epoch=epoch,
        subscribed_topic_names=topics,
    )


def _streams_heartbeat(group: str, epoch: int, version: int | None = None) -> Step:
    joining = {"topology": _TOPOLOGY, "active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    return ask(
        "StreamsGroupHeartbeat",
        version,
        since="4.2",
        group_id=group,
        member_id="member",
        member_epoch=epoch,
        rebalance_timeout_ms=1000,
        **(joining if epoch == 0 else {}),
    )


def _listed(*types: str) -> Step:
    return ask("ListGroups", 5, types_filter=list(types))


def _level(name: str, level: int, since: str, **more: Any) -> Step:
    update = {"feature": name, "max_version_level": level, "upgrade_type": 1}
    return ask("UpdateFeatures", since=since, timeout_ms=1000, feature_updates=[update], **more)


STEPS: list[Step] = [
    _share_heartbeat("g", 0),
    _share_heartbeat("g", 5),
    _share_heartbeat("", -1),
    ask("ShareGroupDescribe", since="4.1", group_ids=["g", "", "h", "g"]),
    ask("ShareGroupDescribe", since="4.1", group_ids=[]),
    ask("ShareGroupDescribe", since="4.1", group_ids=["g"], include_authorized_operations=True),
    *(
        ask(
            api,
            version,
            since=since,
            group_id="g",
            member_id="member",
            share_session_epoch=epoch,
            topics=_FETCHED if epoch == 0 else [],
        )
        for api in ("ShareFetch", "ShareAcknowledge")
        for version, since in ((1, "4.1"), (2, "4.2"))
        for epoch in (0, 3, -1)
    ),
    *(
        ask(
            "DescribeShareGroupOffsets",
            version,
            since=since,
            groups=[
                {"group_id": "g", "topics": [{"topic_name": "t", "partitions": [0]}]},
                {"group_id": "h", "topics": None},
            ],
        )
        for version, since in ((0, "4.1"), (1, "4.2"))
    ),
    ask("DescribeShareGroupOffsets", since="4.1", groups=[]),
    ask(
        "AlterShareGroupOffsets",
        since="4.1",
        group_id="g",
        topics=[{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 0}]}],
    ),
    ask("AlterShareGroupOffsets", since="4.1", group_id="", topics=[]),
    ask("DeleteShareGroupOffsets", since="4.1", group_id="g", topics=[{"topic_name": "t"}]),
    _streams_heartbeat("g", 0, 0),
    _streams_heartbeat("g", 0),
    _streams_heartbeat("g", 3),
    _streams_heartbeat("", -1),
    ask("StreamsGroupDescribe", 0, since="4.2", group_ids=["g", "", "g"]),
    ask("StreamsGroupDescribe", since="4.2", group_ids=["g"], include_authorized_operations=True),
    ask("StreamsGroupDescribe", since="4.2", group_ids=[]),
    ask("StreamsGroupTopologyDescriptionUpdate", since="4.4", group_id="g", member_id="member"),
    _listed("share"),
    _listed("Streams", "SHARE"),
    ask("ConsumerGroupDescribe", group_ids=["g"]),
    ask("DescribeGroups", groups=["g"]),
    ask("DeleteGroups", groups_names=["g"]),
    _level("share.version", 9, "4.1"),
    _level("share.version", 0, "4.1"),
    _level("share.version", 0, "4.1", validate_only=True),
    _level("streams.version", 9, "4.2"),
    _level("streams.version", 0, "4.2"),
]
