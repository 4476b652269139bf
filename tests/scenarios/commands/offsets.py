"""commit, fetch, delete-offsets: committed positions and who may touch them."""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.core.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.scenarios.notation import Arguments, NotationError, read_partitions
from tests.scenarios.scenario_run import DEFAULT_GROUP, ScenarioRun

__all__ = ["commit", "delete_offsets", "fetch", "identity", "wanted_partitions"]

NOBODY: Final = "nobody"
_COMMIT_BY_ID: Final = 10
"""First version of OffsetCommit and OffsetFetch that names topics by id (KIP-848)."""


def identity(scenario: ScenarioRun, arguments: Arguments, group: str) -> tuple[str | None, int]:
    """Member id and epoch; ``nobody`` is a consumer that is not a member."""
    name = arguments.word("a member, or nobody")
    if name == NOBODY:
        return None, arguments.number("epoch", -1)
    member = scenario.member(name, group)
    return member.member_id, arguments.number("epoch", member.epoch)


def wanted_partitions(arguments: Arguments) -> list[tuple[str, tuple[int, ...], int | None]]:
    texts = [arguments.word("partitions") for _ in range(len(arguments.positional))]
    if not texts:
        raise NotationError(f"{arguments.command} needs partitions")
    return [read_partitions(text) for text in texts]


def commit(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """OffsetCommit with the member's id and epoch; ``nobody`` commits without both.

    commit A foo[0]=10 foo[4]=11
    commit A epoch=2 foo[0]=10 version=10 metadata=note
    commit nobody foo[0]=10

    ``metadata-length=4097`` sends that many characters of metadata.
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    member_id, epoch = identity(scenario, arguments, group)
    version = arguments.number("version", 9)
    length = arguments.number("metadata-length", 0)
    metadata = arguments.text("metadata", "x" * length)
    topics = tuple(
        OffsetCommitRequestTopic(
            name=topic if version < _COMMIT_BY_ID else "",
            topic_id=scenario.topic_id(topic) if version >= _COMMIT_BY_ID else bytes(16),
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=number,
                    committed_offset=offset or 0,
                    committed_metadata=metadata,
                )
                for number in numbers
            ),
        )
        for topic, numbers, offset in wanted_partitions(arguments)
    )
    request = OffsetCommitRequest(
        group_id=scenario.group_id(group),
        generation_id_or_member_epoch=epoch,
        member_id=member_id or "",
        group_instance_id=arguments.text("instance"),
        topics=topics,
    )
    response = scenario.request(request, version)
    return _results(scenario, response.topics)


def _results(scenario: ScenarioRun, topics: Any) -> list[str]:
    pieces = [
        f"{topic.name or scenario.topic_name(topic.topic_id)}[{each.partition_index}] "
        f"{scenario.error_text(each.error_code)}"
        for topic in topics
        for each in topic.partitions
    ]
    return [", ".join(sorted(pieces))]


def fetch(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """OffsetFetch with the member's id and epoch; ``nobody`` fetches without both.

    fetch A foo[0,4]
    fetch nobody foo[0] version=8
    fetch A epoch=9 foo[0] stable

    ``all`` instead of partitions asks for everything that is committed.
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    everything, stable = arguments.flag("all"), arguments.flag("stable")
    member_id, epoch = identity(scenario, arguments, group)
    version = arguments.number("version", 9)
    topics = None
    if not everything:
        topics = tuple(
            OffsetFetchRequestTopics(
                name=topic if version < _COMMIT_BY_ID else "",
                topic_id=scenario.topic_id(topic) if version >= _COMMIT_BY_ID else bytes(16),
                partition_indexes=numbers,
            )
            for topic, numbers, _ in wanted_partitions(arguments)
        )
    request = OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(
                group_id=scenario.group_id(group),
                member_id=member_id,
                member_epoch=epoch,
                topics=topics,
            ),
        ),
        require_stable=stable,
    )
    answer = scenario.request(request, version).groups[0]
    if answer.error_code:
        return [scenario.error_text(answer.error_code)]
    pieces = [
        f"{topic.name or scenario.topic_name(topic.topic_id)}[{each.partition_index}] "
        f"{_position(scenario, each)}"
        for topic in answer.topics
        for each in topic.partitions
    ]
    return [", ".join(sorted(pieces)) or "nothing"]


def _position(scenario: ScenarioRun, partition: Any) -> str:
    if partition.error_code:
        return scenario.error_text(partition.error_code)
    offset = "none" if partition.committed_offset == -1 else str(partition.committed_offset)
    return f'{offset} "{partition.metadata}"' if partition.metadata else offset


def delete_offsets(scenario: ScenarioRun, arguments: Arguments) -> list[str]:
    """OffsetDelete.

    delete-offsets foo[0] bar[0]
    """
    group = arguments.text("group", DEFAULT_GROUP) or ""
    request = OffsetDeleteRequest(
        group_id=scenario.group_id(group),
        topics=tuple(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetDeleteRequestPartition(partition_index=number) for number in numbers
                ),
            )
            for topic, numbers, _ in wanted_partitions(arguments)
        ),
    )
    response = scenario.request(request, 0)
    if response.error_code:
        return [scenario.error_text(response.error_code)]
    pieces = [
        f"{topic.name}[{each.partition_index}] {scenario.error_text(each.error_code)}"
        for topic in response.topics
        for each in topic.partitions
    ]
    return [", ".join(sorted(pieces))]
