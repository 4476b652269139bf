"""``kip848 topics describe``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from kip848_client.admin import Admin, ConfigEntry, TopicDescription
from kip848_client.cli._connecting import add_connection, put_json, report, run_with_admin, said
from kip848_client.cli._output import put
from kip848_client.core.visible import visible
from kip848_client.errors import AdminFailed

__all__ = ["configure", "run", "topic_data", "topic_lines"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_connection(parser)
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC",
        help="a topic; may be given more than once (all of them)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print one section per topic."""
    return run_with_admin(_describe, arguments)


async def _describe(admin: Admin, arguments: argparse.Namespace) -> int:
    names = arguments.topic or [each.name for each in await admin.list_topics()]
    topics, failed = await _those_there(admin, names)
    configs = await admin.describe_topic_configs(list(topics)) if topics else {}
    if arguments.json:
        put_json([topic_data(each, configs[each.name]) for each in topics.values()])
    else:
        lines = [line for each in topics.values() for line in topic_lines(each, configs[each.name])]
        put(*lines, keep="\t")
    report(failed, arguments)
    return 1 if failed else 0


async def _those_there(
    admin: Admin, names: list[str]
) -> tuple[dict[str, TopicDescription], list[str]]:
    """Return the topics, and the error messages of those that cannot be described."""
    try:
        return await admin.describe_topics(names), []
    except AdminFailed as err:
        topics = {each: err.done[each] for each in names if each in err.done}
        return topics, [f"topic {name}: {said(why)}" for name, why in err.errors.items()]


def _not_default(configs: Iterable[ConfigEntry]) -> dict[str, str | None]:
    return {each.name: each.value for each in configs if not each.is_default}


def topic_lines(topic: TopicDescription, configs: Iterable[ConfigEntry]) -> list[str]:
    """Format a topic as kafka-topics does."""
    name = visible(topic.name)
    changed = ",".join(
        f"{key}={visible(str(value))}" for key, value in _not_default(configs).items()
    )
    replicas = len(topic.partitions[0].replicas) if topic.partitions else 0
    head = (
        f"Topic: {name}\tTopicId: {topic.topic_id}\t"
        f"PartitionCount: {len(topic.partitions)}\tReplicationFactor: {replicas}\t"
        f"Configs: {changed}"
    )
    lines = [head]
    for each in topic.partitions:
        leader = "none" if each.leader is None else each.leader
        lines.append(
            f"\tTopic: {name}\tPartition: {each.partition}\tLeader: {leader}\t"
            f"Replicas: {_listed(each.replicas)}\tIsr: {_listed(each.in_sync_replicas)}\t"
            f"Elr: {_listed(each.eligible_leader_replicas)}\t"
            f"LastKnownElr: {_listed(each.last_known_eligible_leader_replicas)}"
        )
    return lines


def _listed(nodes: Iterable[int] | None) -> str:
    return "N/A" if nodes is None else ",".join(map(str, nodes))


def _as_list(nodes: Iterable[int] | None) -> list[int] | None:
    return None if nodes is None else list(nodes)


def topic_data(topic: TopicDescription, configs: Iterable[ConfigEntry]) -> dict[str, Any]:
    """The data for ``--json``."""
    return {
        "topic": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "configs": _not_default(configs),
        "partitions": [
            {
                "partition": each.partition,
                "leader": each.leader,
                "leader_epoch": each.leader_epoch,
                "replicas": list(each.replicas),
                "isr": list(each.in_sync_replicas),
                "offline": list(each.offline_replicas),
                "elr": _as_list(each.eligible_leader_replicas),
                "last_known_elr": _as_list(each.last_known_eligible_leader_replicas),
            }
            for each in topic.partitions
        ],
    }
