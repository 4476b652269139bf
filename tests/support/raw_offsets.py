"""Offsets of groups, asked for and committed by hand: plain data back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kip848_client.core.wire import api_named
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.core.wire.messages.offset_delete import (
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kip848_client.core.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.support.raw_broker import CLOSED, RawBroker

__all__ = ["RawOffsets"]


class RawOffsets(RawBroker):
    """What has to do with the offsets of groups."""

    def commit(
        self,
        group: str,
        offsets: Mapping[tuple[str, int], int],
        version: int = 9,
        *,
        member: tuple[str, int] = ("", -1),
    ) -> Any:
        """OffsetCommit, outside of any transaction."""
        topics: dict[str, list[Any]] = {}
        for (topic, partition), offset in offsets.items():
            topics.setdefault(topic, []).append(
                OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=""
                )
            )
        request = api_named("OffsetCommit").request(
            group_id=group,
            generation_id_or_member_epoch=member[1],
            member_id=member[0],
            topics=tuple(
                OffsetCommitRequestTopic(name=topic, partitions=tuple(partitions))
                for topic, partitions in topics.items()
            ),
        )
        answer = self._request(request, version)
        if answer is None:
            return CLOSED
        return tuple(
            (topic.name, each.partition_index, each.error_code)
            for topic in answer.topics
            for each in topic.partitions
        )

    def offsets(
        self,
        group: str,
        partitions: Sequence[tuple[str, int]] | None,
        *,
        stable: bool = True,
    ) -> Any:
        """OffsetFetch; ``None`` asks for everything that the group has."""
        topics = None
        if partitions is not None:
            topics = tuple(
                OffsetFetchRequestTopics(
                    name=name,
                    partition_indexes=tuple(index for topic, index in partitions if topic == name),
                )
                for name in dict.fromkeys(topic for topic, _ in partitions)
            )
        request = api_named("OffsetFetch").request(
            groups=(OffsetFetchRequestGroup(group_id=group, topics=topics),), require_stable=stable
        )
        answer = self._request(request, 8)
        if answer is None:
            return CLOSED
        found = answer.groups[0]
        return (
            found.error_code,
            tuple(
                sorted(
                    (
                        topic.name,
                        each.partition_index,
                        each.error_code,
                        each.committed_offset,
                        each.metadata,
                    )
                    for topic in found.topics
                    for each in topic.partitions
                )
            ),
        )

    def delete_offsets(self, group: str, partitions: Sequence[tuple[str, int]]) -> Any:
        """OffsetDelete."""
        request = api_named("OffsetDelete").request(
            group_id=group,
            topics=tuple(
                OffsetDeleteRequestTopic(
                    name=name,
                    partitions=tuple(
                        OffsetDeleteRequestPartition(partition_index=index)
                        for topic, index in partitions
                        if topic == name
                    ),
                )
                for name in dict.fromkeys(topic for topic, _ in partitions)
            ),
        )
        answer = self._request(request, 0)
        if answer is None:
            return CLOSED
        return (
            answer.error_code,
            tuple(
                (topic.name, each.partition_index, each.error_code)
                for topic in answer.topics
                for each in topic.partitions
            ),
        )

    def delete_group(self, group: str) -> Any:
        """DeleteGroups."""
        answer = self._request(api_named("DeleteGroups").request(groups_names=(group,)), 2)
        return CLOSED if answer is None else answer.results[0].error_code
